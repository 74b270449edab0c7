"""The edges of the lossy automaton: which components may be skipped as missing, and at what score (AYAC section 4).

An edge leads from one observed component to the next; everything between them was not seen. `OPENING` stands for the
window's opening before the first observed event, `DEADLINE` for the window's end behind the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from cepheid.engine.scoring.losses import check_missing, day_of_losses, ends_of, gap_scale, unseen_item
from cepheid.errors import ModelError, warn
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.model import Ends, Model, ScoreTable, SegmentItem, TableArrays, join_tables, score_limit, score_table
from cepheid.model.distributions import Exponential
from cepheid.model.loss_kinds import HOURS
from cepheid.model.score_tables import table_arrays
from cepheid.plan.physical import Plan

CLOSED, CERTAIN = -2, -1  # no such edge; nothing to skip, so the score is 1
FALLS, RISES, NEITHER = 0, 1, 2  # how a score changes with the span: monotone ones give tighter bounds (AYAC 5.1)
TOLERANCE = 1e-7
NEVER_HAPPENS = SegmentItem("missing", 0.0, Exponential(mean=1.0))

Tabulate = Callable[[Sequence[SegmentItem], Ends], ScoreTable]


@dataclass(frozen=True)
class SkipEdge:
    """From one observed component to the next, with the components between them that were not seen."""

    source: int  # index among the positive components; -1: the window's opening
    target: int  # index among the positive components; their number: the window's end
    skipped: tuple[s.Component, ...]
    table: ScoreTable | None  # None: nothing is skipped; where losses depend on the hour, a bound of all hours
    kept: bool  # False: its score can never reach the threshold
    by_hour: tuple[ScoreTable, ...] = ()  # where losses depend on the hour, one for each interval of the day


@dataclass(frozen=True)
class Edges:
    """All edges, as explain shows them and as the kernel looks them up."""

    edges: tuple[SkipEdge, ...]
    number: npt.NDArray[np.int64]  # [source + 1, target]: table number, CERTAIN or CLOSED
    highest: npt.NDArray[np.float64]  # [source + 1, target]: log of the best score
    monotone: npt.NDArray[np.int64]  # [source + 1, target]: FALLS, RISES or NEITHER
    tables: TableArrays
    scale: float  # what one step of the time column is in the unit of the gaps
    hours: npt.NDArray[np.int64]  # by hour of the day: which table behind that of the edge; empty if losses do not
    day: int  # in steps of the time column, where losses depend on the hour


def build_edges(plan: Plan, tabulate: Tabulate | None = None) -> Edges:
    """The automaton's edges with their scores; those that can never reach the threshold are removed.

    `tabulate` makes the tables of scores: by default over spans in the unit of the gaps, with a small error.
    """
    bound = plan.bound
    model = check_missing(bound, plan.model)
    assert bound.window is not None
    scale = gap_scale(bound, model)
    window = bound.window.length * scale
    threshold = bound.threshold or 0.0
    tabulate = tabulate or partial(_table_of_spans, plan, window, scale)
    count = len(bound.positives)
    day = day_of_losses(bound, model)
    by_hour = [
        {
            component.variable: unseen_item(bound, model, component, window, hour)
            for component in bound.components
            if component.negative or not component.kleene or _has_gap(bound, model, component, window)
        }
        for hour in model.hours or (None,)
    ]
    items = by_hour[0]
    found = []
    for source in range(-1, count):
        for target in range(source + 1, count + 1):
            if source == -1 and target == count:
                continue
            skipped = _between(bound, source, target)
            if _possible(plan, target, skipped, items):
                edges = []
                for each in by_hour:
                    ends = _ends(plan, model, source, target, [(c.variable, each[c.variable]) for c in skipped])
                    edges.append(_edge(plan, source, target, skipped, each, ends, window, tabulate))
                found.append(edges[0] if len(edges) == 1 else _all_day(edges, threshold))
    last = () if plan.options.get("missing_last", False) else (bound.positives[-1].variable,)
    for each in by_hour:
        _warn_of_cost({name: item for name, item in each.items() if name not in last}, threshold)
    hours = np.zeros(0, np.int64)
    if day:
        interval = np.searchsorted(model.hours, np.arange(HOURS), side="right")  # the first one begins at midnight
        hours = interval.astype(np.int64) if len(by_hour) > 1 else np.zeros(HOURS, np.int64)
    return _arrays(tuple(found), count, scale, hours, day)


def _all_day(edges: Sequence[SkipEdge], threshold: float) -> SkipEdge:
    """One edge for all hours, with a table that no hour's is above.

    The greatest of several lines is convex between the knots of all, so that a straight line there lies above it.
    """
    tables = [edge.table for edge in edges if edge.table is not None]
    if not tables:
        return edges[0]
    knots = np.unique(np.concatenate([table.knots for table in tables]))
    highest = np.max([table.score(knots) for table in tables], axis=0)
    bound = replace(tables[0], arrays=table_arrays(knots, highest))
    return replace(edges[0], table=bound, kept=bound.highest >= threshold, by_hour=tuple(tables))


def _has_gap(bound: BoundQuery, model: Model, group: s.Component, window: float) -> bool:
    """May a Kleene group be missing as a whole? Only if the model says when it comes."""
    try:
        unseen_item(bound, model, group, window)
    except ModelError:
        return False
    return True


def _ends(plan: Plan, model: Model, source: int, target: int, unseen: list[tuple[str, SegmentItem]]) -> Ends:
    if plan.scoring != "posterior":
        return Ends()
    positives = plan.bound.positives
    return ends_of(model, unseen, positives[target] if target < len(positives) else None, source < 0)


def _between(bound: BoundQuery, source: int, target: int) -> tuple[s.Component, ...]:
    """The components strictly between two positive ones, in the order of the pattern."""
    where = {component.variable: index for index, component in enumerate(bound.components)}
    low = -1 if source < 0 else where[bound.positives[source].variable]
    high = len(bound.components) if target == len(bound.positives) else where[bound.positives[target].variable]
    return bound.components[low + 1 : high]


def _possible(plan: Plan, target: int, skipped: tuple[s.Component, ...], items: dict[str, SegmentItem]) -> bool:
    missing = [component for component in skipped if not component.negative]
    if any(component.variable not in items for component in missing):
        return False
    if target == len(plan.bound.positives) and missing:
        return bool(plan.options.get("missing_last", False))
    return True


def _edge(
    plan: Plan,
    source: int,
    target: int,
    skipped: tuple[s.Component, ...],
    items: dict[str, SegmentItem],
    ends: Ends,
    window: float,
    tabulate: Tabulate,
) -> SkipEdge:
    if not skipped:
        return SkipEdge(source, target, skipped, None, kept=True)
    threshold = plan.bound.threshold or 0.0
    parts = [items[component.variable] for component in skipped]
    if score_limit(parts, window, plan.scoring) < threshold:  # type: ignore[arg-type]
        # Nothing is computed for an edge that is dropped anyway.
        return SkipEdge(source, target, skipped, score_table([NEVER_HAPPENS], window), kept=False)
    table = tabulate(parts, ends)
    return SkipEdge(source, target, skipped, table, kept=table.highest >= threshold)


def _table_of_spans(plan: Plan, window: float, scale: float, parts: Sequence[SegmentItem], ends: Ends) -> ScoreTable:
    whole = scale == 1.0 and plan.bound.schema.type_of(plan.bound.schema.time) is DataType.INT
    return score_table(parts, window, plan.scoring, TOLERANCE, whole, ends)  # type: ignore[arg-type]


def _warn_of_cost(items: dict[str, SegmentItem], threshold: float) -> None:
    losses = sorted((item.loss for item in items.values() if item.kind == "missing"), reverse=True)
    if len(losses) >= 2 and 0.0 < threshold < losses[0] * losses[1]:
        warn(
            f"THRESHOLD {threshold:g} is below {losses[0] * losses[1]:.3g}, the product of two losses: matches with "
            "several missing events are included, which is slow and adds very improbable matches"
        )


def _arrays(edges: tuple[SkipEdge, ...], count: int, scale: float, hours: npt.NDArray[np.int64], day: int) -> Edges:
    number = np.full((count + 1, count + 1), CLOSED, np.int64)
    highest = np.full((count + 1, count + 1), -np.inf)
    monotone = np.full((count + 1, count + 1), NEITHER, np.int64)
    tables: list[ScoreTable] = []
    for edge in edges:
        at = edge.source + 1, edge.target
        if not edge.kept:
            continue
        if edge.table is None:
            number[at], highest[at], monotone[at] = CERTAIN, 0.0, FALLS
            continue
        number[at] = len(tables)
        highest[at] = np.log(edge.table.highest) if edge.table.highest > 0 else -np.inf
        monotone[at] = FALLS if edge.table.falls else RISES if edge.table.rises else NEITHER
        tables += [edge.table, *edge.by_hour]
    if not tables:
        tables.append(score_table([NEVER_HAPPENS], 1.0))
    return Edges(edges, number, highest, monotone, _joined(tuple(tables)), scale, hours, day)


@lru_cache(maxsize=64)
def _joined(tables: tuple[ScoreTable, ...]) -> TableArrays:
    """One after the other. Tables are kept from call to call, so that what they are joined to can be, too."""
    return join_tables(tables)


def describe_edges(plan: Plan) -> str:
    """The automaton with its edge scores, as in AYAC's figure 1(b)."""
    bound = plan.bound
    names = ["(opening)", *(component.variable for component in bound.positives), "(deadline)"]
    lines = []
    for edge in build_edges(plan).edges:
        label = "".join("N" if component.negative else "P" for component in edge.skipped)
        best = 1.0 if edge.table is None else edge.table.highest
        score = f"S({label}), at most {best:.3g}" if label else "1"
        skipped = ", ".join(("!" if c.negative else "") + c.variable for c in edge.skipped)
        note = f"   [{skipped} unseen]" if skipped else ""
        dropped = "" if edge.kept else "   dropped: below the threshold"
        lines.append(f"{names[edge.source + 1]} -> {names[edge.target + 1]}: {score}{note}{dropped}")
    return "\n".join(lines)
