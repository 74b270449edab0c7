"""`cepheid.forecast`: all partial matches that are open at one instant, as a table of the kind that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import DataError
from cepheid.runners.dispatch import is_spark, run
from cepheid.runners.live_face import steps_of
from cepheid.runners.tables import as_local, no_table


def forecast_events(events: Any, query: Any, at: Any, keywords: Mapping[str, Any]) -> Any:
    """The partial matches of a query with FORECAST that are open at an instant; None: the newest time there is."""
    time = keywords.get("time", "ts")
    if is_spark(events):
        return run(events, query, **keywords, forecast_at=_spark_instant(events, time, at))
    local = as_local(events)
    if local is None:
        raise no_table(events)
    if time not in local.arrow.column_names:
        raise DataError(
            f"there is no column '{time}'", hint=f"name the time column: time={local.arrow.column_names[0]!r}"
        )
    table = pa.table({time: local.arrow.column(time)})
    instant = _newest(table, time) if at is None else steps_of(at, table.schema, time)
    return local.back(run(local.arrow, query, **keywords, forecast_at=instant))


def _newest(table: pa.Table, time: str) -> int:
    """The last instant of a table; 0 if it is empty."""
    times = times_of(table.filter(table.column(time).is_valid()), time)
    return int(times.max()) if len(times) else 0


def _spark_instant(events: Any, time: str, at: Any) -> int:
    from pyspark.sql import functions as F

    from cepheid.runners.spark.session import arrow_schema
    from cepheid.runners.spark.slices import instant

    if events.isStreaming:
        hint = "write FORECAST 80% into the query, or forecast the table that the stream writes"
        raise DataError("cepheid.forecast looks at one instant, and a stream has none", hint=hint)
    if at is not None:
        return int(steps_of(at, arrow_schema(events), time))
    newest = events.agg(F.max(instant(events, time))).first()[0]
    return 0 if newest is None else int(newest)
