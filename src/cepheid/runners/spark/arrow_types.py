"""Spark's types as Arrow's, in every version of PySpark that is tested: 4.0 and 4.1 name things otherwise.

Timestamps are UTC whatever the session's zone, and those without a zone stay so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa


def to_arrow_schema(schema: Any, large: bool = False) -> pa.Schema:
    """The columns of a Spark table as Python workers see them; `large`: with 64-bit offsets in texts."""
    from pyspark.sql.pandas import types

    return types.to_arrow_schema(schema, prefers_large_types=large, **_in_utc(types.to_arrow_schema))


def to_arrow_type(kind: Any) -> pa.DataType:
    """The same for one column."""
    from pyspark.sql.pandas import types

    return types.to_arrow_type(kind, **_in_utc(types.to_arrow_type))


def _in_utc(call: Callable[..., object]) -> dict[str, Any]:
    """What makes timestamps UTC: the zone since 4.2, what it did by itself before."""
    return {"timezone": "UTC"} if "timezone" in inspect.signature(call).parameters else {}
