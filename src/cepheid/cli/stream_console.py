"""A stream that runs on Spark, watched in the console: `cepheid run --stream --console`."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.cli.progress import StreamNumbers
from cepheid.console.answers import matches_page
from cepheid.console.server import Server
from cepheid.console.streams import Stream, Streams
from cepheid.console.workspace import Workspace
from cepheid.files.roles import Roles
from cepheid.report.matches import Shown


@dataclass
class ConsoleWatch:
    """Tells a page of the console what a stream does. Matches are drawn where they come to this process."""

    roles: Roles
    server: Server
    stream: Stream
    told: StreamNumbers = field(default_factory=StreamNumbers)
    waiting: list[pa.Table] = field(default_factory=list)  # matches of the batch that is being told

    def matches(self, found: pa.Table) -> None:
        """Takes the matches of a batch."""
        self.waiting.append(found)

    def numbers(self, numbers: StreamNumbers) -> None:
        """Says how far the stream is, with the matches since the last time."""
        if numbers == self.told:
            return
        found = pa.concat_tables(self.waiting) if self.waiting else None
        self.waiting.clear()
        page = matches_page(Shown(found, self.roles.time, self.roles.type), 0) if found is not None else NOTHING
        self.stream.say(
            "step",
            numbers={
                "events": numbers.events,
                "matches": numbers.matches,
                "late": numbers.late,
                "retained": numbers.retained,
                "state_bytes": numbers.state_bytes,
                "rate": numbers.rows_per_second,
                "watermark": numbers.watermark,
            },
            came=numbers.events - self.told.events,
            found=numbers.matches - self.told.matches,
            timestamps=found is not None and pa.types.is_temporal(found.schema.field("match_start").type),
            **page,
        )
        self.told = numbers

    def end(self) -> None:
        """The stream has ended; the page keeps what it shows."""
        self.stream.say("end")
        self.server.stop()


NOTHING = {"first": 0, "bars": [], "marks": [], "columns": [], "rows": [], "starts": []}


def console_watch(roles: Roles, query: str) -> ConsoleWatch:
    """A console that shows one stream, served beside it."""
    streams = Streams()
    stream = streams.adopt(query)
    return ConsoleWatch(roles, Server(Workspace(), streams=streams).start(), stream)
