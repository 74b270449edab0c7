"""What one can do with a query, in each of the three languages: one table, in which every cell works alike.

Spark's batches and streams have the same rows and columns in tests/spark/test_streams_of_all_languages.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.console import answers
from cepheid.console.workspace import Workspace
from cepheid.errors import CepheidError, LimitError, QueryError
from cepheid.flink import Pattern
from cli.conftest import Cepheid

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6, 7],
        "type": ["A", "B", "A", "B", "A", "C", "B"],
        "id": [1, 1, 1, 1, 2, 2, 2],
        "v": [1, 2, 3, 4, 5, 6, 7],
    }
)
FOUND = [(1, 2), (3, 4)]  # the values of the two events of each match
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.v AS av, B.v AS bv PATTERN (A B) WITHIN 10
DEFINE A AS type = 'A', B AS type = 'B')"""
PYTHON = """from cepheid.flink import Pattern

pattern = Pattern.begin("a").where("type = 'A'").next("b").where("type = 'B'").within(10)
broken = Pattern.begin("a").where("typo = 'A'")
"""


@dataclass(frozen=True)
class Language:
    """The same query in a language, its options, and the same on the command line."""

    query: Any
    options: dict[str, Any]
    argument: str  # of a command
    broken: str  # another one with an unknown name


LANGUAGES = {
    "text": Language(
        text := "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [id] } WITHIN 10 RETURN a.v AS av, b.v AS bv",
        {},
        text,
        "PATTERN SEQ(A a, B b) WHERE a.typo = 1 WITHIN 10",
    ),
    "clause": Language(CLAUSE, {}, CLAUSE, CLAUSE.replace("type = 'A'", "typo = 'A'")),
    "flink": Language(
        Pattern.begin("a").where("type = 'A'").next("b").where("type = 'B'").within(10),
        {"partition_by": "id"},
        "queries.py:pattern",
        "queries.py:broken",
    ),
}


def pairs(rows: Any) -> list[tuple[int, int]]:
    """The values of the two events of each match."""
    rows = rows if isinstance(rows, list) else rows.to_pylist()
    return sorted((row["av"], row["bv"]) if "av" in row else (row["a"]["v"], row["b"]["v"]) for row in rows)


# --- in Python ------------------------------------------------------------------------------------------------------


def query(one: Language) -> None:
    asked: Any = cepheid.query(one.query)
    assert pairs(asked.match(EVENTS, **one.options)) == FOUND
    assert str(asked)
    assert cepheid.query(asked) == asked


def match(one: Language) -> None:
    assert pairs(cepheid.match(EVENTS, one.query, **one.options)) == FOUND
    assert isinstance(cepheid.match(EVENTS.to_pandas(), one.query, **one.options), pd.DataFrame)
    assert isinstance(cepheid.match(pl.from_arrow(EVENTS), one.query, **one.options), pl.DataFrame)
    assert pairs(cepheid.match(EVENTS, one.query, engine="reference", **one.options)) == FOUND
    with pytest.raises(CepheidError, match="events must be a pyarrow"):
        cepheid.match({"ts": [1]}, one.query, **one.options)
    with pytest.raises(CepheidError, match=r"no option 'max_matchse'"):
        cepheid.match(EVENTS, one.query, max_matchse=3, **one.options)


def explain(one: Language) -> None:
    asked: Any = cepheid.query(one.query)
    assert asked.explain()
    assert asked.explain(EVENTS, **one.options)
    assert "2" in asked.explain(EVENTS, analyze=True, **one.options).partition("Actual\n")[2]


def why(one: Language) -> None:
    told = cepheid.why(EVENTS, one.query, **one.options)
    assert (told.matches.number, told.steps[-1].count.number) == (2, 2)
    assert [each.passed for each in told.components] == [3, 3]
    asked: Any = cepheid.query(one.query)
    assert asked.why(EVENTS, **one.options).matches.number == 2


def count(one: Language) -> None:
    assert cepheid.match(EVENTS, one.query, output="count", **one.options) == 2
    with pytest.raises(CepheidError, match="a live query returns rows"):
        cepheid.live(one.query, EVENTS.schema, output="count", **one.options)


def limits(one: Language) -> None:
    with pytest.raises(LimitError, match="max_matches"):
        cepheid.match(EVENTS, one.query, max_matches=1, **one.options)
    with pytest.raises(LimitError, match="timeout"):
        cepheid.match(EVENTS, one.query, timeout=1e-9, **one.options)
    live = cepheid.live(one.query, EVENTS.schema, max_matches=1, **one.options)
    with pytest.raises(LimitError, match="max_matches"):
        live.send(EVENTS)


