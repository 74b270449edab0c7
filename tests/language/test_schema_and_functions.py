"""What a query may know of its events, and the functions it may call."""

import functools
import math
from collections.abc import Callable

import numba
import pyarrow as pa
import pytest

from cepheid.errors import CepheidError, DataError, QueryError
from cepheid.language import functions
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.functions import BUILT_IN, find_function, function, function_names
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema, data_type
from cepheid.language.units import UNITS, convert, unit_named

FIELDS = [("ts", pa.int64()), ("type", pa.string()), ("x", pa.int32())]


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.int8(), DataType.INT),
        (pa.uint64(), DataType.INT),
        (pa.float32(), DataType.FLOAT),
        (pa.decimal128(10, 2), DataType.DECIMAL),
        (pa.bool_(), DataType.BOOL),
        (pa.large_string(), DataType.STRING),
        (pa.dictionary(pa.int8(), pa.string()), DataType.STRING),
        (pa.timestamp("ns", "UTC"), DataType.TIME),
        (pa.date32(), DataType.DATE),
        (pa.large_list(pa.float64()), DataType.LIST),
        (pa.list_(pa.string()), DataType.TEXTS),
        (pa.map_(pa.string(), pa.int64()), DataType.MAP),
        (pa.map_(pa.string(), pa.list_(pa.int64())), DataType.OTHER),
        (pa.struct([("a", pa.int8())]), DataType.OTHER),
    ],
)
def test_types(arrow: pa.DataType, expected: DataType) -> None:
    assert data_type(arrow) is expected


def test_roles_and_units() -> None:
    assert Schema.from_arrow(pa.schema(FIELDS), time_unit="ms").time_unit == "milliseconds"
    stamped = Schema.from_arrow(pa.schema([("at", pa.timestamp("us"))]), time="at", type=None)
    assert (stamped.time, stamped.type, stamped.time_unit) == ("at", None, "microseconds")
    imprecise = Schema.from_arrow(
        pa.schema([("lo", pa.int64()), ("hi", pa.int64())]), type=None, lower="lo", upper="hi"
    )
    assert (imprecise.time, imprecise.lower, imprecise.upper) == ("lo", "lo", "hi")


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        (FIELDS, {"time": "tss"}, "no column 'tss' for the time; did you mean time='ts'?"),
        (
            [("when", pa.timestamp("us")), *FIELDS[1:]],
            {},
            "no column 'ts' for the time; did you mean time='when'?",
        ),
        (FIELDS[:1], {}, "no column 'type' for the type; the columns are ts (pass type=None for an untyped stream)"),
        (FIELDS, {"tiebreak": ("y",)}, "no column 'y' for the tiebreak; the columns are ts, type, x"),
        (FIELDS, {"time": "type"}, "column 'type' holds the time and must be a whole number or a timestamp, but it is"),
        (FIELDS, {"type": "x"}, "column 'x' holds the event type and must be a string, but it is int32"),
        (FIELDS, {"time_unit": "fortnights"}, "no time unit 'fortnights'"),
        ([("ts", pa.timestamp("us")), *FIELDS[1:]], {"time_unit": "s"}, "column 'ts' is a timestamp"),
        ([*FIELDS, ("x", pa.int8())], {}, "two columns are called 'x'"),
    ],
)
def test_schemas_that_do_not_fit(
    fields: list[tuple[str, pa.DataType]], options: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError) as raised:
        Schema.from_arrow(pa.schema(fields), **options)  # type: ignore[arg-type]
    assert message in str(raised.value)


def test_units_convert_exactly() -> None:
    for unit, size in UNITS.items():
        assert convert(1, unit, "nanoseconds") == size
        assert unit_named(unit.upper()) == unit
    assert convert(0.1, "seconds", "microseconds") == 100_000
    assert convert(1, "microseconds", "milliseconds") == 0.001


