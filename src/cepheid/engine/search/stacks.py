"""The sequence engine (SASE): instance stacks, built in one scan, and sequences constructed backwards from them.

A component's stack holds the events that could fill it, in order; each entry remembers how far the previous
component's stack reached when it came (the paper's RIP pointer). Construction walks these stacks depth first from
every event of the last component (sections 3.2, 4.1), testing the window, the comparisons and the conditions as soon
as their events are chosen (4.2, 4.3). Negated components have stacks of their own, searched by bisection (3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns, fill
from cepheid.engine.data.matches import Chosen, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.arrays import (
    EVENT_WINDOW,
    EVENTS,
    NO_WINDOW,
    TIME_WINDOW,
    Events,
    equal_codes,
    first_above,
    grown,
    grown_rows,
    kernel_events,
)
from cepheid.engine.limits import check_limit
from cepheid.engine.values.cases import any_variables, branch_cases, negative_conditions, slots_of
from cepheid.engine.values.compiled import PREDICATE, Case, Predicate, compile_cases
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan

SCANNED, STACKED, EVALUATED, CONSTRUCTED, KILLED, OVERFLOW = range(6)


class Shape(NamedTuple):
    """The query, as a kernel sees it."""

    positives: int
    negatives: int
    window_kind: int
    window: int
    push_window: bool
    push_conditions: bool
    postponed: bool
    tested: Int64s  # per case: 1 if there is a condition to test
    neg_after: Int64s  # per negated component: the positive before it, -1 for the window's edge
    neg_before: Int64s  # ... and the positive behind it
    neg_place: Int64s  # ... and the place at whose choice everything it needs is known
    branches: int  # disjuncts of the condition; with more than one, negation is judged per disjunct


SHAPE = types.NamedTuple(
    (
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.boolean,
        types.boolean,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
    ),
    Shape,
)


@dataclass(frozen=True)
class Compiled:
    """What a query needs besides events: its shape and its compiled conditions."""

    shape: Shape
    predicate: Predicate


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until."""
    prepared = candidates(plan, events)
    compiled = compile_query(plan)
    columns = fill(compiled.predicate.layout, events.table, prepared.rows, plan.bound.schema)
    kernel = construct if compiled.predicate.compiled else construct.py_func
    shape = compiled.shape
    if len(prepared.compared):
        # Keys that are compared instead of split by: a negated event has to agree with all events of a match, so all
        # must be chosen; and positions, which count the events of one key, do not rise along a stack of many keys.
        by_time = shape.window_kind != EVENT_WINDOW
        shape = shape._replace(neg_place=np.zeros_like(shape.neg_place), push_window=shape.push_window and by_time)
    chosen, completion, counters = kernel(
        kernel_events(prepared),
        shape,
        columns,
        compiled.predicate.call,
        after,
        until,
        plan.limits.max_matches,
    )
    truncated = check_limit(plan, "max_matches", bool(counters[OVERFLOW]))
    rows = prepared.rows
    return Matches(
        tuple(Chosen(rows[chosen[:, place]]) for place in range(compiled.shape.positives)),
        completion,
        counters={
            "scanned": prepared.scanned,
            "candidates": len(prepared),
            "stacked": int(counters[STACKED]),
            "evaluations": int(counters[EVALUATED]),
            "constructed": int(counters[CONSTRUCTED]),
            "killed": int(counters[KILLED]),
        },
        truncated=truncated,
    )


# --- what the kernel needs to know of a query -------------------------------------------------------------------


def compile_query(plan: Plan) -> Compiled:
    """Places every condition where construction can test it, and compiles them all into one function.

    Cases: one per positive component (tested when it is chosen, walking backwards), one per negated component,
    then for each disjunct its positive part and one per negated component.
    """
    bound = plan.bound
    count = len(bound.positives)
    slots, slot = slots_of(bound)
    by_place: list[list[s.Expression]] = [[] for _ in range(count)]
    for conjunct in bound.conjuncts:
        if not (conjunct.own and len(conjunct.variables) == 1):
            # Construction walks backwards: all is known when the earliest component is chosen.
            place = min((slots[name] for name in conjunct.variables), default=0) if plan.push_predicates else 0
            by_place[place].append(conjunct.expression)
    negative = negative_conditions(bound)
    cases = [Case(tuple(parts), slot) for parts in [*by_place, *negative]] + branch_cases(bound, slot)
    predicate = compile_cases(cases, bound.schema, any_variables(bound))
    window = bound.window
    shape = Shape(
        count,
        len(bound.negations),
        NO_WINDOW if window is None else EVENT_WINDOW if window.events else TIME_WINDOW,
        window.length if window is not None else 0,
        plan.push_window,
        plan.push_predicates,
        bound.postponed,
        np.array(predicate.cases, np.int64),
        np.array([-1 if n.after is None else n.after for n in bound.negations], np.int64),
        np.array([-1 if n.before is None else n.before for n in bound.negations], np.int64),
        np.array([_negation_place(plan, j, parts, slots) for j, parts in enumerate(negative)], np.int64),
        len(bound.branches),
    )
    return Compiled(shape, predicate)


