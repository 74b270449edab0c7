"""The systems whose clauses and statements are read: each is a set of overrides on Spark's SQL.

A new system is one more entry of `DIALECTS`. Whatever differs between systems is a field of `Dialect`, so that no other
module names a system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cepheid.errors import CepheidError, closest


@dataclass(frozen=True)
class Dialect:
    """What a system does otherwise than the standard and Spark."""

    nulls: str = "small"  # in ORDER BY, NULL is smaller or larger than every value, or always last
    whole_division: bool = False  # 1 / 2 is 0
    products: Mapping[str, str] = field(default_factory=dict)  # further operators of the rank of *
    double_quoted_strings: bool = False  # "x" is a string, unless it can only be a name
    escapes: bool = False  # a backslash in a string of the statement takes the next character as it is
    double_literals: bool = False  # 1.5 is a double, not a decimal
    first_index: int = 0  # of the first element of an array
    brackets: bool = False  # [x, y] is an array, and {'a': x} a struct
    bare_names: bool = False  # AS may be left out before a measure's name
    empty_choices: bool = False  # A | is as much as A | ()
    distinct: bool = True  # aggregates of a row pattern take DISTINCT
    filters: bool = True  # and FILTER (WHERE ...)
    nulls_in_arrays: bool = True  # array_agg keeps NULLs, and is NULL without rows rather than empty
    whole_average: bool = False  # of whole numbers
    functions: Mapping[str, str] = field(default_factory=dict)  # other names of functions, and the library's
    other_meaning: Mapping[str, str] = field(
        default_factory=dict
    )  # functions that mean something else, and what to use


_TRINO = Dialect(nulls="last", whole_division=True, distinct=False, filters=False, first_index=1)
_SPARK = Dialect(double_quoted_strings=True, escapes=True, nulls_in_arrays=False)
_POSTGRES = Dialect(nulls="large", whole_division=True, first_index=1)
_MYSQL = Dialect(double_quoted_strings=True, escapes=True)
_STANDARD = Dialect(first_index=1)
DIALECTS: dict[str, Dialect] = {
    "spark": _SPARK,
    "databricks": _SPARK,
    "flink": Dialect(whole_division=True, distinct=False, filters=False, whole_average=True, first_index=1),
    "trino": _TRINO,
    "presto": _TRINO,
    "athena": _TRINO,
    "snowflake": Dialect(nulls="large", escapes=True, bare_names=True, nulls_in_arrays=False),
    "oracle": Dialect(nulls="large"),
    "bigquery": Dialect(
        double_quoted_strings=True, escapes=True, double_literals=True, bare_names=True, empty_choices=True
    ),
    "duckdb": Dialect(
        nulls="last",
        products={"//": "whole /"},
        brackets=True,
        first_index=1,
        functions={
            "list": "array_agg",
            "arg_max": "max_by",
            "arg_min": "min_by",
            "len": "length",
            "prefix": "starts_with",
            "suffix": "ends_with",
            "regexp_matches": "regexp_like",
            "list_contains": "array_contains",
            "list_value": "array",
            "list_has": "array_contains",
            "epoch_ms": "unix_millis",
            "epoch_us": "unix_micros",
            "json_extract_string": "get_json_object",
        },
        other_meaning={
            "log": "ln or log10",
            "concat": "||",
            "datediff": "a difference of times",
            **dict.fromkeys(("date_diff", "dayofweek", "weekday", "split"), "a column that is computed before"),
        },
    ),
    **dict.fromkeys(("calcite", "teradata", "exasol", "druid", "drill", "dremio", "fabric"), _STANDARD),
    **dict.fromkeys(("materialize", "risingwave"), _STANDARD),
    "postgres": _POSTGRES,
    "redshift": _POSTGRES,
    **dict.fromkeys(("tsql", "sqlite"), Dialect(whole_division=True)),
    **dict.fromkeys(("mysql", "hive"), _MYSQL),
    **dict.fromkeys(("spark2", "clickhouse", "starrocks", "doris"), Dialect(escapes=True)),
}


def name_in_other_dialects(function: str) -> str | None:
    """A hint for a function that some dialect knows by this name.

    >>> name_in_other_dialects("arg_max")
    "use max_by, or dialect='duckdb'"
    """
    for dialect, overrides in DIALECTS.items():
        if function in overrides.functions:
            return f"use {overrides.functions[function]}, or dialect='{dialect}'"
    return None


def known_dialect(given: object) -> str:
    """The name of a dialect, whatever its case.

    >>> known_dialect("Trino")
    'trino'
    """
    name = given.lower() if isinstance(given, str) else ""
    if name in DIALECTS:
        return name
    guess = closest(name, DIALECTS)
    listed = ", ".join(DIALECTS)
    hint = f"did you mean {guess}? There are {listed}" if guess else f"there are {listed}"
    raise CepheidError(f"no dialect {given!r}", hint=hint)
