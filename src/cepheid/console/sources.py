"""What a live query is fed with: a table replayed at a chosen speed, or the files that come into a directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from cepheid.console.workspace import OpenTable
from cepheid.engine.data.table import ordered
from cepheid.files.event_files import read_events
from cepheid.files.input_files import EventFiles
from cepheid.language.schema import Schema


def replayed(table: OpenTable, per_second: float, steps_per_second: float = 4.0) -> Iterator[pa.Table]:
    """The events of a table in order of time, so many a second; the caller waits between the pieces."""
    schema = Schema.from_arrow(table.events.schema, **table.roles.arguments())
    events = ordered(table.events, schema).table
    size = max(1, int(per_second / steps_per_second))
    for start in range(0, events.num_rows, size):
        yield events.slice(start, size)


class Watched:
    """The files of a directory that have not been read yet, in the order of their times."""

    def __init__(self, folder: Path, time: str) -> None:
        self.folder, self.time = folder, time
        self.seen: set[Path] = set()

    def new_events(self, like: pa.Schema, format_of: EventFiles) -> Iterator[pa.Table]:
        """The events of each new file, with the columns of those that were there at first."""
        files = [path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith((".", "_"))]
        fresh = [path for path in files if path not in self.seen and path.stat().st_size > 0]
        for path in sorted(fresh, key=lambda path: (path.stat().st_mtime_ns, path.name)):
            self.seen.add(path)
            events = read_events(replace(format_of, paths=(path,), partitions=None), time=self.time)
            yield events.select(like.names).cast(like)
