"""The runs of an experiment, summarised: medians and spreads by case and contestant, and agreement of results."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One contestant in one case."""

    series: str
    x: float | str
    contestant: str
    events: int
    runs: int
    seconds: float
    spread: float
    peak_mb: float
    matches: int | None
    metrics: Mapping[str, float]

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    def value(self, name: str) -> float:
        """A number of the row, by name: one of its fields or metrics."""
        if name in self.metrics:
            return self.metrics[name]
        return float(getattr(self, name, float("nan")) if hasattr(self, name) else float("nan"))


@dataclass(frozen=True)
class Summary:
    """All rows of an experiment, in the order of its cases."""

    rows: tuple[Row, ...]

    def get(self, contestant: str, x: float | str | None = None, series: str | None = None) -> Row | None:
        """The row of a contestant in a case; without x the first that fits."""
        for row in self.rows:
            if row.contestant == contestant and x in (None, row.x) and series in (None, row.series):
                return row
        return None

    def value(self, contestant: str, x: float | str | None = None, series: str | None = None, of: str = "") -> float:
        """A number of a contestant in a case; not a number where it did not run."""
        row = self.get(contestant, x, series)
        return row.value(of or "events_per_second") if row is not None else float("nan")

    def ratio(self, over: str, under: str, x: float | str, series: str | None = None, of: str = "") -> float:
        """How many times one contestant's number is the other's."""
        return self.value(over, x, series, of) / self.value(under, x, series, of)

    def xs(self, contestant: str | None = None, series: str | None = None) -> list[float | str]:
        """The points of the axis where a contestant ran, from small to large."""
        found = [row.x for row in self.rows if contestant in (None, row.contestant) and series in (None, row.series)]
        return sorted(dict.fromkeys(found), key=lambda x: (isinstance(x, str), x if isinstance(x, str) else float(x)))

    def contestants(self, series: str | None = None) -> list[str]:
        """The names of the contestants."""
        return list(dict.fromkeys(row.contestant for row in self.rows if series in (None, row.series)))

    def series(self) -> list[str]:
        """The names of the series."""
        return list(dict.fromkeys(row.series for row in self.rows))


def summarise(runs: Iterable[Mapping[str, Any]]) -> Summary:
    """Medians over the rounds of every contestant in every case."""
    groups: dict[tuple[str, Any, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        if run.get("error"):
            continue
        groups.setdefault((run["series"], run["x"], run["contestant"]), []).append(run)
    return Summary(tuple(_row(*key, group) for key, group in groups.items()))


def _row(series: str, x: float | str, contestant: str, group: Sequence[Mapping[str, Any]]) -> Row:
    seconds = [float(run["seconds"]) for run in group]
    measured = [_metrics(run["metrics"]) for run in group]
    names = dict.fromkeys(name for metrics in measured for name in metrics)
    return Row(
        series=series,
        x=x,
        contestant=contestant,
        events=group[0]["events"],
        runs=len(group),
        seconds=statistics.median(seconds),
        spread=spread(seconds),
        peak_mb=statistics.median(float(run["peak_mb"]) for run in group),
        matches=group[0]["matches"],
        metrics={name: statistics.median(m[name] for m in measured if name in m) for name in names},
    )


def _metrics(kept: Any) -> dict[str, float]:
    return dict(json.loads(kept)) if isinstance(kept, str) else dict(kept or {})


def spread(seconds: Sequence[float]) -> float:
    """Half the distance between the quartiles, as a share of the median."""
    if len(seconds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / middle if middle else 0.0


def disagreement(runs: Sequence[Mapping[str, Any]], agreeing: Sequence[str]) -> str:
    """Why contestants that should find the same matches do not; empty if they do.

    Only those over the same number of events are compared: a slow one may get a shorter stream.
    """
    by_events: dict[int, dict[str, tuple[Any, Any]]] = {}
    for run in runs:
        if run["contestant"] in agreeing and not run.get("error"):
            by_events.setdefault(run["events"], {})[run["contestant"]] = (run["matches"], run["digest"])
    for found in by_events.values():
        counts = {matches for matches, _ in found.values() if matches is not None}
        digests = {digest for _, digest in found.values() if digest is not None}
        if len(counts) > 1 or len(digests) > 1:
            return ", ".join(f"{name} found {matches} ({digest})" for name, (matches, digest) in found.items())
    return ""
