"""Writing without losing anything: one guard for what may be written, and files that appear only when complete."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cepheid.errors import CepheidError
from cepheid.runners.result_folders import check_folder, take_the_place

ASIDE = "--aside"
_WITHOUT = (ASIDE, "--query")  # places that --overwrite does not concern
_ELSEWHERE = re.compile(r"\w+:/")  # hdfs:/ and the like, which only Spark can look at


def is_elsewhere(path: str | Path) -> bool:
    """Does it lie in a file system that only Spark knows?"""
    return _ELSEWHERE.match(str(path)) is not None


def check_outputs(
    writes: Mapping[str, Path | None], reads: Iterable[str | Path | None], *, overwrite: bool | None = None
) -> None:
    """Refuses outputs that would replace what is read, each other, or a directory with anything but a result in it.

    `writes` are outputs by the options that name them; `reads` are all files that the command reads. With `overwrite`
    the directory of a result may hold other files, which stay; it is None for commands without that option.
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
                raise CepheidError(f"{option} {path} is the input, and would overwrite it", hint="name another")
        if target in taken:
            raise CepheidError(f"{option} and {taken[target]} name the same file, {path}", hint="name another")
        taken[target] = option
        check_folder(path, option, overwrite=None if option in _WITHOUT else overwrite)


def _same(source: Path, target: Path) -> bool:
    return source == target or (source.exists() and target.exists() and source.samefile(target))


@contextmanager
def replacing(path: Path, *, overwrite: bool | None = None) -> Iterator[Path]:
    """A place beside `path` to write to, a file or a directory; it takes the place of `path` when all is written.

    If writing fails (a full disk, an interruption), what was there before stays as it was. Of a directory only the
    files of an earlier result are replaced (runners/result_folders.py).
    """
    if is_elsewhere(path) or (path.exists() and not path.is_file() and not path.is_dir()):  # /dev/stdout, a pipe
        yield path
        return
    target = path.resolve()  # a link goes on pointing at the file
    beside = target.with_name(f".{target.stem}.{os.getpid()}-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield beside
        _take_the_place(beside, target, overwrite)
    except OSError as error:
        raise CepheidError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def _take_the_place(beside: Path, target: Path, overwrite: bool | None) -> None:
    if not beside.is_file():
        if target.is_file():
            raise CepheidError(
                f"cannot write {target}: it is a file, and the result is a directory", hint="name another"
            )
        take_the_place(beside, target, overwrite=overwrite)
        return
    if target.is_dir():
        raise CepheidError(f"cannot write {target}: it is a directory", hint="name another file")
    if target.exists():
        shutil.copymode(target, beside)
    with beside.open("rb") as complete:
        os.fsync(complete.fileno())
    os.replace(beside, target)
