"""Which runner a table needs, and the options that all runners share."""

from __future__ import annotations

from typing import Any

from cepheid.errors import DataError
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.local import as_local, run_plan


def run(
    events: Any,
    query: Any,
    *,
    time: str = "ts",
    type: str | None = "type",
    time_unit: str | None = None,
    tiebreak: tuple[str, ...] = (),
    lower: str | None = None,
    upper: str | None = None,
    model: Any = None,
    engine: str = "auto",
    scoring: str = "exact",
    **options: Any,
) -> Any:
    """The matches of a query in any kind of table."""
    local = as_local(events)
    if local is None:
        raise DataError(f"events must be a pyarrow, pandas, polars or PySpark table, not {events.__class__.__name__}")
    schema = Schema.from_arrow(
        local.arrow.schema,
        time=time,
        type=type,
        time_unit=time_unit,
        tiebreak=tuple(tiebreak),
        lower=lower,
        upper=upper,
    )
    plan = Plan(query.bind(schema), "reference" if engine == "auto" else engine, model=model, scoring=scoring)
    return local.back(run_plan(plan, local.arrow))