def _negation_place(plan: Plan, index: int, parts: list[s.Expression], slots: dict[str, int]) -> int:
    negation = plan.bound.negations[index]
    if negation.after is None or negation.before is None or not plan.push_predicates:
        return 0
    mentioned = {name for part in parts for name in s.variables_of(part)} - {negation.component.variable}
    return min([negation.after, *(slots[name] for name in mentioned)])


# --- kernels ----------------------------------------------------------------------------------------------------


@numba.njit(types.boolean(EVENTS, SHAPE, INT64S, types.int64, types.int64), cache=True)
def in_window(events: Events, shape: Shape, at: Int64s, first: int, last: int) -> bool:
    """Do the two events fit one window?"""
    if shape.window_kind == TIME_WINDOW:
        return bool(events.time[last] - events.time[first] < shape.window)
    if shape.window_kind == EVENT_WINDOW:
        return bool(events.position[last] - events.position[first] < shape.window)
    return True


@numba.njit(
    types.boolean(
        EVENTS, SHAPE, COLUMNS, types.FunctionType(PREDICATE), types.int64, types.int64, INT64S, INT64S, types.int64
    ),
    cache=True,
)
def negated(
    events: Events,
    shape: Shape,
    columns: Columns,
    predicate: Any,
    negation: int,
    case: int,
    at: Int64s,
    stack: Int64s,
    size: int,
) -> bool:
    """Does an event of a negated component lie in its open interval and pass its conditions?"""
    first, last = at[0], at[shape.positives - 1]
    after, before = shape.neg_after[negation], shape.neg_before[negation]
    mixed = shape.window_kind == EVENT_WINDOW and events.compared.shape[0] > 0
    if after >= 0:
        low = first_above(stack, 0, size, events.instant, events.instant[at[after]])
    elif shape.window_kind == TIME_WINDOW:
        low = first_above(stack, 0, size, events.time, events.time[last] - shape.window)
    elif mixed:
        low = 0
    else:
        low = first_above(stack, 0, size, events.position, events.position[last] - shape.window)
    if before >= 0:
        high = first_above(stack, low, size, events.instant, events.instant[at[before]] - 1)
    elif shape.window_kind == TIME_WINDOW:
        high = first_above(stack, low, size, events.time, events.time[first] + shape.window - 1)
    elif mixed:
        high = size
    else:
        high = first_above(stack, low, size, events.position, events.position[first] + shape.window - 1)
    if low >= high:
        return False
    if shape.tested[case] == 0 and events.compared.shape[0] == 0:
        return True
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    for index in range(low, high):
        event = stack[index]
        if mixed and after < 0 and events.position[event] <= events.position[last] - shape.window:
            continue
        if mixed and before < 0 and events.position[event] >= events.position[first] + shape.window:
            continue
        at[shape.positives + negation] = event
        if not equal_codes(events.compared, at, 0, shape.positives, event):
            continue
        if shape.tested[case] == 0 or predicate(case, at, no_counts, no_sums, columns):
            return True
    return False


@numba.njit(
    types.boolean(EVENTS, SHAPE, COLUMNS, types.FunctionType(PREDICATE), INT64S, INT64_ROWS, INT64S), cache=True
)
def stands(
    events: Events,
    shape: Shape,
    columns: Columns,
    predicate: Any,
    at: Int64s,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
) -> bool:
    """Does a complete match stand for some disjunct of the condition (SASE section 2.2.2)?"""
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    base = shape.positives + shape.negatives
    for branch in range(shape.branches):
        case = base + branch * (1 + shape.negatives)
        if shape.tested[case] == 1 and not predicate(case, at, no_counts, no_sums, columns):
            continue
        killed = False
        for negation in range(shape.negatives):
            stack = stacks[shape.positives + negation]
            size = sizes[shape.positives + negation]
            if negated(events, shape, columns, predicate, negation, case + 1 + negation, at, stack, size):
                killed = True
                break
        if not killed:
            return True
    return False


