"""Where Cepheid is not the first, and where a paper's shape does not hold: each with what a person says about it.

Reasons are in bench/reasons.toml, apart from what is generated: a table for each experiment, in it a text by the name
of the contestant that is ahead ("*" for all of them), or `not_held` for the paper's claim.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.experiment import Experiment, Verdict
from bench.harness.store import ROOT
from bench.harness.summary import Summary

REASONS = ROOT / "bench" / "reasons.toml"
NOT_TOLD_APART = 1.05  # ahead by less than this is a tie on a small machine
YARDSTICKS = (
    "Beside contestants that answer the same query. Left out are yardsticks: pipelines with nothing in the engine's "
    "place, and the papers' plans in a kernel that has one query built in. Ahead by less than 5% is a tie."
)
EVERY = "*"
NO_REASON = "**no reason is written down yet**"
Reasons = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Ahead:
    """A contestant that is ahead of ours: in how many cases, and the worst of them."""

    contestant: str
    cases: int
    of: int
    ratio: float
    where: str


def read_reasons(path: Path | None = None) -> Reasons:
    """What was written down."""
    place = path or REASONS
    return tomllib.loads(place.read_text(encoding="utf-8")) if place.exists() else {}


def lagging(experiment: Experiment, summary: Summary) -> list[Ahead]:
    """Every contestant that is ahead of the best of ours somewhere."""
    worst: dict[str, Ahead] = {}
    for series in summary.series():
        for x in summary.xs(series=series):
            for name, ratio in ahead_at(experiment, summary, x, series).items():
                before = worst.get(name)
                where = f"{series}, {x}" if series else str(x)
                if before is None or ratio > before.ratio:
                    worst[name] = Ahead(name, 0, 0, ratio, where)
    counted = []
    for name, each in worst.items():
        cases = [(x, series) for series in summary.series() for x in summary.xs(name, series)]
        times = sum(name in ahead_at(experiment, summary, x, series) for x, series in cases)
        counted.append(Ahead(name, times, len(cases), each.ratio, each.where))
    return sorted(counted, key=lambda each: -each.ratio)


def ahead_at(experiment: Experiment, summary: Summary, x: float | str, series: str) -> dict[str, float]:
    """Who is ahead of the best of ours in a case, and how many times."""
    by = experiment.first_by or experiment.y
    rates = {
        name: value
        for name in summary.contestants(series)
        if not math.isnan(value := summary.value(name, x, series, by)) and value > 0
    }
    sign = -1 if experiment.less_is_better else 1
    ours = [rate for name, rate in rates.items() if name.startswith(experiment.ours)]
    if not ours:
        return {}
    best = max(ours, key=lambda rate: sign * rate)
    ratios = {name: (rate / best) ** sign for name, rate in rates.items() if not name.startswith(experiment.ours)}
    return {
        name: ratio
        for name, ratio in ratios.items()
        if ratio > NOT_TOLD_APART and not name.startswith(experiment.yardsticks or ("\0",))
    }


def lagging_lines(found: Sequence[tuple[Experiment, Summary]], reasons: Reasons) -> list[str]:
    """The section of the report."""
    text = ["", "<a id='not-first'></a>", "", "## Where Cepheid is not the first", "", YARDSTICKS, ""]
    rows = []
    for experiment, summary in found:
        told = reasons.get(experiment.name, {})
        # One reason for all of them: the one that is furthest ahead stands for the others.
        for each in lagging(experiment, summary)[: 1 if EVERY in told else None]:
            why = told.get(each.contestant) or told.get(EVERY) or NO_REASON
            place = f"x{each.ratio:,.2f} at {each.where}; in {each.cases} of {each.of} cases"
            rows.append(f"| [{experiment.name}](#{experiment.name}) | {each.contestant} | {place} | {one_line(why)} |")
    if not rows:
        return [*text, "In no row."]
    return [*text, "| experiment | ahead | by, at most | the reason, and what is planned |", "|---|---|---|---|", *rows]


def not_held_lines(found: Sequence[tuple[Experiment, Verdict]], reasons: Reasons) -> list[str]:
    """Claims that were not seen here."""
    text = ["", "<a id='not-held'></a>", "", "## Where a claim does not hold", ""]
    rows = []
    for experiment, verdict in found:
        if verdict.holds is False:
            why = reasons.get(experiment.name, {}).get("not_held") or verdict.why or NO_REASON
            rows.append(f"| [{experiment.name}](#{experiment.name}) | {experiment.claim} | {one_line(why)} |")
    if not rows:
        return [*text, "Every claim holds."]
    return [*text, "| experiment | the claim | why not |", "|---|---|---|", *rows]


def one_line(text: str) -> str:
    """A text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
