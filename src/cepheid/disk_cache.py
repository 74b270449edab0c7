"""Files that are made once and found again by content: compiled kernels, and the tables of the parser.

A digest of all that a file was made from is part of its name, so nothing depends on times or paths: a copied tree, an
installed wheel and a container's layer keep what was made. A platform wheel carries such files in `SHIPPED`. Everything
else goes to the first folder of `folders()` that can be written to. A checksum tells files that were cut off or
overwritten.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
SHIPPED = PACKAGE / "_kernels"
_CHECKSUM = hashlib.sha256().digest_size


def found(stem: str, digest: str, kinds: tuple[str, str]) -> Iterator[bytes]:
    """What is kept as STEM-DIGEST.KIND, whole: of the first kind in the folders, of the second in a wheel."""
    for path in _places(stem, digest, kinds):
        data = read(path)
        if data and hashlib.sha256(data[_CHECKSUM:]).digest() == data[:_CHECKSUM]:
            yield data[_CHECKSUM:]


def exists(stem: str, digest: str, kinds: tuple[str, str]) -> bool:
    """Is something kept there?"""
    for path in _places(stem, digest, kinds):
        with suppress(OSError):
            if path.stat().st_size > 0:
                return True
        if path.parent == SHIPPED and read(path):  # in an archive
            return True
    return False


def write(stem: str, digest: str, kind: str, data: bytes, most: int = 1) -> None:
    """Keeps something, if there is a place; in the package it takes the place of what had this stem and kind.

    With `most`, so many of this stem and kind are kept in every place, the latest ones.
    """
    folder = _writable()
    if folder is None:
        return
    whole, unfinished = folder / f"{stem}-{digest}.{kind}", folder / f"{uuid.uuid4().hex}.tmp"
    try:
        unfinished.write_bytes(hashlib.sha256(data).digest() + data)
        unfinished.replace(whole)
        if most > 1 or folder == _in_the_package():  # elsewhere other installations may need theirs
            others = sorted(set(folder.glob(f"{stem}-*.{kind}")) - {whole}, key=_written, reverse=True)
            for older in others[most - 1 :]:
                older.unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _written(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def read(path: str | Path) -> bytes | None:
    """A file's content; of a file in an archive what the package's loader reads."""
    with suppress(OSError):
        return Path(path).read_bytes()
    loader: Any = globals().get("__loader__")
    try:
        data: bytes = loader.get_data(str(path))
        return data
    except (AttributeError, OSError):
        return None


def folders() -> list[Path]:
    """Where files may be, and are written to: in the package, for the user, else among temporary files."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(named) / "cepheid"]
    user = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    places = [_in_the_package(), Path(user) / "cepheid" / "kernels", _private()]
    return [each for each in places if each.is_absolute() and (each != _private() or _is_ours(each))]


def _places(stem: str, digest: str, kinds: tuple[str, str]) -> Iterator[Path]:
    own, shipped = kinds
    for folder in folders():
        yield folder / f"{stem}-{digest}.{own}"
    if shipped:
        yield SHIPPED / f"{stem}-{digest}.{shipped}"


def _in_the_package() -> Path:
    return PACKAGE / "__pycache__" / "kernels"


def _private() -> Path:
    return Path(tempfile.gettempdir()) / f"cepheid-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _is_ours(folder: Path) -> bool:
    """Can nobody else write there? Code must not come from others. What is not there yet can be ours."""
    try:
        status = folder.lstat()
    except OSError:
        return True
    own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    return stat.S_ISDIR(status.st_mode) and own


def _writable() -> Path | None:
    for folder in folders():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700 if folder == _private() else 0o777, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if folder != _private() or _is_ours(folder):
            return folder
    return None
