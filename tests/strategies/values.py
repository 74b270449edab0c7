"""Drawn expressions over extreme values of every type, in the words of query text, of clauses and of Spark SQL.

Kinds of values: i whole numbers, f doubles, d decimals, s strings, b truth values, u timestamps, y dates, l lists of
numbers, k lists of strings, m maps. Numbers of 32 bits are whole numbers and doubles, too: Cepheid computes in 64 bits,
so Spark is given them cast.

An expression is drawn as a template with holes for expressions of a kind; for Spark every operation stands inside
`try_eval`, which is NULL where ANSI mode raises, and doubles inside `nanvl`, since NaN is NULL to us.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

LEAST, GREATEST = -(2**63), 2**63 - 1
WHOLE = [0, 1, -1, 2, 7, -25, 2**31, -(2**40) + 3, 2**53 + 1, GREATEST, LEAST, 10**18 + 1, None]
SHORT = [0, 3, -1, 2**31 - 1, -(2**31), 1000003, None]
FRACTIONS: list[Any] = [0.0, -0.0, 0.5, -2.5, 2.675, 1.005, -1234.5678, 1e10, 1e300, -1e300, 9007199254740992.0, 1e-5]
FRACTIONS += [float("inf"), float("-inf"), float("nan"), 0.49999999999999994, 9.3e18, 5e-324, 1.7976931348623157e308]
FRACTIONS += [-9223372036854775808.0, 1e15 + 0.3, 4503599627370497.5, None]
SINGLE: list[Any] = [0.0, -0.5, 16777216.0, 3.4028234663852886e38, 2.0**-149, float("nan"), float("-inf"), 0.25, None]
DECIMALS = [Decimal(text) for text in ("0.00", "1.50", "-0.05", "12345678.99", "-99999999.99", "2.00", "100.25")]
WIDE = [Decimal(text) for text in ("0", "12345678901234567.0001", "12345678901234568", "-1.5", "99999999999999999999")]
WIDE += [Decimal("9223372036854775807.5"), Decimal("1e-4")]
WIDEST = [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), Decimal(2**63), Decimal(-(2**63)), Decimal(7), None]
TEXTS: list[Any] = ["", "a", "abc", "Abc", " a b ", "a%b", "a_b", "a\\b", "12", " -7 ", "1.5", "1e3", "yes", "FALSE"]
TEXTS += [
    "a,b,,c",
    "straße",
    "ÄÖ",
    "a\nb",
    "😀x",
    "x😀",
    "2026-01-31 12:00:00",
    "99999999999999999999",
    "+3",
    "t",
    "inf",
]
TEXTS += [
    "\t x",
    "1_000",
    "2024-02-29",
    "2023-02-29",
    "İı",
    "ὈΔΥΣΣΕΎΣ",
    "0.10",
    "1",
    "9223372036854775807",
    "1e400",
    ".5",
    "5.",
]
TEXTS += [
    "-9223372036854775809",
    "0x10",
    "1d",
    "1.5f",
    "Infinity",
    "\u00a01",
    "2026-1-5",
    "2026-01-31T12:00:00Z",
]
TEXTS += [
    "2026-01-31 12:00:00.1234567+02:00",
    "epoch",
    "e\u0301",
    "ﬁn",
    "ŉ",
    "\x00a",
    "a\x1f ",
    "-0",
    "-0.0",
    '{"a": [1, {"b": "x y"}, null], "c": 1.50}',
    '{"a": {"b": 12345678901234567890, "é": "q\\u0041\\n"}}',
    '[{"a": true}, 1e3]',
    None,
]
TIMES: list[Any] = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 13, 45, 59, 1),
    dt.datetime(2024, 1, 31, 12, 0, 0, 123456),
    dt.datetime(2024, 3, 31, 11, 59, 59),
    dt.datetime(2023, 1, 1),
    dt.datetime(1900, 3, 1, 0, 0, 1),
    dt.datetime(2020, 12, 31, 23, 0),
    dt.datetime(1582, 10, 4, 23, 59, 59),
    dt.datetime(5, 1, 1),
    dt.datetime(9989, 12, 31, 23, 59, 59, 999999),
    None,
]
DATES: list[Any] = [time and time.date() for time in TIMES]
LISTS: list[Any] = [[1, 2, 3], [], [None, 5], [GREATEST], None]
WORDS: list[Any] = [["a", "b"], [], ["abc", None, ""], ["a,b"], None]
MAPS: list[Any] = [{"a": 1, "b": None}, {}, {"a": GREATEST, "abc": -1}, None]
TIMESTAMP = pa.timestamp("us", "UTC")

COLUMNS: dict[str, tuple[str, list[Any], pa.DataType]] = {
    "i": ("i", WHOLE, pa.int64()),
    "j": ("i", WHOLE, pa.int64()),
    "n": ("i", SHORT, pa.int32()),
    "f": ("f", FRACTIONS, pa.float64()),
    "g": ("f", FRACTIONS, pa.float64()),
    "h": ("f", SINGLE, pa.float32()),
    "d": ("d", [*DECIMALS, None], pa.decimal128(10, 2)),
    "w": ("d", [*WIDE, None], pa.decimal128(26, 4)),
    "x": ("x", WIDEST, pa.decimal128(38, 0)),
    "s": ("s", TEXTS, pa.string()),
    "t": ("s", TEXTS, pa.string()),
    "u": ("u", TIMES, TIMESTAMP),
    "v": ("u", TIMES, TIMESTAMP),
    "y": ("y", DATES, pa.date32()),
    "z": ("y", DATES, pa.date32()),
    "flag": ("b", [True, False, None], pa.bool_()),
    "l": ("l", LISTS, pa.list_(pa.int64())),
    "k": ("k", WORDS, pa.list_(pa.string())),
    "m": ("m", MAPS, pa.map_(pa.string(), pa.int64())),
}
_STEPS = {"j": 5, "g": 5, "w": 3, "t": 7, "v": 4, "y": 2, "z": 5, "x": 2}
_AS_SPARK = {"n": "CAST(n AS bigint)", "h": "nanvl(CAST(h AS double), CAST(NULL AS double))"}


def table(rows: int = 120) -> pa.Table:
    """A table in which the values of all columns meet in many ways."""
    found: dict[str, pa.Array] = {"id": pa.array(range(rows), pa.int64())}
    found["ts"] = pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(seconds=row) for row in range(rows)], TIMESTAMP)
    for name, (_, values, kind) in COLUMNS.items():
        step = _STEPS.get(name, 1)
        chosen = [values[(row * step + row // 30) % len(values)] for row in range(rows)]
        found[name] = pa.array([list(one.items()) if isinstance(one, dict) else one for one in chosen], kind)
    return pa.table(found)


LITERALS = {
    "i": ["3", "0", "-2", "9007199254740993"],
    "f": ["1.5e0", "0e0", "-2e0", "1e308"],
    "d": ["1.5", "0.10", "-2.50", "100.0"],
    "s": ["'a'", "''", "'12'", "'straße'", "'a%b'"],
    "b": ["TRUE", "FALSE"],
    "u": ["TIMESTAMP '2024-02-29 12:00:00'"],
    "y": ["DATE '2024-02-29'"],
    "l": [],
    "k": [],
    "m": [],
    "x": ["99999999999999999999999999999999999999"],
}
# {k} is a hole for an expression of kind k; ~...~ marks what Spark gives as a 32-bit number.
_TEMPLATES: dict[str, list[str]] = {
    "i": [
        *("{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} % {i}", "-({i})", "abs({i})", "mod({i}, {i})", "pmod({i}, {i})"),
        *("floor({f})", "ceil({f})", "round({i})", "round({i}, -1)", "round({i}, -19)", "least({i}, {i})"),
        *("greatest({i}, {i}, {i})", "coalesce({i}, {i})", "nullif({i}, {i})", "nvl({i}, 0)", "if({b}, {i}, {i})"),
        *("CASE WHEN {b} THEN {i} ELSE {i} END", "CASE WHEN {b} THEN {i} END", "CAST({f} AS bigint)"),
        *("CAST({d} AS bigint)", "CAST({s} AS bigint)", "CAST({b} AS bigint)", "CAST({u} AS bigint)"),
        *("~CAST({i} AS int)~", "~CAST({s} AS int)~", "~CAST({f} AS smallint)~", "~length({s})~", "~instr({s}, {s})~"),
        *(f"~{part}({{u}})~" for part in ("year", "quarter", "month", "day", "hour", "minute", "second", "dayofweek")),
        *(f"~{part}({{y}})~" for part in ("year", "weekday", "dayofyear", "weekofyear", "dayofmonth", "month")),
        *(
            "unix_seconds({u})",
            "unix_millis({u})",
            "unix_timestamp({u})",
            "~datediff({y}, {y})~",
            "~datediff({u}, {y})~",
        ),
        *(f"timestampdiff({unit}, {{u}}, {{u}})" for unit in ("month", "quarter", "year", "week", "day", "hour")),
        *("~size({l})~", "element_at({l}, 1)", "element_at({l}, -1)", "get({l}, 0)", "get({l}, 7)"),
        *("~size({k})~", "~array_size({k})~", "~cardinality({l})~", "element_at({m}, 'a')"),
        *("ceiling({f})", "~char_length({s})~", "~date_diff({y}, {y})~", "ifnull({i}, {i})", "unix_micros({u})"),
        *("~strpos->instr({s}, {s})~", "iff->if({b}, {i}, {i})"),
        *("TRY_CAST({s} AS bigint)", "TRY_CAST({f} AS bigint)", "~CAST({u} AS int)~"),
    ],
    "f": [
        *("{f} + {f}", "{f} - {f}", "{f} * {f}", "{f} / {f}", "{f} % {f}", "{i} + {f}", "{f} * {i}", "{i} / {i}"),
        *("{f} - {d}", "{d} * {f}", "-({f})", "abs({f})", "sign({f})", "sign({i})", "sqrt({f})", "round({f})"),
        *("round({f}, 2)", "round({f}, -2)", "least({f}, {f})", "greatest({f}, {i}, {f})", "coalesce({f}, {i})"),
        *("nullif({f}, {f})", "if({b}, {f}, {d})", "CASE WHEN {b} THEN {f} ELSE {i} END", "CAST({i} AS double)"),
        *("CAST({s} AS double)", "CAST({d} AS double)", "CAST({u} AS double)", "pmod({f}, {f})"),
        *("TRY_CAST({s} AS double)", "abs({i} - {f})", "nvl({f}, {i})", "CAST({b} AS double)"),
    ],
    "d": [
        *("{d} + {d}", "{d} - {i}", "{i} + {d}", "{d} * {d}", "{d} * {i}", "{d} / {d}", "{d} / {i}", "{d} % {d}"),
        *("-({d})", "abs({d})", "round({d}, 1)", "round({d})", "round({d}, -1)", "floor({d})", "ceil({d})"),
        *("least({d}, {d})", "greatest({d}, {d})", "coalesce({d}, {d})", "CAST({f} AS decimal(12,3))"),
        *("CAST({s} AS decimal(20,2))", "CAST({i} AS decimal(12,0))", "CAST({d} AS decimal(6,1))", "nullif({d}, {d})"),
        *("CASE WHEN {b} THEN {d} ELSE {d} END", "pmod({d}, {d})"),
    ],
    "s": [
        *("lower({s})", "upper({s})", "trim({s})", "ltrim({s})", "rtrim({s})", "concat({s}, {s})", "reverse({s})"),
        *("substring({s}, 2)", "substring({s}, -2, 1)", "substring({s}, -50, 3)", "substring({s}, 0, 3)"),
        *("replace({s}, 'a', 'bb')", "replace({s}, 'b')", "replace({s}, '', 'z')", "left({s}, 2)", "right({s}, 2)"),
        *("coalesce({s}, {s})", "least({s}, {s})", "greatest({s}, {s})", "CASE WHEN {b} THEN {s} ELSE {s} END"),
        *(
            "nullif({s}, {s})",
            "CAST({i} AS string)",
            "CAST({b} AS string)",
            "CAST({d} AS string)",
            "CAST(@f AS string)",
        ),
        *(
            "CAST({u} AS string)",
            "CAST({y} AS string)",
            "concat({i}, {s})",
            "concat({d}, {b}, {y})",
            "lpad({s}, 3, 'x')",
        ),
        *("rpad({s}, 4)", "repeat({s}, 2)", "concat_ws('-', {s}, {s})", "element_at(split({s}, ','), 2)"),
        *("get(split({s}, ''), 0)", "regexp_extract({s}, '([a-z]+).([0-9a-z]*)', 2)", "least({y}, {y})->string"),
        *("lcase({s})", "ucase({s})", "substr({s}, 2, 2)", "array_join({k}, ',')", "concat_ws('-', {k}, {s})"),
        *("element_at({k}, 1)", "get({k}, 0)", "element_at({k}, -1)", "ifnull({s}, 'none')"),
        *("concat({u}, {s})", "concat(@f, {s})"),
        *(
            "nvl({s}, {s})",
            *(f"get_json_object({{s}}, '{path}')" for path in ("$.a", "$.a[1].b", "$[0].a", "$", "$.c")),
        ),
    ],
    "b": [
        *(f"{{{kind}}} {sign} {{{kind}}}" for kind in "ifdsuy" for sign in ("=", "<", "<=", "!=")),
        *("{i} = {f}", "{i} < {f}", "{i} = {d}", "{i} > {d}", "{d} <= {f}", "{i} > 1.5", "{i} = 9007199254740993.0"),
        *("{i} = @s", "{f} = @t", "@s = {i}", "{b} = @t", "{u} > {y}", "{y} = {u}", "{i} IN (1, 2.5, {i})"),
        *(
            "{f} IN (0.0, 1.0)",
            "{s} IN ('a', {s})",
            "{d} IN (1.5, {i})",
            "{i} BETWEEN {i} AND {i}",
            "{i} BETWEEN 1.5 AND 7",
        ),
        *(
            "{i} IS NULL",
            "{f} IS NOT NULL",
            "{s} IS NULL",
            "{d} IS NULL",
            "NOT {b}",
            "{b} AND {b}",
            "{b} OR {b}",
            "{b} = {b}",
        ),
        *(f"{{s}} LIKE '{pattern}'" for pattern in ("a%", "%b", "_b_", "%a%b%", "")),
        *(f"{{s}} RLIKE '{pattern}'" for pattern in ("^a.b", "[a-c]+", "^(a+)+b", "a.b", "^[0-9]")),
        *("starts_with->startswith({s}, {s})", "ends_with->endswith({s}, 'b')", "contains({s}, {s})"),
        *("array_contains({l}, {i})", "CAST({s} AS boolean)", "CAST({i} AS boolean)", "CAST({f} AS boolean)"),
        *("CAST({d} AS boolean)", "isnull({i})", "isnotnull({s})"),
        *("array_contains({k}, {s})", "{s} ILIKE 'A%'", "{s} ILIKE '%Ä_'", "regexp_like({s}, '[a-c]$')", "isnan({f})"),
        *("{s} NOT LIKE 'a%'", "{i} NOT IN (1, {i})", "{s} NOT IN ('a', 'abc')", "{i} NOT BETWEEN {i} AND {f}"),
        *("{d} BETWEEN {i} AND {d}", "{s} BETWEEN {s} AND {s}", "{u} BETWEEN {u} AND {u}", "{y} IN ({y}, {y})"),
        *("{u} = '2024-01-31 12:00:00.123456'", "{y} >= '2024-02-29'", "CAST({i} AS boolean) = {b}", "{y} != {u}"),
        *("nullif({b}, {b})", "coalesce({b}, {b})", "CASE WHEN {b} THEN {b} ELSE {b} END", "TRY_CAST({s} AS boolean)"),
    ],
    "u": [
        *(f"date_trunc('{unit}', {{u}})" for unit in ("second", "hour", "day", "week", "month", "quarter", "year")),
        *("date_trunc('millisecond', {u})", "date_trunc('microsecond', {u})", "CAST({s} AS timestamp)"),
        *("CAST({y} AS timestamp)", "least({u}, {u})", "coalesce({u}, {u})", "{u} + INTERVAL '5' MINUTE"),
        *("CASE WHEN {b} THEN {u} ELSE {u} END", "{u} - INTERVAL '90' SECOND", "to_timestamp({s})"),
        *("greatest({u}, {u}, {u})", "nullif({u}, {u})", "CAST(@n AS timestamp)", "TRY_CAST({s} AS timestamp)"),
        *("if({b}, {u}, {y})", "{u} - INTERVAL '36' HOUR", "{u} + INTERVAL '400' DAY"),
    ],
    "y": [
        "CAST({u} AS date)",
        "CAST({s} AS date)",
        "to_date({u})",
        "greatest({y}, {y})",
        "coalesce({y}, {y})",
        "date({s})",
    ],
    "l": ["array({i}, {i})"],
    "k": ["split({s}, ',')", "split({s}, '')", "split({s}, '[0-9]')", "array({s}, {s})"],
    "m": [],
}
# Only at the top, as Spark brings decimals of 38 digits to a common type before it compares them, and rounds.
_WIDEST = [
    *(
        ("d", each)
        for each in ("-(@x)", "abs(@x)", "@x + @x", "@x - {i}", "@x * @x", "@x / {d}", "@x % {d}", "{i} % @x")
    ),
    *(("d", each) for each in ("round(@x, -2)", "floor(@x)", "nullif(@x, {i})", "@x * 0.1", "pmod(@x, 7)", "{d} - @x")),
    *(("b", each) for each in ("@x = @x", "@x < {i}", "@x IN (7, {i})", "@x IS NULL", "CAST(@x AS boolean)")),
    *(("s", each) for each in ("CAST(@x AS string)", "concat(@x, {s})")),
    *(("i", "CAST(@x AS bigint)"), ("f", "CAST(@x AS double)"), ("f", "@x * {f}"), ("f", "@x + {f}")),
]
# Only at the top: another library may differ in the last bit.
_ROUNDED = [
    *(
        "exp({f})",
        "ln({f})",
        "log({f})",
        "log10({f})",
        "log2({f})",
        "log(2e0, {f})",
        "power({f}, {f})",
        "power({i}, {i})",
    ),
    *("sin({f})", "cos({f})", "tan({f})", "atan2({f}, {f})", "radians({f})", "degrees({f})", "pow({f}, 2)"),
]


class Drawn(NamedTuple):
    """An expression: its kind, the text with columns as @name, the same for Spark, and whether its last bit counts."""

    kind: str
    text: str
    spark: str
    rounded: bool = False

    def over(self, row: str) -> str:
        """The text with the columns of a variable or label."""
        return self.text.replace("@", f"{row}.")


def draw(seed: int, kind: str | None = None) -> Drawn:
    """One expression."""
    chance = random.Random(seed)
    if kind is None and chance.random() < 0.06:
        return _filled(chance, "f", chance.choice(_ROUNDED), 2)._replace(rounded=True)
    if kind is None and chance.random() < 0.03:
        return _filled(chance, *chance.choice(_WIDEST), 2)
    return _drawn(chance, kind or chance.choice("iiiffdddsssbbbbuylk"), chance.choice((1, 1, 2, 2, 3)))


def _drawn(chance: random.Random, kind: str, depth: int) -> Drawn:
    if depth == 0 or kind == "m" or (kind not in "lk" and chance.random() < 0.1):
        columns = [name for name, (of, _, _) in COLUMNS.items() if of == kind]
        if LITERALS[kind] and chance.random() < 0.2:
            text = chance.choice(LITERALS[kind])
            return Drawn(kind, text, f"{text}L" if kind == "i" else text.replace("e0", "D").replace("e308", "E308D"))
        name = chance.choice(columns)
        as_spark = f"nanvl({name}, CAST(NULL AS double))" if kind == "f" else name
        return Drawn(kind, f"@{name}", _AS_SPARK.get(name, as_spark))
    return _filled(chance, kind, chance.choice(_TEMPLATES[kind]), depth)


def _filled(chance: random.Random, kind: str, template: str, depth: int) -> Drawn:
    if template.endswith("->string"):
        template, kind = f"CAST({template.removesuffix('->string')} AS string)", "s"
    named = re.match(r"~?(\w+)->(\w+)", template)
    ours = template.replace("~", "")
    spark = template.replace(f"{named[1]}->", "") if named else template
    ours = ours.replace(f"->{named[2]}", "") if named else ours
    texts, others = "", ""
    for place, (piece, other) in enumerate(zip(_split(ours), _split(spark), strict=True)):
        if place % 2:
            inner = _drawn(chance, piece, depth - 1)
            plain = re.fullmatch(r"[@\w.']+|\w+\(.*\)", inner.text) and inner.text.count("(") <= 1
            texts += inner.text if plain else f"({inner.text})"
            others += inner.spark
        else:
            texts, others = texts + piece, others + other
    others = re.sub(r"^~(.*)~$", r"CAST(\1 AS bigint)", others, flags=re.DOTALL)
    others = others.replace("@f", "nanvl(f, CAST(NULL AS double))").replace("@", "").replace("log(2e0", "log(2D")
    others = f"try_eval({others})"
    return Drawn(kind, texts, f"nanvl({others}, CAST(NULL AS double))" if kind == "f" else others)


def _split(template: str) -> list[str]:
    return re.split(r"\{(\w)\}", template)
