"""From what kernels find to matches: completion, OUTPUT, limits, errors for confidences that cost too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cepheid.engine.data.matches import MISSING, NEVER, Chosen, Matches, sortable
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import Prepared
from cepheid.engine.limits import check_limit
from cepheid.engine.search.intervals.results import (
    BOUNDED,
    EVALUATED,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    PEAK,
    TOO_MANY_RUNS,
    Results,
)
from cepheid.engine.values.plain import value_column
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan

BEGINNING = np.iinfo(np.int64).min


def check_cost(cost: float) -> None:
    """An error if the exact confidence of some match would take too long."""
    if cost > 0.0:
        raise EngineError(
            f"the exact confidence of a match needs about {cost:.0e} steps: several of its neighbours could disturb it "
            "in several places, and all their orders count",
            hint="count time in larger steps (unit), add CONFIDENCE c, tighten the conditions, "
            "or raise tolerance or max_cost",
        )


def matches_of(plan: Plan, prepared: Prepared, results: Results, counters: object, cost: float) -> Matches:
    """What a kernel found, with rows of the table."""
    check_cost(cost)
    size = int(results.size[0])
    sizes = results.sizes[:size]
    rows = prepared.rows[results.events[: int(results.size[1])]]
    place_of = np.repeat(np.tile(np.arange(sizes.shape[1]), size), sizes.ravel())
    chosen = []
    for place, component in enumerate(plan.bound.positives):
        here = rows[place_of == place]
        if component.kleene:
            chosen.append(Chosen(here, np.concatenate([[0], np.cumsum(sizes[:, place])]).astype(np.int64)))
        else:
            column = np.full(size, MISSING, np.int64)
            column[sizes[:, place] > 0] = here
            chosen.append(Chosen(column))
    scored = plan.is_lossy
    return Matches(
        tuple(chosen),
        results.completion[:size],
        probability=np.minimum(results.probability[:size], 1.0) if scored else None,
        confidence=results.confidence[:size],
        earliest=results.earliest[:size] * prepared.step,
        latest=results.latest[:size] * prepared.step,
        counters=_counted(prepared, counters),
        truncated=_truncated(plan, counters),
    )


def _counted(prepared: Prepared, counters: Any) -> dict[str, int]:
    names = {"evaluations": EVALUATED, "partial": PARTIAL, "peak": PEAK, "judged": JUDGED}
    names["within_tolerance"] = BOUNDED  # matches whose confidence came of bounds; all others are exact
    found = {"scanned": prepared.scanned, "candidates": len(prepared.rows), "late": prepared.late}
    return found | {name: int(counters[index]) for name, index in names.items()}


def _truncated(plan: Plan, counters: Any) -> bool:
    name = "max_partial_matches" if counters[OVERFLOW] == TOO_MANY_RUNS else "max_matches"
    return check_limit(plan, name, bool(counters[OVERFLOW]))


def searched(plan: Plan, after: int, until: int) -> tuple[int, int]:
    """The interval in which matches must complete before OUTPUT picks among them: TOP is known at the end only."""
    if plan.bound.output.mode is not s.OutputMode.TOP:
        return after, until
    return BEGINNING, NEVER if until == NEVER else BEGINNING


def picked(plan: Plan, events: EventTable, matches: Matches, until: int) -> Matches:
    """What OUTPUT picks among the matches."""
    output = plan.bound.output
    if output.mode is s.OutputMode.TOP:
        if until < NEVER:
            return matches.take(np.arange(0))
        matches = replace(matches, completion=np.full(len(matches), NEVER, np.int64))
        return most_confident(plan, events, matches, output.count or 1)
    return matches


def most_confident(plan: Plan, events: EventTable, matches: Matches, count: int) -> Matches:
    """TOP k BY CONFIDENCE, per partition; equal ones by the earliest possible end, then in the order of events."""
    assert matches.confidence is not None
    assert matches.latest is not None
    first, last = matches.chosen[0].first(), matches.chosen[-1].last()
    part = _partitions(plan, events, matches)
    keys = (-events.instant[first], events.instant[last], matches.latest, -np.round(matches.confidence, 9), part)
    order = np.lexsort(keys)
    ranked = part[order]
    begins = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if len(order) else order
    rank = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    kept = rank < count
    # Where the last that is kept and the first that is not tie, their events decide.
    last = np.flatnonzero(rank == count) - 1
    same = np.ones(len(last), bool)
    for key in keys:
        same &= key[order[last]] == key[order[last + 1]]
    for place in last[same]:
        here = order[place - rank[place] : np.searchsorted(ranked, ranked[place], "right")]
        tied = np.flatnonzero(np.all([key[here] == key[order[place]] for key in keys], axis=0))
        among = sorted(tied, key=lambda each: _by_events(plan, events, matches, int(here[each])))
        kept[place - rank[place] + tied] = False
        kept[place - rank[place] + np.array(among[: count - tied[0]])] = True
    return matches.take(np.sort(order[kept]))


def _by_events(plan: Plan, events: EventTable, matches: Matches, match: int) -> tuple[Any, ...]:
    """The instants of a match's events, their values and their places: what tells matches apart that tie otherwise."""
    names = sorted(plan.bound.schema.names)
    groups = matches.take(np.array([match])).groups()[0]
    instants = [tuple(int(events.instant[row]) for row in group) for group in groups]
    return instants, [[sortable(_values(events, names, row)) for row in group] for group in groups], groups


def _values(events: EventTable, names: Sequence[str], row: int) -> list[object]:
    return [value_column(events.table.column(name).slice(row, 1))[0].as_py() for name in names]


def _partitions(plan: Plan, events: EventTable, matches: Matches) -> Any:
    """A number for the equivalence-test values of each match: an event of an ANY component may lack some."""
    part = np.zeros(len(matches), np.int64)
    for name in plan.bound.equivalence:
        column = events.table.column(name).combine_chunks().dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        known = np.full(len(matches), -1, np.int64)
        for group in matches.chosen:
            for rows in (group.first(), group.last()):
                known = np.where(known < 0, codes[rows], known)
        part = np.unique(part * (int(known.max(initial=0)) + 2) + known, return_inverse=True)[1].astype(np.int64)
    return part
