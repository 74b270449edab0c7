"""`cepheid run` on files: where matches go and in which form."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.conftest import THEFT, Cepheid


def test_json_lines_when_piped(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("run", THEFT, "-i", shop)
    (line,) = ran.out.splitlines()
    assert json.loads(line) == {
        "match_start": 1,
        "match_end": 5,
        "x": {"ts": 1, "type": "Shelf", "id": "razor"},
        "z": {"ts": 5, "type": "Exit", "id": "razor"},
    }
    assert "1 match in 5 events" in ran.err


def test_types_whatever_their_case(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("run", THEFT.replace("Shelf", "SHELF"), "-i", shop, "--ignore-case")
    assert [json.loads(line)["x"]["type"] for line in ran.out.splitlines()] == ["Shelf"]


def test_table_shows_what_events_share_once(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("run", THEFT, "-i", shop, "--show", "table", "--quiet")
    header, *_, row = [line.split() for line in ran.out.splitlines() if line.strip()]
    assert header == ["id", "x", "z"]
    assert row == ["razor", "1", "5"]
    assert ran.err == ""


def test_csv_is_flat(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("run", THEFT, "-i", shop, "--show", "csv")
    assert ran.out.splitlines()[0] == '"match_start","match_end","x.ts","x.type","x.id","z.ts","z.type","z.id"'


def test_output_file(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    target = tmp_path / "thefts.parquet"
    ran = cepheid_command("run", THEFT, "-i", shop, "-o", target)
    assert (ran.code, ran.out) == (0, "")
    assert pq.read_table(target)["x"].to_pylist() == [{"ts": 1, "type": "Shelf", "id": "razor"}]


def test_query_from_a_file_and_from_standard_input(
    cepheid_command: Cepheid, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    file = tmp_path / "theft.cepheid"
    file.write_text(THEFT)
    from_file = cepheid_command("run", file, "-i", shop)
    monkeypatch.setattr("sys.stdin", io.StringIO(THEFT))
    assert cepheid_command("run", "-", "-i", shop).out == from_file.out != ""


def test_parameters_units_and_untyped_streams(cepheid_command: Cepheid, shop: Path) -> None:
    query = "PATTERN SEQ(x, z) WHERE x.id = Article AND z.id = Article WITHIN 3 seconds"
    ran = cepheid_command("run", query, "-i", shop, "--untyped", "-p", "Article=bread", "--time-unit", "s")
    assert len(ran.out.splitlines()) == 3


def test_limits(cepheid_command: Cepheid, shop: Path) -> None:
    every = "PATTERN SEQ(ANY(Shelf, Register, Exit) a, ANY(Shelf, Register, Exit) b) WITHIN 10"
    stopped = cepheid_command("run", every, "-i", shop, "--max-matches", "3")
    assert stopped.code == 1
    assert "--max-matches 3" in stopped.err
    assert "--truncate" in stopped.err
    cut = cepheid_command("run", every, "-i", shop, "--max-matches", "3", "--truncate")
    assert len(cut.out.splitlines()) == 3
    assert "cut short" in cut.err


def test_a_file_of_the_input_is_not_written_over(cepheid_command: Cepheid, shop: Path) -> None:
    before = shop.read_text()
    for given in (shop.parent, shop.parent / "*.csv"):
        ran = cepheid_command("run", THEFT, "-i", given, "-o", shop)
        assert (ran.code, shop.read_text()) == (1, before)
        assert "is the input, and would overwrite it" in ran.err


def test_matches_can_be_counted_only(cepheid_command: Cepheid, shop: Path) -> None:
    every = "PATTERN SEQ(ANY(Shelf, Register, Exit) a, ANY(Shelf, Register, Exit) b) WITHIN 10"
    counted = cepheid_command("run", every, "-i", shop, "--option", "output=count")
    assert (counted.code, counted.out) == (0, "10\n")
    refused = cepheid_command("run", every, "-i", shop, "--option", "output=compressed")
    assert refused.code == 1
    assert "output=count" in refused.err


def test_a_long_kleene_group_is_cut_in_the_table(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "ticks.csv"
    path.write_text("ts,type,price\n" + "".join(f"{t},S,{t}\n" for t in range(6)) + "6,E,0\n")
    query = "PATTERN SEQ(S+ a[], E b) WHERE skip_till_next_match(a[], b) { a[1].price = 0 } WITHIN 10"
    ran = cepheid_command("run", query, "-i", path, "--show", "table", "--engine", "reference")
    assert "… 3 more …" in ran.out


def test_bad_records(cepheid_command: Cepheid, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    rows = ['31/01/2026 12:00,A,7,"1,5"', 'soon,A,7,"2,5"', '31/01/2026 12:04,C,7,"3,5"', '31/01/2026 12:04,C,7,"3,5"']
    events.write_text("ts,type,id,price\n" + "\n".join(rows) + "\n")
    pair = "PATTERN SEQ(A a, C c) WHERE [id] AND a.price < c.price WITHIN 5 minutes"
    flags = ("-i", events, "--time-format", "%d/%m/%Y %H:%M", "--decimal", ",", "--show", "jsonl", "--quiet")
    assert "'soon' is not written as %d/%m/%Y" in cepheid_command("run", pair, *flags).err
    assert len(cepheid_command("run", pair, *flags, "--bad-records", "drop").out.splitlines()) == 2
    aside = ("--aside", tmp_path / "bad.csv", "--dedupe", "ts", "--dedupe", "type")
    assert len(cepheid_command("run", pair, *flags, *aside).out.splitlines()) == 1
    assert "soon" in (tmp_path / "bad.csv").read_text()


def test_events_that_may_not_be_true(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type,id,p\n1,Shelf,razor,0.5\n5,Exit,razor,0.8\n")
    ran = cepheid_command("run", THEFT, "-i", path, "--existence", "p")
    assert json.loads(ran.out)["probability"] == pytest.approx(0.4)
    assert "may not have happened" in cepheid_command("explain", THEFT, "-i", path, "--existence", "p").out


def test_limit_gives_the_first_matches_in_every_form(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    every = "PATTERN Shelf x"
    ran = cepheid_command("run", every, "-i", shop, "--limit", "1")
    assert [json.loads(line)["x"]["id"] for line in ran.out.splitlines()] == ["razor"]
    assert "--limit 1: 1 of 2 matches are returned" in ran.err
    assert len(cepheid_command("run", every, "-i", shop, "--limit", "1", "--show", "csv").out.splitlines()) == 2
    cepheid_command("run", every, "-i", shop, "--limit", "1", "-o", tmp_path / "some.parquet")
    assert pq.read_table(tmp_path / "some.parquet").num_rows == 1
    both = cepheid_command("run", "-q", f"a={every}", "-q", f"b={every}", "-i", shop, "--limit", "1")
    assert [json.loads(line)["query"] for line in both.out.splitlines()] == ["a", "b"]


def test_durations_print_as_such(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("ts,type\n2024-05-04T09:00:00,Order\n2024-05-05T10:00:01.5,Payment\n")
    text = "PATTERN SEQ(Order a, Payment b) WITHIN 2 days RETURN b.ts - a.ts AS took, a.ts - b.ts AS back"
    shown = cepheid_command("run", text, "-i", path, "--show", "table", "--quiet").out
    assert "1 d 1 h 1.5 s" in shown
    assert "-1 d 1 h 1.5 s" in shown
    piped = json.loads(cepheid_command("run", text, "-i", path, "--quiet").out)
    assert (piped["took"], piped["back"]) == ("25:00:01.500000", "-25:00:01.500000")
    cepheid_command("run", text, "-i", path, "--output", tmp_path / "found.csv")
    assert '"25:00:01.500000","-25:00:01.500000"' in (tmp_path / "found.csv").read_text()
