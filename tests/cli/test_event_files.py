"""Events in every format, as files, directories and globs, give the same table."""

import gzip
import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from cepheid.cli.result_files import write_table
from cepheid.cli.spark_tables import read_stream, read_table
from cepheid.errors import CepheidError, DataError
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files, keep_piped
from cli.conftest import Cepheid

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["A", "B", None], "x": [1.5, None, 2.0]})


def read(*given: Path | str, **options: str) -> pa.Table:
    format = options.pop("format", None)
    return read_events(find_files([str(item) for item in given], format), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".arrow"])
def test_every_format_reads_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events{suffix}"
    write_table(EVENTS, path)
    assert read(path).to_pylist() == EVENTS.to_pylist()


def test_directories_and_globs_are_one_table(tmp_path: Path) -> None:
    for number in range(3):
        write_table(EVENTS.slice(number, 1), tmp_path / f"part-{number}.csv")
    (tmp_path / "_SUCCESS").write_text("")
    assert read(tmp_path).num_rows == 3
    assert read(tmp_path / "part-*.csv").num_rows == 3
    assert read(tmp_path / "part-0.csv", tmp_path / "part-2.csv")["ts"].to_pylist() == [1, 3]


def test_empty_parts_and_other_files_beside_the_events_do_not_matter(tmp_path: Path) -> None:
    write_table(EVENTS, tmp_path / "part-0.parquet")
    (tmp_path / "part-1.parquet").write_bytes(b"")
    (tmp_path / "notes.md").write_text("of Monday")
    assert read(tmp_path).to_pylist() == EVENTS.to_pylist()


def test_partitioned_parquet_keeps_its_partition_columns(tmp_path: Path) -> None:
    pq.write_to_dataset(EVENTS.append_column("day", pa.array([1, 1, 2])), tmp_path, partition_cols=["day"])
    assert sorted(read(tmp_path)["day"].to_pylist()) == [1, 1, 2]


def test_partition_columns_survive_globs_other_formats_and_single_directories(tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    for day, shop in (("2024-05-04", "A%20B"), ("2024-05-05", "__HIVE_DEFAULT_PARTITION__")):
        target = folder / f"day={day}" / f"shop={shop}"
        target.mkdir(parents=True)
        write_table(EVENTS.slice(0, 1), target / "part-0.csv")
        write_table(EVENTS.slice(0, 1), target / "part-0.parquet")
    for suffix in ("csv", "parquet"):
        for given in (f"{folder}/day=*/shop=*/*.{suffix}", f"{folder}/**/*.{suffix}"):
            found = sorted(read(given).to_pylist(), key=str)
            assert [row["shop"] for row in found] == ["A B", None]
            assert [row["day"] for row in found] == [date(2024, 5, 4), date(2024, 5, 5)]
        (one,) = read(folder / "day=2024-05-04" / "shop=A%20B" / f"part-0.{suffix}").to_pylist()
        assert (one["day"], one["shop"]) == (date(2024, 5, 4), "A B")
    files = find_files([f"{folder}/day=*/shop=*/*.csv"])
    assert files.base == str(folder)
    assert find_files(["s3a://bucket/sales/day=*/"], "parquet").base == "s3a://bucket/sales"


def test_a_stream_s_output_holds_what_it_completed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "_spark_metadata").mkdir(parents=True)
    for number in range(4):
        write_table(EVENTS.slice(0, 1), folder / f"part-{number}.parquet")
    entries = [json.dumps({"path": f"file:///elsewhere/out/part-{n}.parquet", "action": "add"}) for n in range(3)]
    (folder / "_spark_metadata" / "0").write_text("v1\n" + entries[0])
    (folder / "_spark_metadata" / "1.compact").write_text("v1\n" + "\n".join(entries[:2]))
    (folder / "_spark_metadata" / "2").write_text("v1\n" + entries[2])
    assert read(folder).num_rows == 3  # the fourth file was being written when the stream was killed


def test_standard_input_tells_its_format(tmp_path: Path) -> None:
    for suffix in (".parquet", ".csv", ".jsonl", ".arrow"):
        path = tmp_path / f"events{suffix}"
        write_table(EVENTS, path)
        with path.open("rb") as source:
            kept = keep_piped(source)
        assert kept.suffix == suffix
        assert read(kept).to_pylist() == EVENTS.to_pylist()
        shutil.rmtree(kept.parent)


def test_compressed_csv_with_semicolons(tmp_path: Path) -> None:
    path = tmp_path / "events.csv.gz"
    path.write_bytes(gzip.compress(b"ts;type\n1;A\n2;B\n"))
    assert read(path).to_pylist() == [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]