@numba.njit(
    types.Tuple((INT64_ROWS, INT64S, INT64S))(
        EVENTS, SHAPE, COLUMNS, types.FunctionType(PREDICATE), types.int64, types.int64, types.int64
    ),
    cache=True,
)
def construct(
    events: Events, shape: Shape, columns: Columns, predicate: Any, after: int, until: int, limit: int
) -> tuple[npt.NDArray[np.int64], Int64s, Int64s]:
    """All sequences of all partitions: chosen events per match, completion per match, counters."""
    length, negatives = shape.positives, shape.negatives
    counters = np.zeros(6, np.int64)
    found = 0
    out = np.empty((1024, length), np.int64)
    completion = np.empty(1024, np.int64)
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    stacks = np.empty((length + negatives, longest), np.int64)
    reach = np.empty((length, longest), np.int64)  # the RIP pointer: how many of the stack before were there
    sizes = np.zeros(length + negatives, np.int64)
    settled = np.zeros(length + negatives, np.int64)  # entries at instants strictly before the current one
    at = np.zeros(length + negatives, np.int64)
    cursor = np.zeros(length, np.int64)
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    for part in range(len(events.starts) - 1):
        sizes[:] = 0
        settled[:] = 0
        previous = np.int64(-1)
        # Sequence scan: fill the stacks.
        for event in range(events.starts[part], events.starts[part + 1]):
            if events.instant[event] != previous:
                settled[:] = sizes
                previous = events.instant[event]
            bits = events.mask[event]
            for place in range(length):
                if bits & (1 << place) == 0:
                    continue
                if place > 0:
                    behind = settled[place - 1]
                    if behind == 0:
                        continue
                    if shape.push_window and not in_window(events, shape, at, stacks[place - 1, behind - 1], event):
                        continue
                    reach[place, sizes[place]] = behind
                stacks[place, sizes[place]] = event
                sizes[place] += 1
                counters[STACKED] += 1
            for negation in range(length, length + negatives):
                if bits & (1 << negation) != 0:
                    stacks[negation, sizes[negation]] = event
                    sizes[negation] += 1
        # Sequence construction: backwards from every event of the last component.
        for top in range(sizes[length - 1]):
            last = stacks[length - 1, top]
            if not shape.postponed and (events.time[last] <= after or events.time[last] > until):
                continue
            place = length - 1
            cursor[place] = top
            while place < length:
                index = cursor[place]
                stop = top if place == length - 1 else 0  # the last component has one choice here
                if index < stop:
                    place += 1
                    if place < length:
                        cursor[place] -= 1
                    continue
                event = stacks[place, index]
                if shape.push_window and not in_window(events, shape, at, event, last):
                    cursor[place] = -1  # all older ones are outside, too
                    continue
                at[place] = event
                counters[EVALUATED] += 1
                passed = True
                if shape.push_conditions:
                    passed = equal_codes(events.compared, at, place + 1, length, event)
                elif place == 0:
                    for slot in range(length - 1):
                        passed = passed and equal_codes(events.compared, at, slot + 1, length, at[slot])
                if passed and shape.tested[place] == 1:
                    passed = predicate(place, at, no_counts, no_sums, columns)
                if passed and shape.branches == 1:
                    for negation in range(negatives):
                        if shape.neg_place[negation] == place and negated(
                            events,
                            shape,
                            columns,
                            predicate,
                            negation,
                            length + negation,
                            at,
                            stacks[length + negation],
                            sizes[length + negation],
                        ):
                            passed = False
                            counters[KILLED] += 1
                            break
                if not passed:
                    cursor[place] -= 1
                    continue
                if place > 0:
                    cursor[place - 1] = reach[place, index] - 1
                    place -= 1
                    continue
                cursor[0] -= 1
                if not shape.push_window and not in_window(events, shape, at, event, last):
                    continue
                counters[CONSTRUCTED] += 1
                known = events.time[last]
                if shape.postponed:
                    known = events.due[event]
                    if known <= after or known > until:
                        continue
                if shape.branches > 1 and not stands(events, shape, columns, predicate, at, stacks, sizes):
                    counters[KILLED] += 1
                    continue
                if found == limit:
                    counters[OVERFLOW] = 1
                    return out[:found], completion[:found], counters
                if found == len(completion):
                    out = grown_rows(out)
                    completion = grown(completion)
                for slot in range(length):
                    out[found, slot] = at[slot]
                completion[found] = known
                found += 1
    return out[:found], completion[:found], counters
