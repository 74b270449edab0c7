"""How far a Spark job is: one line on the terminal, fed by Spark's own status, and nothing when piped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.status import Status

from cepheid.cli.messages import err

_POLL = 0.5  # seconds between two looks


@dataclass(frozen=True)
class StreamNumbers:
    """Where a stream stands."""

    batches: int = 0
    events: int = 0
    late: int = 0
    matches: int = 0
    rows_per_second: float = 0.0
    watermark: str | None = None
    state_bytes: int = 0
    retained: int = 0  # events that later matches may need

    def __str__(self) -> str:
        parts = [f"{self.events:,} events", f"{self.rows_per_second:,.0f}/s", f"{self.matches:,} matches"]
        parts += [f"{self.late:,} late"] if self.late else []
        parts += [f"watermark {self.watermark}"] if self.watermark else []
        return " · ".join([*parts, f"state {bytes_text(self.state_bytes)}"])


def bytes_text(size: float) -> str:
    """A size in words.

    >>> bytes_text(512), bytes_text(3_500_000)
    ('512 B', '3.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return ""


def stream_numbers(progresses: Iterable[Mapping[str, Any]]) -> StreamNumbers:
    """The sum of what Spark said about each batch, and the last word on everything else.

    >>> told = {"events": 90, "late": 1, "matches": 4, "retained": 7, "state_bytes": 2000}
    >>> batch = {"numInputRows": 100, "processedRowsPerSecond": 50.0, "observedMetrics": {"cepheid": told}}
    >>> print(stream_numbers([{**batch, "batchId": 0}, {**batch, "batchId": 1}]))
    200 events · 50/s · 8 matches · 2 late · state 2.0 kB
    """
    known = {progress["batchId"]: progress for progress in progresses}
    events = late = matches = state = retained = 0
    speed, watermark = 0.0, None
    for _, progress in sorted(known.items()):
        events += int(progress.get("numInputRows") or 0)
        speed = float(progress.get("processedRowsPerSecond") or speed)
        watermark = (progress.get("eventTime") or {}).get("watermark") or watermark
        for observed in (progress.get("observedMetrics") or {}).values():
            reported = observed if isinstance(observed, Mapping) else observed.asDict()
            late += int(reported.get("late") or 0)
            matches += int(reported.get("matches") or 0)
            state = int(reported.get("state_bytes") or state)
            retained = int(reported.get("retained") or retained)
    return StreamNumbers(len(known), events, late, matches, speed, watermark, state, retained)


class StreamWatch:
    """Waits for a stream, showing where it stands on a terminal."""

    def __init__(self, query: Any) -> None:
        self.query = query
        self.seen: dict[int, Mapping[str, Any]] = {}

    @property
    def numbers(self) -> StreamNumbers:
        """Where it stands now."""
        return stream_numbers(self.seen.values())

    def look(self) -> None:
        """Takes in what Spark said since."""
        for progress in self.query.recentProgress:
            reported = progress if isinstance(progress, Mapping) else progress.jsonValue()
            self.seen[int(reported["batchId"])] = reported

    def wait(self, tell: Callable[[StreamNumbers], None] = lambda _: None) -> None:
        """Until the stream ends or is interrupted; then it is stopped in good order. `tell` hears how far it is."""
        with Status("waiting for the first batch ...", console=err) as status:
            try:
                while self.query.isActive:
                    self.look()
                    if self.seen:
                        status.update(str(self.numbers))
                        tell(self.numbers)
                    time.sleep(_POLL)
            except KeyboardInterrupt:
                self.query.stop()
        self.look()
        tell(self.numbers)
        failure = self.query.exception()
        if failure is not None:
            raise failure


@contextmanager
def batch_progress(session: Any) -> Iterator[None]:
    """A bar of finished tasks while the block runs, on a terminal."""
    if not err.is_terminal:
        yield
        return
    tracker = session.sparkContext.statusTracker()
    done = threading.Event()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        bar = bars.add_task("Spark", total=None)

        def follow() -> None:
            while not done.wait(_POLL):
                stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                total, finished = sum(s.numTasks for s in known), sum(s.numCompletedTasks for s in known)
                text = f"{finished} of {total} tasks" if known else "Spark"
                bars.update(bar, description=text, total=total or None, completed=finished)

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
