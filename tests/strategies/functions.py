"""Values at the edges of their types and expressions over one event, to hold three evaluators to each other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from cepheid.engine.reference.values import Evaluator
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema

LEAST, GREATEST = -(2**63), 2**63 - 1
WHOLE = [0, 1, -1, 2, 7, -25, 15, 2**31, -(2**40) + 3, 2**53 + 1, GREATEST, LEAST, None]
FRACTIONS = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.675, -1234.5678, 1e10, 1e300, -1e300, 9007199254740993.0, 1e-5]
FRACTIONS += [float("inf"), float("-inf"), float("nan"), None]  # type: ignore[list-item]
TEXTS = ["", "a", "abc", "Abc", " a b ", "a%b", "a_b", "a\\b", "12", " -7 ", "1.5", "1e3", "yes", "FALSE", "a,b,,c"]
TEXTS += [
    "straße",
    "ÄÖ",
    "a\nb",
    "a\r\nb",
    "😀x",
    "x😀",
    "2026-01-31 12:00:00",
    "99999999999999999999",
    "+3",
    "t",
    None,
]  # type: ignore[list-item]
TIMES = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 13, 45, 59, 1),
    dt.datetime(2026, 11, 16, 7, 0),
    dt.datetime(2023, 1, 1),
    dt.datetime(1900, 3, 1, 0, 0, 1),
    dt.datetime(2020, 12, 31, 23, 0),
    None,
]
LISTS = [[1, 2, 3], [], [None, 5], None]
WORDS = [["x", "y"], [], [None, "abc"], None]
MAPS = [{"a": 1, "b": 2}, {}, {"c": None}, None]

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float64()),
        ("s", pa.string()),
        ("t", pa.string()),
        ("u", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("l", pa.list_(pa.int64())),
        ("w", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("d", pa.decimal128(10, 2)),
    ]
)

# Of each kind; {n}, {s} and {u} are filled with expressions of their type.
NUMBERS = ["a.i", "a.j", "a.f", "a.g", "3", "-2.5", "0"]
NUMBERS_OF_NUMBERS = ["{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / {n}", "{n} % {n}", "- {n}", "abs({n})", "sign({n})"]
NUMBERS_OF_NUMBERS += ["mod({n}, {n})", "pmod({n}, {n})", "round({n})", "round({n}, 2)", "round({n}, -1)", "floor({n})"]
NUMBERS_OF_NUMBERS += ["ceil({n})", "sqrt({n})", "least({n}, {n})", "greatest({n}, {n}, {n})", "coalesce({n}, {n})"]
NUMBERS_OF_NUMBERS += ["nullif({n}, {n})", "CASE WHEN {c} THEN {n} ELSE {n} END", "CASE {n} WHEN 1 THEN {n} END"]
NUMBERS_OF_NUMBERS += ["if({c}, {n}, {n})", "CAST({n} AS bigint)", "CAST({n} AS double)", "TRY_CAST({s} AS bigint)"]
NUMBERS_OF_NUMBERS += ["CAST({s} AS double)", "CAST({s} AS int)", "CAST({n} AS float)", "CAST({c} AS bigint)"]
NUMBERS_OF_NUMBERS += ["length({s})", "instr({s}, {s})", "nvl({n}, 0)", "log({n})", "power({n}, 2)", "ifnull({n}, {n})"]
NUMBERS_OF_NUMBERS += [f"{part}({{u}})" for part in ("year", "quarter", "month", "day", "hour", "minute", "second")]
NUMBERS_OF_NUMBERS += [f"{part}({{u}})" for part in ("dayofweek", "weekday", "dayofyear", "weekofyear", "unix_seconds")]
NUMBERS_OF_NUMBERS += ["timestampdiff(minute, {u}, {u})", "timestampdiff(month, {u}, {u})", "datediff({u}, {u})"]
NUMBERS_OF_NUMBERS += [
    "CAST({u} AS bigint)",
    "unix_millis({u})",
    "a.l[1]",
    "element_at(a.l, -1)",
    "size(a.w)",
    "size(a.m)",
]
NUMBERS_OF_NUMBERS += ["a.m['a']", "length(a.l)", "haversine({n}, {n}, 1, 2.5)", "atan2({n}, {n})"]
NUMBERS_OF_NUMBERS += ["ceiling({n})", "cardinality(a.l)", "array_size(a.w)", "strpos({s}, 'b')"]
NUMBERS_OF_NUMBERS += ["unix_timestamp({u})", "to_unixtime({u})", "date_diff({u}, {u})"]
NUMBERS_OF_NUMBERS += ["element_at(array({n}, 1), 1)", "iff({c}, {n}, {n})", "a.d * {n}", "a.d / 3", "round(a.d, 1)"]
STRINGS = ["a.s", "a.t", "'a'", "'a%b'", "''"]
STRINGS_OF_STRINGS = ["lower({s})", "upper({s})", "trim({s})", "ltrim({s})", "rtrim({s})", "concat({s}, {s})"]
STRINGS_OF_STRINGS += ["substring({s}, 2)", "substring({s}, -2, 1)", "substr({s}, 0, 3)", "substring({s}, -9, 9)"]
STRINGS_OF_STRINGS += ["replace({s}, 'a', 'bb')", "replace({s}, 'b')", "regexp_extract({s}, '([a-z]+).([0-9a-z]*)', 2)"]
STRINGS_OF_STRINGS += ["regexp_extract({s}, '(\\d+)')", "left({s}, 2)", "right({s}, 2)", "reverse({s})"]
STRINGS_OF_STRINGS += ["coalesce({s}, {s})", "CASE WHEN {c} THEN {s} ELSE {s} END", "nullif({s}, {s})", "a.w[0]"]
STRINGS_OF_STRINGS += ["CAST(a.i AS string)", "CAST(a.flag AS string)", "CAST(a.f AS string)", "CAST({u} AS string)"]
STRINGS_OF_STRINGS += ["element_at(split({s}, ','), 2)", "get(split({s}, '[,b]'), 0)"]
STRINGS_OF_STRINGS += ["lcase({s})", "ucase({s})", "lpad({s}, 5, 'x')", "rpad({s}, 5, 'x')", "repeat({s}, 2)"]
STRINGS_OF_STRINGS += ["concat_ws('-', {s}, {s})", "array_join(a.w, ',')", "concat({n}, {s})", "least({s}, {s})"]
STRINGS_OF_STRINGS += [f"{name}({{s}}, '$.a')" for name in ("get_json_object", "json_value", "json_extract_scalar")]
INSTANTS = ["a.ts", "a.u"]
INSTANTS_OF_INSTANTS = [f"date_trunc('{unit}', {{u}})" for unit in ("second", "hour", "day", "week", "month", "year")]
INSTANTS_OF_INSTANTS += ["{u} + 5 minutes", "CAST({u} AS date)", "CAST({s} AS timestamp)", "{u} - 90 seconds"]
INSTANTS_OF_INSTANTS += ["local_time({u}, 'America/New_York')", "local_time_at({u}, 'Europe/Berlin')"]
INSTANTS_OF_INSTANTS += ["timestamp_at({s}, 'Asia/Kolkata')"]
INSTANTS_OF_INSTANTS += ["to_date({u})", "date({s})", "to_timestamp({s})"]
CONDITIONS = ["{n} < {n}", "{n} = {n}", "{s} = {s}", "{s} < {s}", "{u} > {u}", "{n} IN (1, 2.5, {n})", "{n} IS NULL"]
CONDITIONS += ["{s} IS NOT NULL", "{n} BETWEEN {n} AND {n}", "a.flag", "NOT ({c} AND {c})", "{c} OR {c}", "{s} != {s}"]
CONDITIONS += [f"{{s}} LIKE '{pattern}'" for pattern in ("a%", "%b", "_b_", "a\\%b", "%a%b%", "", "a\\_b")]
CONDITIONS += [f"{{s}} ILIKE '{pattern}'" for pattern in ("A%", "%B", "ä%", "%STRASSE")]
CONDITIONS += [
    f"{{s}} RLIKE '{pattern}'" for pattern in ("^a.b$", "[a-c]+$", "\\d{2}", "(a|b)*c", "(?i)A", "^$", "a.b", "\\s")
]
CONDITIONS += ["{s} LIKE {s}", "like_pattern({s}, {s})", "ilike_pattern({s}, {s})", "NOT rlike_pattern({s}, {s})"]
CONDITIONS += ["starts_with({s}, {s})", "ends_with({s}, 'b')", "contains({s}, {s})", "NOT {s} LIKE '%b'"]
CONDITIONS += ["isnull({n})", "isnotnull({s})", "isnan({n})", "a.d > {n}", "a.d IN (1.5, {n})", "{n} = a.s"]
CONDITIONS += ["startswith({s}, 'a')", "array_contains(a.l, 5)", "array_contains(a.w, 'y')", "CAST({s} AS boolean)"]
CONDITIONS += ["CAST({n} AS boolean)", "{u} - {u} < 5 minutes", "hour({u}) BETWEEN 8 AND 18", "{u} >= '2024-01-01'"]


@st.composite
def expressions(draw: st.DrawFn, kind: str | None = None, depth: int = 2) -> str:
    """An expression over one event `a`."""
    kind = kind or draw(st.sampled_from("nsuc"))
    plain, more = {
        "n": (NUMBERS, NUMBERS_OF_NUMBERS),
        "s": (STRINGS, STRINGS_OF_STRINGS),
        "u": (INSTANTS, INSTANTS_OF_INSTANTS),
        "c": (["a.flag", "a.i > 1", "a.s = 'a'"], CONDITIONS),
    }[kind]
    text = draw(st.sampled_from(more if depth > 0 else plain))
    while "{" in text.replace("{2}", ""):
        place = min(text.find("{" + each + "}") for each in "nsuc" if "{" + each + "}" in text)
        inner = draw(expressions(text[place + 1], depth - 1 if draw(st.booleans()) else 0))
        text = text[:place] + (f"({inner})" if " " in inner else inner) + text[place + 3 :]
    return text


def table(seed: int = 0, rows: int = 60) -> pa.Table:
    """A table in which the values of all columns meet in many ways."""

    def some(values: list[Any], step: int) -> list[Any]:
        return [values[(row * step + seed) % len(values)] for row in range(rows)]

    columns = [
        some([each for each in TIMES if each], 1),
        some(WHOLE, 1),
        some(WHOLE, 5),
        some(FRACTIONS, 1),
        some(FRACTIONS, 3),
        some(TEXTS, 1),
        some(TEXTS, 7),
        some(TIMES, 3),
        some([True, False, None], 1),
        some(LISTS, 1),
        some(WORDS, 1),
        [None if each is None else list(each.items()) for each in some(MAPS, 1)],
        some([Decimal("1.50"), Decimal("-99999999.99"), Decimal("0.00"), None], 1),
    ]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def bound_value(text: str) -> tuple[BoundQuery, s.Expression]:
    """The expression, bound to the table's columns."""
    query = f"PATTERN SEQ(* a) RETURN {text} AS v"
    bound = bind(check(parse(query), query), Schema.from_arrow(SCHEMA, type=None), {}, query)
    assert bound.returns is not None
    return bound, bound.returns[0][1]


def by_reference(text: str, events: pa.Table) -> list[Any]:
    """The values by the judge."""
    bound, expression = bound_value(text)
    columns = {name: value_column(events.column(name)).to_pylist() for name in events.column_names}
    judge = Evaluator(frozenset(), bound.schema)
    rows = [{name: values[row] for name, values in columns.items()} for row in range(events.num_rows)]
    return [judge.value(expression, {"a": [row]}, {}) for row in rows]


def by_arrow(text: str, events: pa.Table) -> list[Any]:
    """The values over whole columns."""
    _, expression = bound_value(text)
    found = value(expression, lambda node: value_column(events.column(node.name)))  # type: ignore[attr-defined]
    return [found.as_py()] * events.num_rows if isinstance(found, pa.Scalar) else found.to_pylist()


def alike(one: Any, other: Any) -> bool:
    """Are two values the same, up to what SQL does not tell apart?"""
    if one is None or other is None:
        return one is other
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, float) or isinstance(other, float):
        return float(one) == float(other)
    return bool(one == other)
