"""`cepheid.forecast` and `live.forecast`: all partial matches that are open at one instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered, times_of
from cepheid.engine.find import find
from cepheid.errors import DataError
from cepheid.language.bind import rebound
from cepheid.language.check import check
from cepheid.language.forecasts import LEAST
from cepheid.language.zones import zone_called, zone_info
from cepheid.plan.options import Limits, PlanOptions
from cepheid.plan.physical import Plan
from cepheid.runners.events_of_each import events_of_each
from cepheid.runners.languages import match_events
from cepheid.runners.live_events import steps_of
from cepheid.runners.stream.state import StreamStep
from cepheid.runners.tables import as_local, is_spark, no_table
from cepheid.runners.text import TextLanguage
from cepheid.runners.worker_plans import WorkerPlan, common_result, result_batches, result_rows, ship_here


def forecast_events(events: object, query: Any, at: object, keywords: Mapping[str, Any]) -> Any:
    """The partial matches of a query with FORECAST that are open at an instant; None: the newest time there is."""
    time = keywords.get("time", "ts")
    if is_spark(events):
        instant = _spark_instant(events, time, at, keywords.get("tz"))
        return match_events(TextLanguage(query), events, {**keywords, "forecast_at": instant})
    local = as_local(events)
    if local is None:
        raise no_table(events)
    if time not in local.arrow.column_names:
        raise DataError(
            f"there is no column '{time}'", hint=f"name the time column: time={local.arrow.column_names[0]!r}"
        )
    table = pa.table({time: local.arrow.column(time)})
    instant = _newest(table, time) if at is None else _steps(at, table.schema, time, keywords.get("tz"))
    return local.back(match_events(TextLanguage(query), local.arrow, {**keywords, "forecast_at": instant}))


def _newest(table: pa.Table, time: str) -> int:
    """The last instant of a table; 0 if it is empty."""
    times = times_of(table.filter(table.column(time).is_valid()), time)
    return int(times.max()) if len(times) else 0


def _steps(at: object, schema: pa.Schema, time: str, tz: str | None) -> int:
    """An instant in steps of the time column; without an offset it is a time of the query's zone."""
    kind = schema.field(time).type if time in schema.names else None
    zone = tz or getattr(kind, "tz", None)
    if kind is None or zone is None or not pa.types.is_timestamp(kind):
        return int(steps_of(at, schema, time))
    if isinstance(at, datetime) and at.tzinfo is None:
        at = at.replace(tzinfo=zone_info(zone))
    return int(steps_of(at, pa.schema([(time, pa.timestamp(kind.unit, zone_called(zone)))]), time))


def _spark_instant(events: Any, time: str, at: object, tz: str | None) -> int:
    from pyspark.sql import functions as F

    from cepheid.runners.spark.session import arrow_schema, session_zone
    from cepheid.runners.spark.slices import instant

    if events.isStreaming:
        hint = "write FORECAST 80% into the query, or forecast the table that the stream writes"
        raise DataError("cepheid.forecast takes a table, not a stream", hint=hint)
    if at is not None:
        schema = arrow_schema(events)
        stamp = time in schema.names and getattr(schema.field(time).type, "tz", None) is not None
        return _steps(at, schema, time, tz or (session_zone(events.sparkSession) if stamp else None))
    newest = events.agg(F.max(instant(events, time))).first()[0]
    return 0 if newest is None else int(newest)


def open_partial_matches(steps: Sequence[tuple[StreamStep, pa.Table, int | None]], at: int) -> pa.Table:
    """What is open at an instant in the events that the steps of a stream keep, each up to where it has seen all.

    Queries without FORECAST count only if none has it. Of several queries the result is a common one.
    """
    asked = [plan.bound.forecast is not None for step, _, _ in steps for plan in step.plans]
    shipments: list[WorkerPlan] = []
    batches: list[tuple[WorkerPlan, pa.RecordBatch]] = []
    for step, table, until in steps:
        events = ordered(table, step.plans[0].bound.schema)
        if until is not None:  # what has expired may be there still, or not
            events = step.later(events, step.gone(until))
        of_each = events_of_each([plan.bound for plan in step.plans], events)
        for worker_plan, plan, own in zip(step.shipments, step.plans, of_each, strict=True):
            if any(asked) and plan.bound.forecast is None:
                continue
            assert worker_plan.events is not None
            looking = ship_here(_at_one_instant(plan, at), worker_plan.events, worker_plan.name)
            shipments.append(looking)
            found = find(looking.plan, own)
            batches += [(looking, each) for each in result_batches(looking.plan.bound, own, found, looking.schema)]
    schema = common_result(shipments)
    rows = [batch if each.name is None else result_rows(each, batch, schema) for each, batch in batches]
    return pa.Table.from_batches(rows, schema)


def _at_one_instant(plan: Plan, at: int) -> Plan:
    """The plan for the partial matches of a query that are open at an instant."""
    bound = plan.bound
    if bound.forecast is None:
        check(bound.asking(forecast=LEAST).syntax, bound.text)
        bound = rebound(bound, forecast=LEAST)
    limits: dict[str, Any] = {name: getattr(plan.limits, name) for name in Limits.__dataclass_fields__}
    return make_plan(bound, None, PlanOptions(**limits, model=plan.model, forecast_at=at))[0]
