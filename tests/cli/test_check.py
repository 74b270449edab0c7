"""`cepheid check` lists all errors of all queries."""

import json
from pathlib import Path

from cli.conftest import THEFT, Cepheid

THREE = "PATTERN SEQ(A a, B a)\nWHERE x.y = 3 AND foo(a.z) > 2\nWITHIN 3"


def test_clean_queries(cepheid_command: Cepheid, shop: Path) -> None:
    assert cepheid_command("check", THEFT).code == 0
    assert cepheid_command("check", THEFT, "-i", shop).out == "query: clean\n"


def test_all_errors_are_listed_with_their_places(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "three.cepheid"
    path.write_text(THREE)
    ran = cepheid_command("check", path, "--json")
    assert ran.code == 1
    errors = json.loads(ran.out)
    assert [(e["code"], e["line"], e["column"]) for e in errors] == [
        ("duplicate-variable", 1, 18),
        ("unknown-variable", 2, 7),
        ("unknown-function", 2, 19),
    ]
    assert {e["query"] for e in errors} == {str(path)}
    shown = cepheid_command("check", path).out
    assert "^^^ give each component its own name" in shown
    assert shown.count("three.cepheid") == 3


def test_a_clean_query_as_json(cepheid_command: Cepheid) -> None:
    assert json.loads(cepheid_command("check", THEFT, "--json").out) == []


def test_against_data(cepheid_command: Cepheid, shop: Path) -> None:
    unknown_type = cepheid_command("check", "PATTERN SEQ(shelf x, Exit z) WITHIN 5", "-i", shop, "--json")
    assert [e["code"] for e in json.loads(unknown_type.out)] == ["unknown-type"]
    no_column = cepheid_command("check", "PATTERN SEQ(Shelf x, Exit z) WHERE [tag] WITHIN 5", "-i", shop, "--json")
    assert no_column.code == 1
    assert "attribute" in json.loads(no_column.out)[0]["code"]


def test_several_queries(cepheid_command: Cepheid) -> None:
    ran = cepheid_command("check", THEFT, "PATTERN SEQ(A a")
    assert ran.code == 1
    assert "clean" in ran.out
    assert "expected ')'" in ran.out


def test_nesting_without_end(cepheid_command: Cepheid) -> None:
    ran = cepheid_command("check", f"PATTERN A a WHERE {'NOT (' * 5000}a.x = 1{')' * 5000}")
    assert ran.code == 1
    assert "Traceback" not in ran.out + ran.err


def test_all_errors_against_data_are_listed(cepheid_command: Cepheid, shop: Path) -> None:
    text = (
        "PATTERN SEQ(Shelv x, Exitt z) WHERE [tag, shop] AND x.a > 1 AND x.id > 2 AND z.b = 3 "
        "WITHIN 5 hours RETURN x.id, z.c"
    )
    ran = cepheid_command("check", text, "-i", shop, "--json")
    assert [e["message"] for e in json.loads(ran.out)] == [
        "no event type 'Shelv'",
        "no event type 'Exitt'",
        "no attribute 'tag'",
        "no attribute 'shop'",
        "no attribute 'a'",
        "a string cannot be compared with a whole number",
        "no attribute 'b'",
        "the window is in hours, but it is not known what one step of column 'ts' is",
        "no attribute 'c'",
    ]


def test_a_directory_of_queries(cepheid_command: Cepheid, tmp_path: Path, shop: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    assert "holds no queries" in cepheid_command("check", rules).err
    (rules / "good.cepheid").write_text(THEFT)
    (rules / "wrong.cepheid").write_text("PATTERN SEQ(A a")
    ran = cepheid_command("check", rules)
    assert ran.code == 1
    assert "good.cepheid: clean" in ran.out
    assert "wrong.cepheid: line 1" in ran.out
    assert "is a directory; name one of its queries, such as" in cepheid_command("why", rules, "-i", shop).err


def test_a_clause(cepheid_command: Cepheid, shop: Path) -> None:
    clause = "MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts PATTERN (A B) DEFINE A AS type = 'Shelf')"
    assert cepheid_command("check", clause, "-i", shop).out == "query: clean\n"
    wrong = cepheid_command("check", clause.replace("type", "kind"), "-i", shop, "--json")
    assert [e["code"] for e in json.loads(wrong.out)] == ["unknown-column"]
