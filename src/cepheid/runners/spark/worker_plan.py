"""Plans on their way to Spark's workers: with the user's functions, and results in the types that Spark expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.functions import find_function, function_names
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan
from cepheid.runners.spark.arrow_types import to_arrow_schema
from cepheid.runners.spark.session import spark_schema
from cepheid.runners.worker_plans import WorkerPlan, ship_here

_RESULTS = {DataType.BOOL: bool, DataType.INT: int, DataType.FLOAT: float}


def ship(plan: Plan, events: pa.Schema, name: str | None = None) -> WorkerPlan:
    """The plan, narrowed to the columns that it and its output need, for events of an Arrow schema."""
    here = ship_here(plan, events, name)
    large = any(pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type) for column in events)
    expected = to_arrow_schema(spark_schema(here.schema), large)
    return replace(here, schema=expected, functions=tuple(user_functions(_called(plan.bound))))


def user_functions(called: Iterable[str] | None = None) -> Iterator[bytes]:
    """The functions that the user registered here and a worker has never heard of, pickled: all, or some by name."""
    from pyspark import cloudpickle

    for name in sorted(function_names() if called is None else called):
        found = find_function(name)
        if found is not None and found.user and found.result is not None:
            about = (found.name, _RESULTS[found.result], found.call, found.vouched)
            packed: bytes = cloudpickle.dumps(about)  # type: ignore[no-untyped-call]
            yield packed


def _called(bound: BoundQuery) -> set[str]:
    expressions = list(bound.written_conditions())
    expressions += [expression for _, expression in bound.returns or ()]
    totals = bound.summary.totals if bound.summary is not None else ()
    expressions += [total.argument for total in totals if total.argument is not None]
    return called(expressions)


def called(expressions: Iterable[s.Expression]) -> set[str]:
    """The functions that expressions call."""
    return {node.function for expression in expressions for node in s.walk(expression) if isinstance(node, s.Call)}