def test_times_in_a_format_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("when,type\n31/12/2024 23:59,A\n")
    with pytest.raises(DataError, match="text such as '31/12/2024 23:59'; pass its format"):
        read(path, time="when")
    with pytest.raises(DataError, match="not written as %Y"):
        read(path, time="when", time_format="%Y")
    assert read(path, time="when", time_format="%d/%m/%Y %H:%M")["when"][0].as_py() == datetime(2024, 12, 31, 23, 59)


def test_iso_times_with_a_zone_are_instants(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": "2024-05-04T09:00:00.25+02:00"}\n{"ts": "2024-05-04T09:02:00+02:00"}\n')
    assert read(path)["ts"][0].as_py() == datetime(2024, 5, 4, 7, 0, 0, 250_000, UTC)


def test_seconds_since_1970(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n1714813200.5,A\n")
    with pytest.raises(DataError, match="--time-format unix"):
        read(path)
    assert read(path, time_format="unix")["ts"][0].as_py() == datetime(2024, 5, 4, 9, 0, 0, 500_000)
    path.write_text("ts,type\n1714813200,A\n")
    assert read(path, time_format="unix")["ts"][0].as_py() == datetime(2024, 5, 4, 9)


def test_iso_times_need_no_format(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n2024-12-31 23:59:00,A\n2024-12-31 23:59:30.5,B\n")
    assert pa.types.is_timestamp(read(path)["ts"].type)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", "empty.csv is empty"),
        ("head.csv", "ts,type\n", "holds no events"),
        ("list.json", '[{"ts": 1}]', "one event a line"),
        ("broken.jsonl", "{oops", "cannot read"),
        ("ragged.csv", "ts,type\n1\n", "cannot read"),
        ("events.xyz", "ts", "pass it with --format"),
        ("broken.parquet", "no parquet", r"broken\.parquet is not a Parquet file"),
        ("empty.parquet", "", r"empty\.parquet is empty"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(CepheidError, match=message):
        read(path)


def test_the_only_time_column_is_proposed(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("when,type\n2024-12-31 23:59:00,A\n")
    with pytest.raises(DataError, match="did you mean time='when'"):
        read(path)


def test_what_lies_elsewhere_is_read_by_spark() -> None:
    files = find_files(["hdfs:///readings/day.parquet"])
    assert (files.format, files.addresses) == ("parquet", ["hdfs:///readings/day.parquet"])
    with pytest.raises(CepheidError, match=r"not on this machine.*--master"):
        read_events(files)
    with pytest.raises(CepheidError, match="pass it with --format"):
        find_files(["s3a://bucket/readings"])
    assert find_files(["s3a://bucket/readings"], "csv").addresses == ["s3a://bucket/readings"]


def test_mixed_and_unknown_inputs(tmp_path: Path) -> None:
    write_table(EVENTS, tmp_path / "a.csv")
    write_table(EVENTS, tmp_path / "b.parquet")
    with pytest.raises(CepheidError, match="mixes csv and parquet"):
        find_files([str(tmp_path)])
    with pytest.raises(CepheidError, match=r"did you mean .*a\.csv"):
        find_files([str(tmp_path / "a.csw")])
    with pytest.raises(CepheidError, match="choose csv"):
        find_files([str(tmp_path / "a.csv")], "cvs")
    (tmp_path / "void").mkdir()
    with pytest.raises(CepheidError, match="is empty"):
        find_files([str(tmp_path / "void")])


def test_the_culprit_among_good_times_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n" + "2024-12-31 23:59:00,A\n" * 2056 + "soon,A\n")
    with pytest.raises(DataError, match=r"column 'ts', row 2056: 'soon' is not a time.*--bad-records drop"):
        read(path)


def test_numbers_with_leading_zeros_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text("ts,type,card,amount\n1,A,0815,7\n2,B,4711,8\n")
    read = read_events(find_files([str(tmp_path / "cards.csv")]))
    assert read["card"].to_pylist() == ["0815", "4711"]
    assert read["amount"].to_pylist() == [7, 8]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1"] * 400_000 + ["007"], "string"),  # behind the first megabyte
        (["1.5"] * 10 + ["00.5"], "string"),
        (["-05", "7"], "string"),
        (['"0815"', "12"], "string"),
        ([" 0815", "12"], "string"),
        (["12345678901234567890", "5"], "string"),  # beyond 64 bits
        (["0", "10", "0.5"], "double"),
        (["9007199254740993", "5"], "int64"),
        (["1", "NA"], "string"),
        (["1", "null"], "string"),
        (["1", "NULL"], "string"),
        (["1", ""], "int64"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else value,
)
def test_all_of_a_column_says_what_it_is(tmp_path: Path, fields: list[str], kind: str) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,x\n" + "".join(f"{number},{field}\n" for number, field in enumerate(fields)))
    table = read(path)
    assert str(table.schema.field("x").type) == kind
    if kind == "string":
        assert table["x"].to_pylist()[-1] == fields[-1].strip('"')
    assert table["x"].null_count == fields.count("")


def test_texts_that_mean_null_are_named(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,x,s\n1,NA,NA\n2,3,-\n3,,null\n")
    assert read_events(find_files([str(path)]))["s"].to_pylist() == ["NA", "-", "null"]
    table = read_events(find_files([str(path)], None, ["NA", "-"]))
    assert (table["x"].to_pylist(), table["s"].to_pylist()) == ([None, 3, None], [None, None, "null"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('ts,s\n1,"open\n2,b\n3,c\n', 2),
        ('ts,s\n1,"two\nlines"\n2,"open\n', 4),
        ('ts,s\n1,5" pipe\n2,"open', 3),
        ('ts,s\n1,"""\n', 2),
        ('"ts,s\n1,2\n', 1),
        ("ts,s\n" + "1,a\n" * 3_000_000 + '2,"open\n' + "3,c\n" * 10, 3_000_002),  # in another block
    ],
)
def test_a_quote_that_is_never_closed(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "events.csv.gz"
    path.write_bytes(gzip.compress(text.encode(), 1))
    with pytest.raises(DataError, match=f"a quote that opens in line {line} is never closed"):
        read(path)


def test_quotes_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text('ts,s,t\n1,5" pipe,"a ""b"" c"\n2,"x"y,""\n3,"two\nlines",""""')
    assert read(path)["s"].to_pylist() == ['5" pipe', "xy", "two\nlines"]
    assert read(path)["t"].to_pylist() == ['a "b" c', None, '"']


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}\n",
        '{"a": ' * 20_000 + "1" + "}" * 20_000 + "\n",
        '{"a": 1}\n{"a": "' + "[" * 100 + '\\\\", "b": ' + "[" * 20_000,
        '{"a": 1}\n' * 1_000_000 + '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}\n",  # in another block
    ],
    ids=["lists", "objects", "open", "late"],
)
def test_deep_json_is_refused(tmp_path: Path, text: str) -> None:
    """Arrow recurses, and would end the process."""
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match="nest more than 64 deep"):
        read(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", 'ts,type,s\n1,A,x\n2,A,"open\n3,A,y\n', "opens in line 3 is never closed"),
        ("e.jsonl", '{"ts": 1, "v": ' + "[" * 20_000 + "]" * 20_000 + "}\n", "nest more than 64 deep"),
    ],
)
def test_what_spark_would_take_for_null_is_refused_before_it_reads(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_table(None, find_files([str(tmp_path / name)]), "ts", None)  # no session is asked
    with pytest.raises(DataError, match=message):
        read_stream(None, find_files([str(tmp_path)]), None)


def test_brackets_in_strings_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    texts = ["[" * 100, '\\"' + "{" * 100, "\\\\", "]" * 100 + "\\n"]
    path.write_text("".join(f'{{"ts": 1, "s": "{text}", "v": [[1]]}}\n' for text in texts))
    assert read(path)["s"].to_pylist() == ["[" * 100, '"' + "{" * 100, "\\", "]" * 100 + "\n"]
    path.write_text('{"ts": 1, "s": "open}\n{"ts": 1, "s": ' + "[" * 20_000 + "\n")
    with pytest.raises(DataError, match="a string in line 1 is never closed"):
        read(path)


def test_long_whole_numbers_in_json(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": 1, "id": 1234567890123456789, "x": 0.30000000000000004}\n')
    assert read(path)["id"].to_pylist() == [1234567890123456789]
    path.write_text('{"ts": 1, "id": 12345678901234567890}\n')
    with pytest.raises(DataError, match="a whole number that a double cannot hold"):
        read(path)


def test_formulas_in_csv(cepheid_command: Cepheid, tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "plain", "a=b"]
    write_table(pa.table({"ts": range(7), "type": ["A"] * 7, "s": texts}), tmp_path / "events.parquet")
    command = ["run", "PATTERN A a RETURN a.s AS s, a.ts - 7 AS n", "-i", tmp_path / "events.parquet"]
    for more, expected in (((), texts), (("--escape-formulas",), [f"'{text}" for text in texts[:5]] + texts[5:])):
        assert cepheid_command(*command, "-o", tmp_path / "found.csv", *more).code == 0
        assert pacsv.read_csv(tmp_path / "found.csv")["s"].to_pylist() == expected
        assert pacsv.read_csv(tmp_path / "found.csv")["n"].to_pylist() == list(range(-7, 0))
