"""Totals (SUMMARISE) and rows (MATCH_RECOGNIZE) in every command that shows results, and ties on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cli.conftest import Cepheid

PAIRS = "PATTERN SEQ(Shelf x, Exit z) WHERE [id] WITHIN 10"
TOTALS = f"{PAIRS} SUMMARISE count(*) AS n, sum(z.ts) AS s, avg(z.ts) AS m BY id"
CLAUSE = (
    "MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS began, LAST(B.type) AS kind "
    "PATTERN (A B+) DEFINE A AS type = 'Shelf')"
)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without PySpark."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)


def test_totals_are_numbers_and_are_called_totals(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    ran = cepheid_command("run", TOTALS, "-i", shop)
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {"id": "razor", "n": 1, "s": 5, "m": 5.0},
        {"id": "bread", "n": 1, "s": 4, "m": 4.0},
    ]
    assert "2 totals in 5 events" in ran.err
    table = cepheid_command("run", TOTALS, "-i", shop, "--show", "table")
    assert table.code == 0
    assert "razor" in table.out
    both = cepheid_command("run", "-q", f"a={TOTALS}", "-q", f"b={PAIRS}", "-i", shop, "--show", "table")
    assert (both.code, "4 rows in 5 events" in both.err) == (0, True)
    timed = cepheid_command("run", TOTALS.replace("BY id", "BY id EVERY 2"), "-i", shop, "--show", "table")
    assert timed.code == 0


def test_a_report_of_totals(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cepheid_command("report", TOTALS, "-i", shop, "-o", page).code == 0
    text = page.read_text()
    assert "2 totals in 5 events" in text
    assert "<td>razor</td>" in text
    truth = ["--truth", str(shop), "--truth-key", "id", "--truth-column", "id"]
    assert "--truth is a list of single matches" in cepheid_command("report", TOTALS, "-i", shop, *truth).err


def test_why_counts_the_matches_of_totals(cepheid_command: Cepheid, shop: Path) -> None:
    found = json.loads(cepheid_command("why", TOTALS, "-i", shop, "--json").out)
    assert found["matches"]["number"] == 2
    assert "SUMMARISE" in found["query"]
    assert [each["text"] for each in found["without"]] == ["[id]"]


def test_show_takes_totals_and_rows(shop: Path) -> None:
    events = pa.table({"ts": [1, 2], "type": ["Shelf", "Exit"], "id": ["a", "a"]})
    assert repr(cepheid.show(cepheid.match(events, TOTALS))).endswith("\n1 total")
    assert "1 total" in cepheid.show(cepheid.match(events, TOTALS))._repr_html_()
    assert repr(cepheid.show(cepheid.match(events.to_pandas(), CLAUSE))).endswith("\n1 row")
    with pytest.raises(cepheid.DataError, match="not a result of match"):
        cepheid.show(events)


def test_a_clause_needs_no_spark(cepheid_command: Cepheid, shop: Path, tmp_path: Path, no_spark: None) -> None:
    ran = cepheid_command("run", CLAUSE, "-i", shop)
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {"id": "razor", "began": 1, "kind": "Exit"},
        {"id": "bread", "began": 2, "kind": "Exit"},
    ]
    assert "2 matches in 5 events" in ran.err
    assert "razor" in cepheid_command("run", CLAUSE, "-i", shop, "--show", "table").out
    assert "evaluated over whole columns" in cepheid_command("explain", CLAUSE, "-i", shop).out
    assert "Row pattern" in cepheid_command("explain", CLAUSE).out
    page = tmp_path / "page.html"
    assert cepheid_command("report", CLAUSE, "-i", shop, "-o", page).code == 0
    assert "2 matches in 5 events" in page.read_text()
    all_rows = CLAUSE.replace("PATTERN", "ALL ROWS PER MATCH PATTERN")
    assert "5 rows in 5 events" in cepheid_command("run", all_rows, "-i", shop).err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "-p", "T=3"], "a MATCH_RECOGNIZE clause has no parameters"),
        (["run", "--lower", "ts", "--upper", "ts"], "no option 'lower' for a MATCH_RECOGNIZE clause"),
        (["run", "--bad-records", "drop"], "no option 'bad_records' for a MATCH_RECOGNIZE clause"),
        (["explain", "--tiebreak", "id"], "no option 'tiebreak' for a MATCH_RECOGNIZE clause"),
        (["fit", "-o", "m.json"], "fit takes a query with PATTERN"),
    ],
)
def test_what_a_clause_does_not_take(cepheid_command: Cepheid, shop: Path, arguments: list[str], told: str) -> None:
    ran = cepheid_command(arguments[0], CLAUSE, "-i", shop, *arguments[1:])
    assert ran.code == 1
    assert told in ran.err


def test_a_clause_is_analyzed(cepheid_command: Cepheid, shop: Path) -> None:
    assert "  events         5\n  matches        2\n" in cepheid_command("explain", CLAUSE, "-i", shop, "--analyze").out


def test_why_takes_a_clause(cepheid_command: Cepheid, shop: Path) -> None:
    assert "Events that can fill each component" in cepheid_command("why", CLAUSE, "-i", shop).out


def test_a_whole_statement_goes_elsewhere(cepheid_command: Cepheid, shop: Path) -> None:
    statement = f"SELECT * FROM t {CLAUSE}"
    assert "with `cepheid sql`" in cepheid_command("run", statement, "-i", shop).err
    for text in (statement, f"WITH t AS (SELECT 1) {statement}"):
        with pytest.raises(cepheid.QueryError, match=r"with cepheid\.sql\.query\(spark, statement\)"):
            cepheid.match(pa.table({"ts": [1]}), text)


def test_ties_are_one_line_with_the_option(cepheid_command: Cepheid, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ts,type,id\n1,Shelf,a\n1,Exit,a\n2,Shelf,a\n")
    ran = cepheid_command("run", PAIRS, "-i", log)
    (line,) = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    assert "2 of 3 events share their time and 'id'" in line
    assert "pass --tiebreak row for row order" in line
    ordered = cepheid_command("run", PAIRS, "-i", log, "--tiebreak", "row")
    assert "warning" not in ordered.err
    assert len(ordered.out.splitlines()) == 1
    assert "--tiebreak row" in cepheid_command("why", PAIRS, "-i", log).out
    assert "warning" in cepheid_command("report", PAIRS, "-i", log, "-o", tmp_path / "r.html").err