def live(one: Language) -> None:
    for cut in range(EVENTS.num_rows + 1):
        begun = cepheid.live(one.query, EVENTS.schema, delay=1, **one.options)
        found = begun.send(EVENTS.slice(0, cut)).to_pylist()
        on = cepheid.live(one.query, EVENTS.schema, delay=1, state=begun.save(), **one.options)
        found += on.send(EVENTS.slice(cut).to_pylist())
        assert pairs(found + on.finish()) == FOUND, cut


def several(one: Language) -> None:
    others = {name: each.query for name, each in LANGUAGES.items()}
    named = {"one": one.query, **others}
    whole = cepheid.match(EVENTS, named, partition_by="id").to_pylist()
    assert {name: pairs([row[name] for row in whole if row["query"] == name]) for name in named} == dict.fromkeys(
        named, FOUND
    )
    on = cepheid.live(named, EVENTS.schema, partition_by="id")
    assert sorted(map(str, [*on.send(EVENTS).to_pylist(), *on.finish().to_pylist()])) == sorted(map(str, whole))


def read_by_others(one: Language) -> None:
    named = {
        "one": one.query,
        "two": "PATTERN SEQ(one p, one q) WITHIN 10 FROM one RETURN p.match_end AS p, q.match_end AS q",
    }
    whole = cepheid.match(EVENTS, named, **one.options).to_pylist()
    assert [row["two"] for row in whole if row["query"] == "two"] == [{"p": 2, "q": 4}]
    on = cepheid.live(named, EVENTS.schema, **one.options)
    found = [*on.send(EVENTS).to_pylist(), *on.finish().to_pylist()]
    assert sorted(map(str, found)) == sorted(map(str, whole))


IN_PYTHON: list[Callable[[Language], None]] = [query, match, explain, why, count, limits, live, several, read_by_others]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("thing", IN_PYTHON, ids=lambda thing: thing.__name__)
def test_in_python(thing: Callable[[Language], None], language: str) -> None:
    thing(LANGUAGES[language])


# --- on the command line --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run, with the events and the patterns of a Python file."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(EVENTS, "events.parquet")
    Path("queries.py").write_text(PYTHON)
    return tmp_path


def command(one: Language) -> list[str]:
    """The query, the events and the options as arguments."""
    options = [part for name, value in one.options.items() for part in ("--option", f"{name}={value}")]
    return [one.argument, "-i", "events.parquet", *options]


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_the_command_line(cepheid_command: Cepheid, folder: Path, language: str) -> None:
    one = LANGUAGES[language]
    ran = cepheid_command("run", *command(one))
    assert pairs([json.loads(line) for line in ran.out.splitlines()]) == FOUND
    assert "2 matches in 7 events" in ran.err
    assert cepheid_command("run", *command(one), "--option", "output=count").out == "2\n"
    assert "--max-matches 1" in cepheid_command("run", *command(one), "--max-matches", "1").err
    assert cepheid_command("explain", one.argument).code == 0
    assert "Actual" in cepheid_command("explain", *command(one), "--analyze").out
    assert json.loads(cepheid_command("why", *command(one), "--json").out)["matches"]["number"] == 2
    other = ["-q", f"one={one.argument}", "-q", "c=PATTERN SEQ(C c) WITHIN 5", *command(one)[1:]]
    assert "3 matches in 7 events" in cepheid_command("run", *other).err
    assert cepheid_command("check", one.argument, "-i", "events.parquet").code == 0
    broken = cepheid_command("check", one.broken, "-i", "events.parquet", "--json")
    assert [("typo" in each["message"], each["column"] is not None) for each in json.loads(broken.out)] == [
        (True, True)
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_report(cepheid_command: Cepheid, folder: Path, language: str) -> None:
    ran = cepheid_command("report", *command(LANGUAGES[language]), "-o", "page.html")
    assert ran.code == 0, ran.err
    assert "2 matches in 7 events" in Path("page.html").read_text()


@pytest.mark.parametrize("language", ["text", "clause"])  # a page is no place to write Python
def test_in_the_console(folder: Path, language: str) -> None:
    workspace = Workspace()
    table = workspace.open("events.parquet")
    asked = {"table": table.name, "text": LANGUAGES[language].query}
    assert answers.run(workspace, asked)["matches"] == 2
    assert answers.explain(workspace, asked)["plan"]
    assert "2" in str(answers.why(workspace, asked)["verdict"])
    assert answers.check(workspace, asked)["errors"] == []
    assert len(answers.check(workspace, {**asked, "text": LANGUAGES[language].broken})["errors"]) == 1


def test_a_python_file_without_the_query(cepheid_command: Cepheid, folder: Path) -> None:
    assert "did you mean pattern?" in cepheid_command("run", "queries.py:patern", "-i", "events.parquet").err
    Path("wrong.py").write_text("x = 1 +")
    assert "wrong.py, line 1: SyntaxError" in cepheid_command("run", "wrong.py:x", "-i", "events.parquet").err
    with pytest.raises(QueryError, match="a query is a text or a pattern, not int"):
        cepheid.query(3)  # type: ignore[call-overload]
