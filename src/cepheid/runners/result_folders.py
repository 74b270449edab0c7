"""Directories that results are written to: a manifest names the files of a result, and nothing else is ever removed.

A directory with anything that its manifest does not name is refused, unless the caller asks to write into it; then the
files of the old result go, and all others stay. A file whose size is not the one in the manifest was changed by others,
and is theirs. A result without a manifest (of Spark, or of an earlier version) is other people's files, too: who wants
its place removes it, or names another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from cepheid.errors import CepheidError

MANIFEST = "_cepheid.json"
_FORMAT = "cepheid-result"


def check_folder(folder: Path, option: str, *, overwrite: bool | None = None) -> None:
    """Refuses a directory that holds anything but a result of ours; `overwrite` is None where no such option is."""
    if overwrite or not folder.is_dir():
        return
    found = next(iter(others(folder)), None)
    if found is not None:
        hint = "name another"
        if overwrite is not None:
            hint += ", or pass --overwrite: it removes the files of an earlier result of Cepheid and no others"
        raise CepheidError(f"{option} {folder} is a directory that holds {found}", hint=hint)


def others(folder: Path) -> list[str]:
    """What lies in a directory and is not named by its manifest: files, links, and directories without any file."""
    own = {*listed(folder), MANIFEST}
    return sorted(name for name in _entries(folder) if name not in own)


def listed(folder: Path) -> list[str]:
    """The files that the manifest of a directory names, of those that are there; none without a manifest."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files: dict[str, int] = told["files"] if told["format"] == _FORMAT else {}
        return [name for name, size in files.items() if _is_own(folder, name, size)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _is_own(folder: Path, name: str, size: int) -> bool:
    """Is it a file below the directory, reached through no link, as it was written? Others may have made a manifest."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or str(PurePosixPath(*parts)) != name:
        return False
    way = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    return not any(each.is_symlink() for each in way) and way[-1].is_file() and way[-1].stat().st_size == size


def _entries(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        inside = Path(place).relative_to(folder)
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from ((inside / name).as_posix() for name in (*files, *links))
        if inside.parts and not folders and not files:
            yield f"{inside.as_posix()}/"


def write_manifest(folder: Path, files: Mapping[str, int] | None = None) -> None:
    """Names the files of a result with their sizes: all that lie in its directory, unless they are given."""
    kept = sizes(folder) if files is None else dict(files)
    beside = folder / f".{MANIFEST}.{os.getpid()}"
    beside.write_text(json.dumps({"format": _FORMAT, "version": 1, "files": kept}, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, folder / MANIFEST)


def sizes(folder: Path) -> dict[str, int]:
    """The files in a directory with their sizes, but for the manifest."""
    names = [name for name in sorted(_entries(folder)) if name != MANIFEST and not name.endswith("/")]
    return {name: (folder / name).stat().st_size for name in names}


def clear(folder: Path) -> None:
    """Removes the files of a result, and the directories that are empty then."""
    own = listed(folder)
    for name in own:
        (folder / name).unlink(missing_ok=True)
    _remove_empty(folder, own)
    (folder / MANIFEST).unlink(missing_ok=True)


def _remove_empty(folder: Path, names: Iterable[str]) -> None:
    """Removes the directories that these files lay in, from the innermost on, where nothing is left in them."""
    above = {parent for name in names for parent in PurePosixPath(name).parents if parent.parts}
    for parent in sorted(above, key=lambda each: -len(each.parts)):
        try:
            (folder / parent).rmdir()
        except OSError:  # others have files there, or another removed it
            continue


def take_the_place(beside: Path, folder: Path, option: str = "--output", *, overwrite: bool | None = None) -> None:
    """Puts a complete result in the place of an earlier one; what others have in the directory stays."""
    check_folder(folder, option, overwrite=overwrite)
    write_manifest(beside)
    if not folder.exists():
        beside.rename(folder)
    elif others(folder):
        _move_into(beside, folder, option)
    else:
        _swap(beside, folder)


def _swap(beside: Path, folder: Path) -> None:
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    folder.rename(old)
    try:
        beside.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    clear(old)
    try:
        old.rmdir()
    except OSError:  # something came into it meanwhile, which is not ours to remove
        raise CepheidError(f"{folder} is written; what others put there meanwhile is in {old}") from None


def _move_into(beside: Path, folder: Path, option: str) -> None:
    """File by file. The manifest names what is there while that is done, so that a run that is killed in between leaves
    nothing that the next one would not remove."""
    old, new = listed(folder), sizes(beside)
    foreign = {*others(folder)}
    taken = [name for name in new if not foreign.isdisjoint((name, *map(str, PurePosixPath(name).parents)))]
    if taken:
        hint = "remove it, or name another directory"
        raise CepheidError(f"{option} {folder} holds {taken[0]}, which is not of an earlier result", hint=hint)
    for name in old:
        (folder / name).unlink(missing_ok=True)
    _remove_empty(folder, old)
    write_manifest(folder, new)
    for name in new:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(beside / name, folder / name)
