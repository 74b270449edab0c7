"""SUMMARISE as a table: totals over matches, without listing them wherever they can be carried along."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.choose import Choice, chosen
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.totals import COUNT_ALL, GroupTotals, total_listed
from cepheid.engine.engines import ENGINES, of_runs
from cepheid.engine.find import BEGINNING, find
from cepheid.engine.jit_fallback import answer, before_loading
from cepheid.engine.match_limits import limited, steps_of_counting
from cepheid.engine.program.carry import carrying
from cepheid.engine.statistics import split_by_most_selective
from cepheid.errors import CepheidError, LimitError, TimeoutReached
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, BoundSummary, BoundTotal
from cepheid.language.schema import DataType
from cepheid.language.totals import BUCKET
from cepheid.language.typing import type_of
from cepheid.plan.physical import Plan

EXACT = pa.decimal128(38, 0)  # of counts, and of sums of whole numbers: Spark has no wider type
TOO_LARGE = 10**38
FEW_STEPS = 1e5  # of carrying totals: some hundredths of a second
LISTED = 16  # steps that listing a match is worth
MORE_DIGITS = "use approximate_count(*), or a shorter WITHIN"


def find_totals(
    plan: Plan, summary: BoundSummary, events: EventTable, after: int | None = None, until: int | None = None
) -> GroupTotals:
    """The totals over the matches with after < completion <= until."""
    low = BEGINNING if after is None else after
    high = NEVER if until is None else until
    plan = replace(plan, match=replace(plan.match, limits=replace(plan.limits, truncate=False)))  # half is none

    def run() -> GroupTotals:
        found = _carried(plan, summary, events, low, high) if carried_why_not(plan) is None else None
        return _by_listing(plan, summary, events, low, high) if found is None else found

    with within_budget(plan.limits.timeout, plan.limits.max_bytes):
        return before_loading(len(events), run, run) if after is until is None else run()


def _carried(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals | None:
    """Without listing: event by event, or along the shared buffer of runs; None: neither is worth it."""
    if plan.bound.is_linear and carrying(plan.bound).refused is None:
        found = _listed_if_few(plan, summary, events, after, until)
        if found is None:
            found = _of_module("search.totals", plan, summary, events, after, until)
        if found is not None:
            return found
    shares = not plan.bound.is_linear_of_singles
    return _of_buffer(plan, summary, events, after, until) if shares else None


def _listed_if_few(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals | None:
    """By the sequence engine, which finds equal values by an index, within less work than carrying totals takes.

    None: carrying them is a pass or two, or there is more to list. The bound is on work, not on time, so that sums of
    fractions are added in the same order each time.
    """
    if ENGINES["sequence"].refuses(plan.bound, plan.model) is not None:
        return None
    steps = steps_of_counting(plan, events, carrying(plan.bound).needs_first)
    if steps < FEW_STEPS:
        return None
    alone = chosen(split_by_most_selective(plan, events), Choice("sequence"))
    few, run = limited(alone, int(steps) // LISTED, plan.limits.max_partial_matches), ENGINES["sequence"].load()
    try:
        module = ENGINES["sequence"].module
        found = answer(module, len(events), lambda: run(few, events, after, until, int(steps)))
    except TimeoutReached:
        raise
    except LimitError:
        return None
    return total_listed(plan.bound, summary, events, lambda: found)


def _by_listing(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals:
    try:
        return total_listed(plan.bound, summary, events, lambda: find(plan, events, after, until))
    except TimeoutReached:
        raise
    except LimitError:
        if carried_why_not(plan) is not None:
            raise
        return _of_buffer(plan, summary, events, after, until)  # too many to list are not too many to add up


def _of_buffer(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals:
    found = _of_module("search.runs.totals", chosen(plan, Choice(of_runs(plan.bound))), summary, events, after, until)
    assert found is not None
    return found


def _of_module(
    module: str, plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int
) -> GroupTotals | None:
    """What the function `total` of a module finds; its kernels are loaded when they are needed."""
    total = importlib.import_module(f"cepheid.engine.{module}").total
    found: GroupTotals | None = answer(module, len(events), lambda: total(plan, summary, events, after, until))
    return found


def carried_why_not(plan: Plan) -> str | None:
    """Why the matches have to be listed to be added up; None: they need not be."""
    bound = plan.bound
    if plan.engine == "reference":
        return "the reference engine lists matches"
    if bound.output.mode is not s.OutputMode.ALL:
        return f"OUTPUT {bound.output.mode.value} compares matches one by one"
    if bound.schema.lacks and bound.summary is not None and bound.summary.by:
        return "events that lack an attribute of BY count under that of the first event"
    return ENGINES[of_runs(bound)].refuses(bound, plan.model)


def listing_needed(plan: Plan) -> str | None:
    """Why the matches are listed, at least at first, to be added up; None: they are not."""
    why = carried_why_not(plan)
    return why if why is not None or not plan.bound.is_linear_of_singles else carrying(plan.bound).refused


def count_matches(plan: Plan, events: EventTable) -> int:
    """How many matches there are, exactly: the simple form of SUMMARISE count(*)."""
    check_countable(plan)
    by_runs = not plan.bound.is_linear or (plan.bound.has_kleene and carrying(plan.bound).refused is not None)
    if carried_why_not(plan) is None and by_runs:
        runs, module = importlib.import_module("cepheid.engine.search.runs"), ENGINES["runs"].module
        alone = chosen(plan, Choice(of_runs(plan.bound)))
        with within_budget(plan.limits.timeout, plan.limits.max_bytes):  # no buffer is kept for a mere number
            count = partial(runs.count, alone, events, BEGINNING, NEVER)
            number: int = answer(module, len(events), count, once=True)
        return _exact("count(*)", number, float(number) if number < 10**300 else math.inf)
    found = find_totals(plan, COUNT_ALL, events)
    return sum(_exact("count(*)", row[0], near) for row, near in zip(found.exact, found.near[:, 0], strict=True))


def check_countable(plan: Plan) -> None:
    """An error if the query says by itself what is counted."""
    if plan.bound.summary is not None:
        raise CepheidError("output='count' counts matches, and SUMMARISE defines its own totals", hint="omit one")


def totals_table(
    bound: BoundQuery, events: EventTable, found: GroupTotals, summary: BoundSummary, called: Sequence[str] = ()
) -> pa.Table:
    """The totals as rows: BY attributes, the bucket, then what was asked for; `called` are names for errors."""
    called = called or [total.name for total in summary.totals]
    order = _order(summary, events, found)
    fields = totals_schema(bound, summary, events.table.schema)
    columns: dict[str, pa.Array] = {}
    rows = pa.array(found.rows[order])
    for name in summary.by:
        columns[name] = events.table.column(name).take(rows).combine_chunks().cast(fields.field(name).type)
    if summary.every is not None:
        begins = found.bucket[order]
        columns[BUCKET] = _times(pa.array(begins, mask=begins == NEVER), fields.field(BUCKET).type)
    alone = not summary.by and summary.every is None and not len(found)
    for index, total in enumerate(summary.totals):
        values = [_value(replace(total, name=called[index]), index, found, group) for group in order]
        if alone:  # as in SQL: without groups there is one row, whatever it counts
            values = [{"count": Decimal(0), "approximate_count": 0.0}.get(total.function)]
        kind = fields.field(total.name).type
        if pa.types.is_timestamp(kind):
            columns[total.name] = _times(pa.array(values, pa.int64()), kind)
        else:
            columns[total.name] = pa.array(values, kind)
    facts = {"engine": "totals", "truncated": False, "counters": found.counters}
    table = pa.table([columns[field.name] for field in fields], schema=fields)
    return table.replace_schema_metadata({"cepheid": json.dumps(facts)})


def totals_schema(bound: BoundQuery, summary: BoundSummary, events: pa.Schema) -> pa.Schema:
    """The columns of the totals, without running anything."""
    fields = [(name, _plain(events.field(name).type)) for name in summary.by]
    time = events.field(bound.schema.time).type
    if summary.every is not None:
        fields.append((BUCKET, time if pa.types.is_timestamp(time) else pa.int64()))
    return pa.schema([*fields, *((total.name, _kind(bound, total, time)) for total in summary.totals)])


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _kind(bound: BoundQuery, total: BoundTotal, time: pa.DataType) -> pa.DataType:
    if total.function == "count":
        return EXACT
    if total.function in ("avg", "approximate_count"):
        return pa.float64()
    assert total.argument is not None
    kind = type_of(total.argument, bound.schema)
    if kind is DataType.INT:
        return EXACT if total.function == "sum" else pa.int64()
    if kind is DataType.TIME:
        return time if pa.types.is_timestamp(time) else pa.timestamp("us")
    return pa.float64() if kind is DataType.FLOAT else pa.string()


def _times(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_timestamp(kind):
        return column
    return column.cast(pa.timestamp("us", kind.tz)).cast(kind)


def _order(summary: BoundSummary, events: EventTable, found: GroupTotals) -> list[int]:
    """Groups by bucket, then by where they first occur in the table."""
    return [int(group) for group in np.lexsort((found.rows, found.bucket))]


def _value(total: BoundTotal, index: int, found: GroupTotals, group: int) -> Any:
    if total.variable is None:
        near = float(found.near[group, 0])
        if total.function == "approximate_count":
            return near
        return Decimal(_exact(total.name, found.exact[group][0], near))
    known, *rest = found.lanes.made_of[index]
    exact, near_row = found.exact[group], found.near[group]
    if total.function == "count":
        return Decimal(_exact(total.name, exact[1 + known], near_row[1 + known]))
    if near_row[1 + known] == 0:
        return None
    if total.function in ("min", "max"):
        return found.lanes.ranked[rest[0]].of(int(found.least[group, rest[0]]))
    rough = found.lanes.fractions[index]
    if total.function == "sum" and not rough:
        return Decimal(_exact(total.name, exact[1 + rest[0]], near_row[1 + rest[0]]))
    if rough:
        added = float(near_row[len(exact) + rest[0]])
        return added / float(near_row[1 + known]) if total.function == "avg" else added
    number = _exact(total.name, exact[1 + known], near_row[1 + known])
    return _exact(total.name, exact[1 + rest[0]], near_row[1 + rest[0]]) / number


def _exact(name: str, value: int, near: float) -> int:
    """An exact sum, if it has at most 38 digits."""
    if not abs(near) < 2 * TOO_LARGE or abs(value) >= TOO_LARGE:
        size = f": about {near:.1e}" if math.isfinite(near) else ""
        raise LimitError(f"{name} has more than 38 digits{size}", hint=MORE_DIGITS)
    return value
