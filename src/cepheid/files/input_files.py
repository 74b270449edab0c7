"""Which files --input stands for: single files, directories, globs, a stream's output, standard input."""

from __future__ import annotations

import glob
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from cepheid.errors import CepheidError, DataError, closest
from cepheid.files.parsed import PARSERS, is_parsed, log_format
from cepheid.files.partitions import Partitions, base_of, find_partitions

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".log": "log",  # one of those that log_format tells apart
    ".xes": "xes",
    ".jsonocel": "ocel",
    ".sqlite": "ocel",
}
FORMATS = ("parquet", "csv", "jsonl", "arrow", "delta", *PARSERS)
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
_ELSEWHERE = re.compile(r"\w[\w+.-]+://")  # hdfs://, s3a:// and the like, which Spark knows
_STREAM_LOG = "_spark_metadata"  # in which a stream on Spark says which files it completed
_FIRST_BYTES = {b"PAR1": ".parquet", b"ARRO": ".arrow", b"\xff\xff\xff\xff": ".arrow"}


@dataclass(frozen=True)
class EventFiles:
    """What --input stands for."""

    paths: tuple[Path, ...]
    format: str
    given: tuple[str, ...]
    partitions: Partitions | None = None
    nulls: tuple[str, ...] = ()  # texts in CSV that mean NULL, beside the empty one

    @property
    def addresses(self) -> list[str]:
        """What Spark reads: the files here, or what was given where that lies elsewhere."""
        return [str(path) for path in self.paths] or list(self.given)

    @property
    def base(self) -> str | None:
        """Where Spark begins to take the names of directories for columns, if it should."""
        if self.partitions is not None:
            return str(self.partitions.base) if self.partitions.complete else None
        if self.paths or len(self.given) != 1 or "=" not in self.given[0]:
            return None
        scheme, _, rest = self.given[0].partition("://")
        return f"{scheme}://{base_of(rest)}"

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.paths if path.is_file())


def find_files(given: Sequence[str], format: str | None = None, nulls: Sequence[str] = ()) -> EventFiles:
    """The files behind the paths, directories and globs, all of one format; `nulls` are texts in CSV that mean NULL."""
    return replace(_found(given, format), nulls=tuple(nulls))


def _found(given: Sequence[str], format: str | None) -> EventFiles:
    name = None if format is None else format.partition(":")[0] if is_parsed(format) else format
    if name is not None and name not in FORMATS:
        near = closest(name, FORMATS)
        raise CepheidError(f"no format '{format}'", hint=f"choose {near or 'one of ' + ', '.join(FORMATS)}")
    if any(_ELSEWHERE.match(item) for item in given):
        return _elsewhere(given, format)
    paths = [path for item in given for path in _expanded(item)]
    if format == "delta" or (format is None and all((path / "_delta_log").is_dir() for path in paths)):
        return EventFiles(tuple(paths), "delta", tuple(given))
    files = [file for path in paths for file in _files_in(path, format)]
    formats = {format or format_of(file) for file in files}
    if len(formats) > 1:
        raise CepheidError(f"--input mixes {' and '.join(sorted(formats))} files", hint="give files of one format")
    full = [file for file in files if file.stat().st_size > 0]  # writers leave empty parts behind
    if not full:
        what = "is empty" if len(files) == 1 else f"and {len(files) - 1} more are empty"
        raise DataError(f"{files[0]} {what}", hint="a file of events has at least the names of its columns")
    return EventFiles(tuple(full), formats.pop(), tuple(given), find_partitions(full, given))


def _elsewhere(given: Sequence[str], format: str | None) -> EventFiles:
    """Files that cannot be looked at from here."""
    named = {format or SUFFIXES.get(_suffix(Path(item)), "") for item in given}
    if len(named) > 1 or "" in named:
        raise CepheidError(f"the format of {given[0]} is not clear", hint="pass it with --format, as in parquet")
    return EventFiles((), named.pop(), tuple(given))


def _expanded(item: str) -> list[Path]:
    path = Path(item)
    if path.exists():
        return [path]
    if glob.has_magic(item):
        found = sorted(Path(name) for name in glob.glob(item, recursive=True))
        if found:
            return found
        raise CepheidError(f"--input {item}: no file has this name")
    near = closest(path.name, [other.name for other in path.parent.iterdir()]) if path.parent.is_dir() else None
    hint = f"did you mean {path.parent / near}?" if near else None
    raise CepheidError(f"--input {item}: there is no such file or directory", hint=hint)


def _files_in(path: Path, format: str | None) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / _STREAM_LOG).is_dir():
        return completed_files(path)
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _hidden(file.relative_to(path))]
    known = [file for file in files if _suffix(file) in SUFFIXES]
    chosen = files if format is not None and not known else known
    if not chosen:
        what = "is empty" if not files else f"holds no events: {files[0].name} has an unknown format"
        raise CepheidError(f"--input {path}: the directory {what}", hint="pass it with --format" if files else None)
    return chosen


def completed_files(folder: Path) -> list[Path]:
    """The files of a stream's output that belong to it: a stream that was killed leaves others beside them.

    Spark's log has a file for each batch, and now and then one that sums up all before it.
    """
    logs = [path for path in (folder / _STREAM_LOG).iterdir() if path.name.split(".")[0].isdigit()]
    logs.sort(key=lambda path: (int(path.name.split(".")[0]), path.suffix == ".compact"))
    sums = [index for index, path in enumerate(logs) if path.suffix == ".compact"]
    chosen: dict[str, Path] = {}
    for log in logs[sums[-1] if sums else 0 :]:
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:  # the first says the version
            entry = json.loads(line)
            path = Path(unquote(urlsplit(entry["path"]).path))
            name = str(path).partition(f"/{folder.name}/")[2] or path.name  # the folder may have been moved
            chosen[name] = folder / name
            if entry.get("action") == "delete":
                del chosen[name]
    found = sorted(path for path in chosen.values() if path.is_file())
    if not found:
        raise CepheidError(f"--input {folder}: the stream that writes there has not completed a batch yet")
    return found


def _hidden(path: Path) -> bool:
    """Spark's _SUCCESS and the like."""
    return any(part.startswith(("_", ".")) and "=" not in part for part in path.parts)


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def format_of(path: Path) -> str:
    """The format that a file's name tells.

    >>> format_of(Path("day.csv.gz")), format_of(Path("part-0.parquet"))
    ('csv', 'parquet')
    """
    found = SUFFIXES.get(_suffix(path))
    if found is None or found == "log":
        found = log_format(path)
    if found is None:
        raise CepheidError(f"the format of {path} is not clear from its name", hint="pass it with --format, as in csv")
    return found


def keep_piped(source: IO[bytes] | None = None) -> Path:
    """Standard input as a file in a directory of its own, which the caller removes; its first bytes tell the format."""
    folder = Path(tempfile.mkdtemp(prefix="cepheid-input-"))
    path = folder / "standard-input"
    with path.open("wb") as kept:
        shutil.copyfileobj(source or sys.stdin.buffer, kept)
    with path.open("rb") as kept:
        begin = kept.read(4096)
    suffix = _FIRST_BYTES.get(begin[:4]) or (".jsonl" if begin.lstrip()[:1] in (b"{", b"[") else ".csv")
    if suffix == ".csv" and log_format(path) is not None:
        suffix = ".log"
    return path.rename(path.with_suffix(suffix))
