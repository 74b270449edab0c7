"""Measures, on a sample of the events, what the cost model wants to know about a query."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.keys import codes
from cepheid.engine.data.table import EventTable
from cepheid.engine.values.columnwise import condition
from cepheid.engine.values.plain import value_column
from cepheid.language.bound import BoundQuery
from cepheid.plan.cost import same_key
from cepheid.plan.equalities import compared_events
from cepheid.plan.physical import Plan
from cepheid.plan.statistics import DEFAULT_SELECTIVITY, Statistics

MANY_EVENTS = 2_000
MANY_COMBINATIONS = 1e7  # of events of any type, in windows: where the types are three, a search takes 30 ms
SAMPLE = 20_000  # consecutive events, since rates per window need neighbours; 50,000 took a seventh of a short call
LEAST_SAMPLE, PART = 2_000, 4  # of a table this part at most: all of 20,000 events took a third of a short call
COMBINATIONS = 512  # drawn to estimate how selective a condition is


def measure(plan: Plan, events: EventTable, seed: int = 0) -> Statistics:
    """Rates per window and partition, and selectivities, from the middle of the table."""
    bound = plan.bound
    size = min(SAMPLE, max(LEAST_SAMPLE, len(events) // PART))
    begin = max(0, (len(events) - size) // 2)
    end = min(len(events), begin + size)
    if end <= begin:
        return Statistics(len(events), per_window=(0.0,) * len(bound.positives))
    sample = EventTable(
        events.table.slice(begin, end - begin),
        events.time[begin:end],
        events.instant[begin:end] - events.instant[begin],
    )
    prepared = candidates(plan, sample)
    partitions = max(1, int(np.count_nonzero(np.diff(prepared.starts))))
    passing = [int(np.count_nonzero(prepared.mask & (1 << c))) for c in range(len(bound.components))]
    share = _window_share(bound, sample, partitions)
    scale = len(events) / (end - begin)
    met, agreeing = _met(bound, sample, prepared, events)
    return Statistics(
        len(events),
        partitions,
        tuple(count * share / partitions for count in passing[: len(bound.positives)]),
        tuple(round(count * scale) for count in passing),
        _selectivities(bound, sample, prepared, np.random.default_rng(seed)),
        met,
        agreeing,
    )


def worth_measuring(bound: BoundQuery, events: EventTable) -> bool:
    """Does one engine or order take much longer than another? Of few events only if windows hold many combinations."""
    if len(events) >= MANY_EVENTS:
        return True
    if bound.equivalence or len(events) < len(bound.positives):
        return False  # of one key there are few events
    inside = len(events) * _window_share(bound, events, 1)
    places = len(bound.positives)
    return bool(len(events) * inside ** (places - 1) / factorial(places) >= MANY_COMBINATIONS)


def split_by_most_selective(plan: Plan, events: EventTable) -> Plan:
    """Of equivalence tests that part the events or wait for construction, the one with most values parts them.

    Written first or last, the test that tells events apart best leaves the fewest to be compared (SASE section 4.2.2).
    """
    match = plan.match
    if len(match.partition) != 1 or not match.compared or plan.match.compared_at_the_end:
        return plan
    names = (*match.partition, *match.compared)
    begin = max(0, (len(events) - SAMPLE) // 2)
    sample = events.table.select(names).slice(begin, SAMPLE)
    values = {name: len(np.unique(codes(sample.column(name)))) for name in names}
    most = max(names, key=lambda name: values[name])
    if values[most] <= values[names[0]]:
        return plan
    rest = tuple(name for name in names if name != most)
    reason = f"{most} has the most values ({values[most]:,}), so it partitions the events"
    return replace(plan, match=replace(match, partition=(most,), compared=rest), reasons=(*plan.reasons, reason))


def _window_share(bound: BoundQuery, sample: EventTable, partitions: int) -> float:
    """Which part of the sample lies in one window."""
    if bound.window is None:
        return 1.0
    if bound.window.events:
        return min(1.0, bound.window.length * partitions / len(sample))
    return min(1.0, bound.window.length / max(1, int(sample.time[-1] - sample.time[0])))


def _met(
    bound: BoundQuery, sample: EventTable, prepared: Candidates, events: EventTable
) -> tuple[tuple[float, ...], float]:
    """How many events of each component an event meets in the window before it, in its partition; itself left out.

    And the share of pairs that agree in the attributes that are compared.
    """
    sizes = np.diff(prepared.starts)
    if not len(sizes) or not len(prepared):
        return (0.0,) * len(bound.components), 1.0
    window = np.inf if bound.window is None else float(bound.window.length)
    if bound.window is not None and bound.window.events:
        here = np.maximum(sizes, 1) * (len(sample) / len(prepared))
        there = here * (len(events) / len(sample))
    else:
        here, there = (np.array([max(1.0, float(each.time[-1] - each.time[0]))]) for each in (sample, events))
    # Early in the table or the partition a window holds less: of a window as long as either, half on average.
    behind = np.minimum(window, there)
    weight = (behind - behind**2 / (2.0 * there)) / here * (sizes - 1)
    met = []
    for place in range(len(bound.components)):
        fits = np.cumsum(np.append(0, (prepared.mask >> place) & 1))[prepared.starts]
        met.append(float(np.sum(np.diff(fits) * weight)) / len(prepared))
    agreeing = 1.0
    for code in prepared.compared:
        agreeing *= float(np.sum((np.unique(code, return_counts=True)[1] / len(code)) ** 2))
    return tuple(met), agreeing


def _selectivities(
    bound: BoundQuery, sample: EventTable, prepared: Candidates, random: np.random.Generator
) -> dict[int, float]:
    columns: dict[tuple[str, str], pa.Array] = {}
    rows: dict[str, npt.NDArray[np.int64]] = {}
    for place, component in enumerate(bound.positives):
        possible = prepared.rows[(prepared.mask & (1 << place)) != 0]
        if len(possible):
            rows[component.variable] = random.choice(possible, COMBINATIONS)

    def resolve(node: Any) -> Any:
        key = (node.of.variable, node.name)
        if key not in columns:
            taken = sample.table.column(node.name).take(pa.array(rows[node.of.variable]))
            columns[key] = value_column(taken).combine_chunks()
        return columns[key]

    found: dict[int, float] = {}
    for number, conjunct in enumerate(bound.conjuncts):
        if conjunct.own or same_key(bound, conjunct.expression):
            found[number] = 1.0  # already in the rates
        elif conjunct.variables <= rows.keys() and not conjunct.every and not bound.has_kleene:
            if (sides := compared_events(bound, conjunct)) is not None:
                found[number] = _share_of_pairs(*map(resolve, sides))
                continue
            passed = condition(conjunct.expression, resolve)
            kept = passed.as_py() if isinstance(passed, pa.Scalar) else passed.to_numpy(zero_copy_only=False).mean()
            # At least half a combination: what was never seen to hold may still hold.
            found[number] = max(float(kept), 0.5 / COMBINATIONS)
        else:
            found[number] = DEFAULT_SELECTIVITY
    return found


def _share_of_pairs(left: pa.Array, right: pa.Array) -> float:
    """Of all pairs of two draws, how many are equal; at least half a pair."""
    counts = Counter(left.to_pylist())
    equal = sum(counts[value] for value in right.to_pylist() if value is not None)
    return max(equal, 0.5) / (len(left) * len(right))
