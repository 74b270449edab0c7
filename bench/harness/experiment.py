"""What an experiment is: cases along an axis, and in each case contestants that run in turns over the same stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.harness.summary import Summary

SIZES = ("smoke", "quick", "full")
"""smoke: does it work, in seconds; quick: the shape, in a minute; full: what is published."""


class Unavailable(RuntimeError):
    """A contestant or a whole case cannot be run here; the message says what is missing."""


@dataclass(frozen=True)
class Outcome:
    """What a run gave, looked at after the clock has stopped.

    `digest` stands for the matches themselves; contestants that say the same stream and query must agree in it, or
    where one of them cannot say it, in the number of matches. `seconds` is the contestant's own clock, for one that
    runs in another process and leaves its start out.
    """

    matches: int | None = None
    digest: str | None = None
    seconds: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Contestant:
    """One way to answer the case's query. `run` is timed, `inspect` looks at what it returned and is not.

    One that warms up inside its run, before its own clock starts, is spared the run that does not count.
    """

    name: str
    run: Callable[[], Any]
    events: int
    inspect: Callable[[Any], Outcome] = lambda result: Outcome()
    agrees: bool = True
    most_repeats: int | None = None
    warms_itself: bool = False


def available(makers: Sequence[Callable[[], Contestant]]) -> list[Contestant]:
    """The contestants that can be had; what cannot be is one that says why when its turn comes, so that a page does."""
    found = []
    for make in makers:
        try:
            found.append(make())
        except Unavailable as problem:
            found.append(absent(str(problem)))
    return found


def absent(why: str) -> Contestant:
    """A contestant that is not there."""

    def run() -> None:
        raise Unavailable(why)

    return Contestant(why.split()[0], run, 0, agrees=False, warms_itself=True)


@dataclass(frozen=True)
class Case:
    """One point of the axis. Contestants are made when their turn comes: streams of all cases would fill the memory.

    Cases of one series come from light to heavy: a contestant that was too slow is left out of the heavier ones.
    """

    x: float | str
    make: Callable[[], Sequence[Contestant]]
    series: str = ""

    @property
    def key(self) -> str:
        return f"{self.series}|{self.x}"


@dataclass(frozen=True)
class Verdict:
    """What an experiment says of the paper's claim: our number, whether the shape holds, and why not."""

    number: str
    holds: bool | None
    why: str = ""


@dataclass(frozen=True)
class Experiment:
    """One figure or table, ours beside the paper's.

    `mode` says how Cepheid ran. `ours` are the beginnings of the names of contestants that are what a user gets; any
    other one that is ahead of them is listed in the report with a reason (bench/reasons.toml), but for `yardsticks`:
    pipelines without an engine, and techniques that are shown for comparison with each other only. Who is ahead is
    told by `first_by`, or by what is plotted.
    """

    name: str
    source: str
    title: str
    claim: str
    x: str
    cases: Callable[[str], Sequence[Case]]
    judge: Callable[[Summary], Verdict]
    y: str = "events_per_second"
    also: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = True
    cores: int = 1
    weight: float = 1.0
    needs: tuple[str, ...] = ()
    notes: str = ""
    mode: str = "batch over a table in memory"
    ours: tuple[str, ...] = ("Cepheid",)
    yardsticks: tuple[str, ...] = ()
    less_is_better: bool = False
    first_by: str = ""