# --- functions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_USER", {})


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("sqrt", (-1,), math.nan),
        ("log", (0,), math.nan),
        ("exp", (1e6,), math.inf),
        ("power", (0, -1), math.inf),
        ("floor", (-0.5,), -1),
        ("floor", (-1.5,), -2),
        ("ceil", (-1.5,), -1),
        ("corr", ([1.0, 2.0], [3.0, 3.0]), math.nan),
        ("corr", ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]), -1.0),
        ("corr", ([], []), math.nan),
        ("greatest", (1, 2.5), 2.5),
        ("length", ("abc",), 3),
    ],
)
def test_built_in_functions(name: str, arguments: tuple[object, ...], expected: float) -> None:
    assert BUILT_IN[name].call(*arguments) == pytest.approx(expected, nan_ok=True)


@pytest.mark.usefixtures("registry")
def test_registered_functions_say_what_they_take_and_give() -> None:
    @function
    def near(x: float, y: float, limit: float = 1.0) -> bool:
        return abs(x - y) < limit

    @function(name="Total", result=int)
    def add_up(*values):  # type: ignore[no-untyped-def]
        return sum(values)

    found, total = find_function("NEAR"), find_function("total")
    assert found is not None
    assert (found.least, found.most, found.result) == (2, 3, DataType.BOOL)
    assert total is not None
    assert (total.least, total.most, total.result) == (0, 20, DataType.INT)
    assert near(1.0, 1.5)
    assert {"near", "total", "avg", "abs"} <= set(function_names())


@pytest.mark.usefixtures("registry")
def test_compiled_and_partial_functions_can_be_registered() -> None:
    function(name="twice")(numba.njit(lambda x: 2.0 * x))
    function(name="cube")(functools.partial(pow, exp=3))
    assert [(f.least, f.most) for f in map(find_function, ("twice", "cube")) if f is not None] == [(1, 1), (1, 1)]


@pytest.mark.usefixtures("registry")
def test_a_registered_function_hides_a_built_in_one() -> None:
    @function
    def corr(x: float, y: float) -> float:
        return 0.0

    found = find_function("Corr")
    assert found is not None
    assert found.user


def _text(x: float) -> str:
    return str(x)


def _by_keyword(x: float, *, scale: float) -> float:
    return x * scale


@pytest.mark.parametrize(
    ("call", "name", "message"),
    [
        (abs, "avg", "a function cannot be called 'avg'"),
        (abs, "not", "a function cannot be called 'not'"),
        (abs, "skip_till_any_match", "a function cannot be called"),
        (lambda x: x, None, "a function cannot be called '<lambda>'; pass name=... with another name"),
        (_text, None, "function '_text' must return bool, int or float"),
        (_by_keyword, None, "function '_by_keyword' has an argument that queries cannot pass; give it a default"),
    ],
)
@pytest.mark.usefixtures("registry")
def test_functions_that_cannot_be_registered(call: Callable[..., object], name: str | None, message: str) -> None:
    with pytest.raises(CepheidError) as raised:
        function(name=name)(call)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "told"),
    [(pa.duration("us"), "a length of time is not an instant"), (pa.time64("us"), "a time of day has no date")],
)
def test_times_that_say_not_when_get_a_hint_that_can_be_followed(kind: pa.DataType, told: str) -> None:
    with pytest.raises(DataError, match=told):
        Schema.from_arrow(pa.schema([("ts", kind), ("type", pa.string())]))


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("a.wait > 3", "a length of time cannot be compared with a whole number"),
        ("a.at < b.at", "a time of day cannot be compared with a time of day"),
        ("[at]", "'at' is a time of day, which cannot be compared"),
        ("a.user = 3", "a struct cannot be compared with a whole number"),
    ],
)
def test_columns_of_no_use_are_named(condition: str, told: str) -> None:
    columns = pa.schema(
        [
            ("ts", pa.int64()),
            ("type", pa.string()),
            ("wait", pa.duration("us")),
            ("at", pa.time64("us")),
            ("user", pa.struct([("id", pa.int64())])),
        ]
    )
    with pytest.raises(QueryError) as caught:
        bind(check(parse(f"PATTERN SEQ(A a, B b) WHERE {condition}")), Schema.from_arrow(columns))
    assert caught.value.message == told
    assert "first" in str(caught.value.hint) or "such as a.user.id" in str(caught.value.hint)
