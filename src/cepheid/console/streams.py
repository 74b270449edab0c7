"""Streams that run beside the page: each in a thread of its own, its news read by whoever listens."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

import cepheid
from cepheid.api import sase_query
from cepheid.console.answers import error_of, matches_page, shown_of
from cepheid.console.sources import Watched, replayed
from cepheid.console.workspace import OpenTable
from cepheid.draw.text import value_text
from cepheid.errors import CepheidError
from cepheid.files.input_files import find_files
from cepheid.runners.live import Live

_STEPS = 4.0  # a second
_LOOK = 0.5  # seconds between two looks into a directory
_MOST_NEWS = 2_000  # that are kept for who listens late


@dataclass
class Stream:
    """What a running stream has said so far."""

    number: int
    news: list[dict[str, object]] = field(default_factory=list)
    dropped: int = 0  # old news that are gone
    changed: threading.Condition = field(default_factory=threading.Condition)
    stopped: threading.Event = field(default_factory=threading.Event)
    ended: bool = False
    query: str | None = None  # of one that something else runs, and that the page only watches

    def say(self, kind: str, **told: object) -> None:
        """Adds a piece of news."""
        with self.changed:
            self.news.append({"kind": kind, **told})
            if len(self.news) > _MOST_NEWS:
                self.dropped += len(self.news) - _MOST_NEWS
                del self.news[:-_MOST_NEWS]
            self.ended = self.ended or kind == "end"
            self.changed.notify_all()

    def listen(self, patience: float = 15.0) -> Iterator[dict[str, object] | None]:
        """All news, those of the past first; None now and then while there are none, so that a listener can go."""
        place = 0
        while True:
            with self.changed:
                if place >= self.dropped + len(self.news):
                    if self.ended:
                        return
                    self.changed.wait(patience)
                fresh = self.news[max(0, place - self.dropped) :]
                place = self.dropped + len(self.news)
            yield from fresh
            if not fresh:
                yield None


class Streams:
    """All streams that the console runs."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.given = dict(given or {})  # options of `match`
        self.running: dict[int, Stream] = {}
        self.numbers = itertools.count(1)

    def start(self, text: str, table: OpenTable, per_second: float, delay: str, watch: bool) -> Stream:
        """Begins to replay a table, or to watch the directory that it was read from."""
        query = sase_query(text)
        roles = table.roles.arguments()
        live = query.live(table.events.schema, delay=delay.strip() or 0, **roles, **self.given)
        stream = Stream(next(self.numbers))
        self.running[stream.number] = stream
        target = _watch if watch and table.folder is not None else _replay
        arguments = (stream, query, live, table, per_second)
        threading.Thread(target=_guarded, args=(target, *arguments), daemon=True).start()
        return stream

    def adopt(self, query: str) -> Stream:
        """A stream that something else runs, and tells the news of."""
        stream = Stream(next(self.numbers), query=query)
        self.running[stream.number] = stream
        return stream

    def stream(self, number: int) -> Stream:
        """A stream by its number."""
        if number not in self.running:
            raise CepheidError("there is no such stream")
        return self.running[number]

    def stop(self) -> None:
        """Ends all streams."""
        for stream in self.running.values():
            stream.stopped.set()


def _guarded(target: Any, stream: Stream, *arguments: object) -> None:
    try:
        target(stream, *arguments)
    except CepheidError as error:
        stream.say("error", error=error_of(error))
    except Exception as error:  # a thread has nobody else to tell
        stream.say("error", error={"message": f"{type(error).__name__}: {error}", "hint": None, "shown": str(error)})
    stream.say("end")


def _replay(stream: Stream, query: cepheid.Query, live: Live, table: OpenTable, per_second: float) -> None:
    begin = time.monotonic()
    for number, events in enumerate(replayed(table, per_second, _STEPS)):
        if stream.stopped.wait(max(0.0, begin + number / _STEPS - time.monotonic())):
            return
        _step(stream, query, live, table, events)
    _step(stream, query, live, table, None)


def _watch(stream: Stream, query: cepheid.Query, live: Live, table: OpenTable, _: float) -> None:
    assert table.folder is not None
    watched = Watched(table.folder, table.roles.time)
    files = find_files([str(table.folder)])
    while not stream.stopped.is_set():
        for events in watched.new_events(table.events.schema, files):
            _step(stream, query, live, table, events)
        stream.stopped.wait(_LOOK)


def _step(stream: Stream, query: cepheid.Query, live: Live, table: OpenTable, events: pa.Table | None) -> None:
    """Sends events, None for the end of all, and tells what that gave: the numbers, and the first of the matches."""
    begin = time.perf_counter()
    found: pa.Table = live.finish() if events is None else live.send(events)
    seconds = time.perf_counter() - begin
    shown = shown_of(query, found, table)
    newest = None
    if events is not None and events.num_rows:
        newest = value_text(max(value for value in events.column(table.roles.time).to_pylist() if value is not None))
    stream.say(
        "step",
        numbers={**asdict(live.numbers), "step_seconds": seconds, "newest": newest},
        came=0 if events is None else events.num_rows,
        found=found.num_rows,
        timestamps=shown.is_timestamp,
        **matches_page(shown, 0),
    )
