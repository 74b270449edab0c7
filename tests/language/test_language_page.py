"""The queries, conditions and names on docs/language.md are those that the language knows."""

import re
from pathlib import Path

import pytest

from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import bind
from cepheid.language.check import RESULT_COLUMNS, check
from cepheid.language.functions import BUILT_IN
from cepheid.language.guess import guessed_schema
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema
from cepheid.language.syntax import OutputMode, Strategy
from cepheid.language.units import UNITS, unit_named

COMMAND = "PYTHONPATH=src:tests .venv/bin/python -m language.function_tables"
PAGE = (Path(__file__).parent.parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
COLUMNS = {"ts": DataType.INT, "type": DataType.STRING, "id": DataType.INT, "name": DataType.STRING}
COLUMNS |= {"x": DataType.INT, "y": DataType.INT, "z": DataType.INT, "s": DataType.STRING, "f": DataType.FLOAT}
SCHEMA = Schema(tuple({**COLUMNS, "flag": DataType.BOOL}.items()), "ts", "type")
PARAMETERS = {"T": 3, "Finance": ["JPM"]}


def rows(first_heading: str) -> list[list[str]]:
    """The cells of all tables whose first column is called this."""
    found = []
    for table in re.findall(rf"^\| {first_heading} \|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE):
        found += [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()]
    return found


@pytest.mark.parametrize("text", QUERIES)
def test_queries(text: str) -> None:
    query = check(parse(text), text)
    assert check(parse(to_text(query))) == query
    bind(query, guessed_schema(query), {}, text)


@pytest.mark.parametrize("cell", [row[0] for row in rows("Condition")])
def test_conditions(cell: str) -> None:
    (condition,) = CODE.findall(cell)
    text = f"PATTERN SEQ(A a, G+ g[], B b) WHERE {condition} WITHIN 10"
    bind(check(parse(text), text), SCHEMA, PARAMETERS, text)


@pytest.mark.parametrize("cell", [row[0] for row in rows("Component")])
def test_components(cell: str) -> None:
    for component in CODE.findall(cell):
        text = (
            f"PATTERN SEQ({component}, B b) WHERE a.x > 1 WITHIN 10"
            if component == "a"
            else f"SEQ({component}, B b) WITHIN 3"
        )
        check(parse(text), text)


@pytest.mark.parametrize("cell", [row[0] for row in rows("Output")])
def test_outputs(cell: str) -> None:
    (clause,) = CODE.findall(cell)
    assert to_text(parse(f"PATTERN A a {clause}")).endswith(clause) == (clause != "OUTPUT ALL")


def test_all_output_modes_are_listed() -> None:
    listed = {CODE.findall(row[0])[0].split()[1] for row in rows("Output")}
    assert listed == {mode.value for mode in OutputMode}


def test_all_strategies_are_listed() -> None:
    assert [CODE.findall(row[0]) for row in rows("Strategy")] == [[strategy.value] for strategy in Strategy]


def test_all_units_are_listed_with_their_spellings() -> None:
    *units, events = rows("Unit")
    assert [CODE.findall(row[0]) for row in units] == [[unit] for unit in UNITS]
    for unit, spellings in ((CODE.findall(row[0])[0], CODE.findall(row[1])) for row in units):
        assert {unit_named(spelling) for spelling in spellings} == {unit}
    assert CODE.findall(events[0]) == ["EVENTS"]


def test_all_functions_are_listed() -> None:
    listed = [(CODE.findall(row[0])[0], row[1].strip()) for row in rows("Function")]
    expected = [(function.shown or f"{function.name}(x)", function.says) for function in BUILT_IN.values()]
    assert sorted(listed) == sorted(expected), "write the tables again with: " + COMMAND
    assert all(f"`{name}`" in PAGE for name in AGGREGATES)


def test_all_result_columns_are_listed() -> None:
    assert all(f"`{name}`" in PAGE for name in RESULT_COLUMNS)


@pytest.mark.parametrize("row", rows("Clause"), ids=lambda row: row[0])
def test_all_clauses_can_be_written(row: list[str]) -> None:
    (clause,) = CODE.findall(row[0])
    pattern = "" if clause.startswith("PATTERN") else "PATTERN SEQ(A a, B b) "
    parse(pattern + clause.replace("SEQ(...)", "SEQ(A a)").replace("...", "a.x > 1"))
