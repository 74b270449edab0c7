"""`cepheid why` on the terminal and as JSON."""

import json
from pathlib import Path

from cli.conftest import THEFT, Cepheid


def test_it_says_where_matches_are_lost(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("why", "PATTERN SEQ(Shelf x, Exit z) WHERE [id] WITHIN 2", "-i", shop)
    assert ran.code == 0, ran.err
    assert "0 matches in 5 events" in ran.out
    assert "z after x, same id, within 2" in ran.out
    assert "stopped by WITHIN 2: they lie 2 apart" in ran.out
    assert "WITHIN 2 is too short: the closest needs 3  [window-too-short]" in ran.out


def test_hints_name_options_of_the_command(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n1700000000000,A\n1700000030000,B\n")
    ran = cepheid_command("why", "PATTERN SEQ(A a, B b) WITHIN 60 seconds", "-i", path, "--time-unit", "s")
    assert "--time-unit milliseconds" in ran.out


def test_json(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("why", THEFT, "-i", shop, "--json")
    found = json.loads(ran.out)
    assert found["matches"] == {"number": 1, "at_least": False}
    assert [step["count"]["number"] for step in found["steps"]] == [2, 2, 2, 1]


def test_bad_records_can_be_left_out(cepheid_command: Cepheid, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("ts;type;x\n1;A;1,5\nsoon;B;2\n3;B;1.000,5\n")
    arguments = ["why", "PATTERN SEQ(A a, B b) WHERE a.x > b.x WITHIN 5", "-i", tmp_path / "e.csv"]
    assert "'soon' is not" in cepheid_command(*arguments).err
    ran = cepheid_command(*arguments, "--bad-records", "drop", "--decimal", ",", "--thousands", ".")
    assert "a.x > b.x" in ran.out, ran.err


def test_a_clause_says_how_far_it_gets(cepheid_command: Cepheid, shop: Path) -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS a PATTERN (A B) DEFINE A AS id > 0, B AS type = 'X')"
    ran = cepheid_command("why", clause, "-i", shop)
    assert ran.code == 0, ran.err
    assert "0 matches in 5 events" in ran.out
    assert "no event passes B: type = 'X'  [no-candidates]" in ran.out
