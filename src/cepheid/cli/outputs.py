"""Writing without losing anything: one guard for what may be written, and files that appear only when complete."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cepheid.errors import CepheidError

_ELSEWHERE = re.compile(r"\w+:/")  # hdfs:/ and the like, which only Spark can look at
_PARTS = (".", "_", "part-")  # what the names in a directory begin with that a result is written to


def is_elsewhere(path: str | Path) -> bool:
    """Does it lie in a file system that only Spark knows?"""
    return _ELSEWHERE.match(str(path)) is not None


def check_outputs(writes: Mapping[str, Path | None], reads: Iterable[str | Path | None]) -> None:
    """Refuses outputs that would replace what is read, each other, or a directory with anything but a result in it.

    `writes` are outputs by the options that name them; `reads` are all files that the command reads.
    """
    here = {option: path for option, path in writes.items() if path is not None and not is_elsewhere(path)}
    sources = [Path(item).resolve() for item in reads if item is not None and not is_elsewhere(item)]
    taken: dict[Path, str] = {}
    for option, path in here.items():
        target = path.resolve()
        if not target.parent.is_dir():
            raise CepheidError(f"{option} {path}: there is no directory {path.parent}", hint=f"mkdir -p {path.parent}")
        for source in sources:
            if _same(source, target) or (target.is_dir() and target in source.parents):
                raise CepheidError(f"{option} {path} is the input, which would be lost", hint="name another")
        if target in taken:
            raise CepheidError(f"{option} and {taken[target]} name the same file, {path}", hint="name another")
        taken[target] = option
        names = sorted(entry.name for entry in target.iterdir()) if target.is_dir() else []
        others = [name for name in names if not name.startswith(_PARTS) and "=" not in name]
        if others:
            raise CepheidError(f"{option} {path} is a directory that holds {others[0]}", hint="name another")


def _same(source: Path, target: Path) -> bool:
    return source == target or (source.exists() and target.exists() and source.samefile(target))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to, a file or a directory; it takes the place of `path` when all is written.

    If writing fails (a full disk, an interruption), what was there before stays as it was.
    """
    if is_elsewhere(path) or (path.exists() and not path.is_file() and not path.is_dir()):  # /dev/stdout, a pipe
        yield path
        return
    target = path.resolve()  # a link goes on pointing at the file
    beside = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        yield beside
        _take_the_place(beside, target)
    except OSError as error:
        raise CepheidError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def _take_the_place(beside: Path, target: Path) -> None:
    if beside.is_file():
        if target.is_dir():
            raise CepheidError(f"cannot write {target}: it is a directory", hint="name another file")
        if target.exists():
            shutil.copymode(target, beside)
        with beside.open("rb") as complete:
            os.fsync(complete.fileno())
        os.replace(beside, target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        target.rename(old)
    try:
        beside.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
