"""`cepheid.live`: a query over events as they come, without Spark. Events in, matches out, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import within_budget
from cepheid.engine.choose import make_plan
from cepheid.errors import CepheidError, DataError, closest
from cepheid.language.durations import whole_steps
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.composition import check_sources, in_order, sources_of
from cepheid.runners.live_face import LiveFace, Numbers, steps_of
from cepheid.runners.many import check_names
from cepheid.runners.nested import with_fields, with_paths
from cepheid.runners.options import Options, refuse_output
from cepheid.runners.records import read_records, write_aside
from cepheid.runners.spark.shipment import common_result, result_rows, ship_here
from cepheid.runners.stream.identity import fingerprint
from cepheid.runners.stream.resident import Resident
from cepheid.runners.stream.resident_kinds import resident_kind
from cepheid.runners.stream.resident_levels import ResidentLevels, local_levels
from cepheid.runners.stream.state import Outcome, Step
from cepheid.runners.tables import as_local
from cepheid.runners.ties import LiveTies, in_row_order, with_rows

Taken = TypeVar("Taken", bound=Callable[..., Any])

_ARROW = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def _within_limits(step: Taken) -> Taken:
    """A step of a live query that holds to `timeout` and `max_bytes` in all it does."""

    @wraps(step)
    def held(live: Live, *arguments: Any) -> Any:
        with within_budget(live._options.timeout, live._options.max_bytes):
            return step(live, *arguments)

    return cast(Taken, held)


class Live(LiveFace):
    """A query at work: `send` it events, in any table or one by one, and get the matches that are complete.

    A match is known when no event that may still come can change it: `delay` says how much older than the newest event
    others may be when they come; `advance` and `finish` say that time has passed though nothing came.
    """

    def __init__(self, resident: Resident, schema: pa.Schema, options: Options, query: Any) -> None:
        self._resident, self._schema, self._options, self._query = resident, schema, options, query
        self._shipments = resident.shipments
        self._result = common_result(self._shipments)
        self._back: Callable[[pa.Table], Any] = lambda table: table
        self._narrow = resident.schema.names
        self._numbers = Numbers()
        self._ties = LiveTies(resident.step.plans)
        self._rows = _next_row(resident, options)  # the number of the next event, with tiebreak="row"
        self._finished = False
        self.on_late: Callable[[pa.Table], object] | None = None  # gets events that came too late

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._result

    @property
    def numbers(self) -> Numbers:
        """How many events, late events and matches there were, and what is kept of them."""
        kept = self._resident
        return replace(
            self._numbers,
            retained=len(kept),
            state_bytes=kept.nbytes,
            watermark=None if self._finished else kept.until,
            ties=self._ties.count(kept.until),
        )

    @_within_limits
    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are complete now, as a table of the same kind.

        An event as a mapping, or a list of them, gives a list of mappings.
        """
        self._check_open()
        if isinstance(events, Mapping):
            events = [events]
        if isinstance(events, Sequence) and not isinstance(events, str | bytes):
            self._back = pa.Table.to_pylist
            arrow = self._from_mappings(events)
        else:
            local = as_local(events)
            if local is None:
                told = "events must be a mapping, a list of them, or a pyarrow, pandas or polars table"
                hint = f"for example {{{', '.join(f'{name!r}: ...' for name in self._schema.names)}}}"
                raise DataError(f"{told}, not {_kind(events)}", hint=hint)
            self._back, arrow = local.back, local.arrow
        passed, fitted = self._resident.until, self._fitted(arrow)
        outcome = self._resident.take(fitted)
        self._rows += fitted.num_rows
        self._ties.take(fitted, None if outcome.late is None else passed, self._resident.until)
        return self._told(outcome)

    @_within_limits
    def advance(self, time: Any) -> Any:
        """Says that nothing at or before a time will come any more, and returns what that decides."""
        self._check_open()
        return self._told(self._resident.take(None, self._steps(time)))

    @_within_limits
    def finish(self) -> Any:
        """Says that nothing will come any more, as at the end of a table, and returns what that decides."""
        self._check_open()
        self._finished = True
        outcome = self._resident.finish()
        self._ties.count(self._resident.until)
        return self._told(outcome)

    def save(self) -> bytes:
        """All that is needed to go on later or elsewhere: `cepheid.live(..., state=...)`."""
        return self._resident.save()

    # --- events and times as they come ------------------------------------------------------------------------------

    def _from_mappings(self, events: Sequence[Any]) -> pa.Table:
        names = set(self._schema.names)
        for row, event in enumerate(events):
            if not isinstance(event, Mapping):
                raise DataError(f"an event is a mapping of names to values, not {_kind(event)}", row=row)
            if not names >= event.keys():
                name = next(name for name in event if name not in names)
                guess = closest(str(name), names)
                hint = f"did you mean '{guess}'?" if guess else f"the schema has {', '.join(self._schema.names)}"
                raise DataError(f"the event has '{name}', which the schema does not have", row=row, hint=hint)
        try:
            return pa.Table.from_pylist(events, self._schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return pa.table({f.name: self._column([event.get(f.name) for event in events], f) for f in self._schema})

    def _column(self, values: list[Any], field: pa.Field) -> pa.Array:
        """One attribute of several events; an error names the first value that does not fit."""
        for row, value in enumerate(values):
            try:
                pa.array([value], field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                told = f"{value!r} does not fit a column of {field.type}"
                hint = f"send a value of that type, or give '{field.name}' another one in the schema"
                raise DataError(told, column=field.name, row=row, hint=hint) from None
        return pa.array(values, field.type)

    def _fitted(self, table: pa.Table) -> pa.Table:
        """The events in the columns and types that the query was made for."""
        if self._options.bad_records is not None or self._options.dedupe:
            records = read_records(self._query, table, self._options)
            write_aside(records.bad, self._options.aside)
            table = records.table
        if self._options.row_column is not None:
            table = with_rows(table, self._options, np.arange(self._rows, self._rows + table.num_rows))
        if table.schema == self._resident.schema:
            return table
        table = with_paths(table, self._narrow)
        for name in self._narrow:
            if name not in table.column_names:
                raise DataError(f"the events have no column '{name}', which the schema has")
        table = table.select(self._narrow)
        if table.schema != self._resident.schema:
            try:
                table = table.cast(self._resident.schema)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise DataError(f"the events do not have the types of the schema: {error}") from None
        return table

    def _steps(self, time: Any) -> int:
        """A time in steps of the time column."""
        schema = self._resident.step.plans[0].bound.schema
        name = schema.lower or schema.time
        return steps_of(time, self._schema, name)

    def _told(self, outcome: Outcome) -> Any:
        late = 0 if outcome.late is None else outcome.late.num_rows
        seen = self._numbers
        self._numbers = Numbers(seen.events + outcome.events, seen.late + late, seen.matches + outcome.matches)
        if outcome.late is not None and self.on_late is not None:
            self.on_late(outcome.late)
        shipments = self._shipments
        if len(shipments) == 1 and shipments[0].name is None:
            batches = [batch for _, batch in outcome.results]
        else:
            batches = [result_rows(shipments[number], batch, self._result) for number, batch in outcome.results]
        return self._back(pa.Table.from_batches(batches, self._result))


def live_query(
    query: Any, schema: Any, *, delay: Any = 0, state: bytes | None = None, keywords: Mapping[str, Any]
) -> Live:
    """A live query over events of a schema; see `cepheid.live`."""
    options = Options.from_keywords(keywords)
    if options.uncertainty is not None:
        hint = "send events with the columns of their bounds, and pass lower='...' and upper='...'"
        raise CepheidError("a live query does not make bounds from one time column", hint=hint)
    refuse_output(options, "a live query")
    columns = as_schema(schema)
    queries = dict(query) if isinstance(query, Mapping) else {None: query}
    named = isinstance(query, Mapping)
    if named:
        check_names(query)
    plans: dict[str | None, Plan] = {}
    whole = with_fields(columns, [one.syntax for one in queries.values()])
    options, whole = in_row_order(options, whole)
    composed = {name: queries[name] for name in in_order(query) if sources_of(query[name])} if named else {}
    for name, one in queries.items():
        if name in composed:
            continue
        check_sources(one)
        bound = one.bind(Schema.from_arrow(whole, **options.roles()))
        plan, _ = make_plan(bound, None, options)
        why = plan.exchange.retention.for_ever
        if why is not None:
            raise CepheidError(f"a live query cannot run this: {why}", hint="add WITHIN, or match a table")
        plans[name] = plan
    shipments = tuple(ship_here(plan, whole, name) for name, plan in plans.items())
    needed = {name for shipment in shipments for name in shipment.plan.bound.schema.names}
    narrow = pa.schema([column for column in whole if column.name in needed])
    steps = whole_steps(delay, shipments[0].plan.bound.schema, "delay")
    step = Step(
        shipments, tuple(range(len(shipments))), steps, plans=tuple(each.plan for each in shipments), schema=narrow
    )
    resident: Resident
    if composed:
        levels = local_levels(composed, shipments, options)
        of_all = (*shipments, *(level.step.shipments[0] for level in levels))
        resident = ResidentLevels(step, narrow, fingerprint(of_all, 1), levels)
    else:
        resident = resident_kind(step, narrow)(step, narrow, fingerprint(shipments, 1))
    if state is not None:
        resident.restore(state)
    return Live(resident, columns, options, next(iter(queries.values())))


def _next_row(resident: Resident, options: Options) -> int:
    """The number of the next event, after all that are kept: those of times to come are among them."""
    if options.row_column is None or not len(resident):
        return 0
    return 1 + int(pc.max(resident.table().column(options.row_column)).as_py())


def as_schema(given: Any) -> pa.Schema:
    """The columns as Arrow's schema: from one, from a table, or from names with Python's types."""
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, Mapping):
        for name, kind in given.items():
            if not isinstance(kind, pa.DataType) and kind not in _ARROW:
                hint = "use int, float, str, bool or a type of pyarrow, such as pa.timestamp('us')"
                raise DataError(f"the schema gives column '{name}' the type {kind!r}", hint=hint)
        return pa.schema([(name, _ARROW.get(kind, kind)) for name, kind in given.items()])
    local = as_local(given)
    if local is None:
        hint = "pass a pyarrow schema, {'ts': int, 'type': str, ...}, or a table with the same columns"
        raise DataError(f"{_kind(given)} is no schema", hint=hint)
    return local.arrow.schema.remove_metadata()


def _kind(value: object) -> str:
    return type(value).__name__
