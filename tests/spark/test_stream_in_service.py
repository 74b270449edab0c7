"""A stream in service: settings of its own, books that balance, bad records, restarts with other queries, bounds."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import cepheid
import cepheid.metrics
from spark.test_stream import ABSENT, FAR, QUERY, cut, events, put, reading, rows, run


def numbers(query) -> dict[str, float]:
    """The sums of a query's observed metrics."""
    found: dict[str, float] = {}
    for progress in query.recentProgress:
        for told in cepheid.metrics.observed(progress).values():
            for name, value in told.items():
                found[name] = found.get(name, 0) + (value or 0)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("partitions", ["200", None])
def test_a_stream_sets_for_itself_what_it_needs(spark, tmp_path, partitions):
    """Whether the session says how many partitions it wants, or leaves it to Spark."""
    table = events(200)
    cut(tmp_path / "in", table, 2, delay=5)
    plain = spark.newSession()
    provider = "spark.sql.streaming.stateStore.providerClass"
    plain.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    if partitions is None:
        plain.conf.unset("spark.sql.shuffle.partitions")
    else:
        plain.conf.set("spark.sql.shuffle.partitions", partitions)
    df = reading(plain, tmp_path / "in", spark.createDataFrame(table).schema)
    query = run(cepheid.match(df, QUERY, delay=5, shards=2).where("match_end > 0"), tmp_path)
    operators = [state for progress in query.recentProgress for state in progress["stateOperators"]]
    assert {state["numShufflePartitions"] for state in operators} == {2}
    assert "HDFS" in plain.conf.get(provider)
    assert plain.conf.get("spark.sql.shuffle.partitions") == "200"
    assert rows(spark.read.parquet(str(tmp_path / "out")).toArrow()) == rows(cepheid.match(table, QUERY))


@pytest.mark.slow
def test_the_books_balance_and_bad_records_are_set_aside(spark, tmp_path):
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    kinds = ["A", "B", "Z", "A", "B", "A", None, "B", "A", "B"]
    times = [begin + timedelta(seconds=n) for n in range(10)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "type": kinds, "id": [1] * 10})
    bad = pa.table(
        {
            "ts": pa.array([None, datetime.now(UTC) + timedelta(days=400)], pa.timestamp("us", "UTC")),
            "type": ["A", "Z"],
            "id": [1, 1],
        }
    )
    put(tmp_path / "in", 0, pa.concat_tables([table.slice(0, 6), bad, table.slice(3, 1)]))  # one comes twice
    put(tmp_path / "in", 1, pa.concat_tables([table.slice(6), table.slice(0, 1)]))  # and one late
    end = table.slice(0, 1).set_column(0, "ts", pa.array([begin + timedelta(hours=1)], pa.timestamp("us", "UTC")))
    put(tmp_path / "in", 2, end.set_column(1, "type", pa.array(["end"])))
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table.to_pandas()).schema)
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 seconds"
    keeping = {"bad_records": "set aside", "aside": tmp_path / "bad", "dedupe": ["id", "type"], "max_ahead": "1 hour"}
    result = cepheid.match(df, {"pairs": text}, delay="2 seconds", shards=2, **keeping)
    query = run(result, tmp_path)
    clean = table.filter(pa.array([kind is not None for kind in kinds]))
    assert spark.read.parquet(str(tmp_path / "out")).count() == cepheid.match(clean, text).num_rows
    told = numbers(query)
    assert (told["read"], told["malformed"], told["late"], told["duplicates"]) == (15, 3, 1, 1)
    assert told["read"] == sum(told[part] for part in ("used", "irrelevant", "malformed", "late", "duplicates", "shed"))
    assert told["matches[pairs]"] == told["matches"] > 0
    assert told["used[pairs]"] == told["used"] == 8
    of_query = sum(told[f"{part}[pairs]"] for part in ("used", "irrelevant", "late", "duplicates", "shed"))
    assert told["read"] == of_query + told["malformed"]
    lines = [json.loads(line) for file in (tmp_path / "bad").iterdir() for line in file.read_text().splitlines()]
    assert sorted(line["reason"].split(" ")[0] for line in lines) == ["ts", "ts", "type"]
    assert any("max_ahead" in line["reason"] for line in lines)


@pytest.mark.slow
def test_many_queries_find_and_count_what_each_does_alone(spark, tmp_path):
    """More than have metrics of their own: next match and any match, which share searches and batches of results."""
    table = events(300)
    cut(tmp_path / "in", table, 3, delay=0)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    texts = [
        f"PATTERN SEQ({first} a, B b) WHERE {strategy} {{ [id] }} WITHIN {window}"
        for strategy in ("skip_till_any_match", "skip_till_next_match")
        for first in ("A", "Z")
        for window in (60, 30, 5)
    ]
    asked = {f"q{number}": text for number, text in enumerate(texts)}
    told = numbers(run(cepheid.match(df, asked, delay=0, shards=2), tmp_path))
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    for name, text in asked.items():
        alone = cepheid.match(table, text)
        own = found.filter(pa.compute.equal(found["query"], name))
        shown = [row[name] for row in own.select([name]).to_pylist()]
        expected = alone.drop_columns(["match_start", "match_end"]).to_pylist()
        assert sorted(map(repr, shown)) == sorted(map(repr, expected)), text
        assert told[f"matches[{name}]"] == alone.num_rows
        parts = sum(told[f"{part}[{name}]"] for part in ("used", "irrelevant", "late", "duplicates", "shed"))
        assert parts + told["malformed"] == told["read"]
    assert told["matches"] == found.num_rows == sum(told[f"matches[{name}]"] for name in asked) > 0


@pytest.mark.slow
def test_a_changed_query_is_refused_at_once_though_nothing_new_comes(spark, tmp_path):
    table = events(200)
    cut(tmp_path / "in", table, 2, delay=5)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(df, QUERY, delay=5, shards=2), tmp_path)
    with pytest.raises(StreamingQueryException, match="changed since it was written: text, window"):
        run(cepheid.match(df, QUERY.replace("60", "61"), delay=5, shards=2), tmp_path)
    with pytest.raises(StreamingQueryException, match="shards=2, which is 3 now"):
        run(cepheid.match(df, QUERY, delay=5, shards=3), tmp_path)
    assert run(cepheid.match(df, QUERY, delay=7, shards=2), tmp_path).exception() is None


@pytest.mark.slow
def test_a_restart_with_other_queries_goes_on_for_those_that_stay(spark, tmp_path):
    table = events(400)
    first, second = table.slice(0, 200), table.slice(200)
    cut(tmp_path / "in", first, 2, delay=0)
    (tmp_path / "in" / "00002.parquet").unlink()  # no end of time yet
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(df, {"stays": QUERY, "goes": ABSENT}, delay=0, shards=2), tmp_path)
    put(tmp_path / "in", 5, second)
    put(tmp_path / "in", 6, table.slice(0, 1).set_column(0, "ts", pa.array([FAR])))
    run(cepheid.match(df, {"comes": ABSENT, "stays": QUERY}, delay=0, shards=2), tmp_path)
    schema = cepheid.match(table, {"stays": QUERY, "goes": ABSENT, "comes": ABSENT}).schema
    out = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out")).toArrow()
    assert set(out.column_names) == set(schema.names)
    found = {name: out.filter(pa.compute.equal(out["query"], name)).num_rows for name in ("stays", "comes")}
    assert found == {"stays": cepheid.match(table, QUERY).num_rows, "comes": cepheid.match(second, ABSENT).num_rows}


@pytest.mark.slow
def test_what_is_shed_is_counted(spark, tmp_path):
    table = events(600)
    cut(tmp_path / "in", table, 3, delay=0)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    bounded = cepheid.match(df, {"q": QUERY}, delay=0, shards=2, max_key_events=2, when_full="drop oldest")
    told = numbers(run(bounded, tmp_path))
    assert told["shed"] == told["shed_for_key_events"] == told["shed[q]"] > 0
    assert told["used"] == told["used[q]"]
    assert told["lost"] > 0
    assert 0 < told["matches"] < cepheid.match(table, QUERY).num_rows
    assert told["read"] == sum(told[part] for part in ("used", "irrelevant", "malformed", "late", "duplicates", "shed"))


@pytest.mark.slow
def test_queries_come_and_go_while_the_stream_runs(spark, tmp_path):
    table = events(400)
    folder = tmp_path / "queries"
    folder.mkdir()
    asked = [
        {"name": "rising", "text": QUERY},
        {"name": "wrong", "text": "PATTERN SEQ(A a, B b) WHERE [id] AND a.y > 1 WITHIN 5"},
        {"name": "across", "text": "PATTERN SEQ(A a, B b) WITHIN 5"},
    ]
    (folder / "1.json").write_text("".join(json.dumps(row) + "\n" for row in asked))
    put(tmp_path / "in", 0, table.slice(0, 200))
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    result = cepheid.match(df, folder, keys="id", delay=0, shards=2)
    run(result, tmp_path)
    changes = [{"name": "rising", "enabled": False}, {"name": "absent", "text": ABSENT, "options": {"engine": "auto"}}]
    (folder / "2.json").write_text("".join(json.dumps(row) + "\n" for row in changes))
    put(tmp_path / "in", 1, table.slice(200))
    put(tmp_path / "in", 2, table.slice(0, 1).set_column(0, "ts", pa.array([FAR])))
    query = run(cepheid.match(df, folder, keys="id", delay=0, shards=2), tmp_path)
    out = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    errors = {row["query"]: row["error"] for row in out if row["error"] is not None}
    assert errors.keys() == {"wrong", "across"}
    assert "no attribute 'y'" in errors["wrong"] or "'y'" in errors["wrong"]
    assert "partitioned by [id]" in errors["across"]
    found = {name: sum(row["query"] == name for row in out if row["match"]) for name in ("rising", "absent")}
    decided = cepheid.match(table.slice(0, 200), QUERY).filter(pa.compute.field("match_end") < 199)
    assert found == {"rising": decided.num_rows, "absent": cepheid.match(table.slice(200), ABSENT).num_rows}
    one = next(json.loads(row["match"]) for row in out if row["query"] == "absent" and row["match"])
    assert one["a"]["type"] == "A"
    told = numbers(query)
    assert told["read"] == sum(told[part] for part in ("used", "irrelevant", "malformed", "late", "duplicates", "shed"))


@pytest.mark.slow
def test_a_query_reads_the_matches_of_another(spark, tmp_path):
    table = events(400)
    queries = {
        "pair": "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x WITHIN 20 RETURN a.id AS id, b.x AS x",
        "pairs": "PATTERN SEQ(pair p, pair q) FROM pair WHERE [id] AND p.x < q.x WITHIN 30 RETURN p.id AS id",
    }
    expected = cepheid.match(table, queries)
    assert expected.filter(pa.compute.equal(expected["query"], "pairs")).num_rows > 0
    batch = cepheid.match(spark.createDataFrame(table), queries).toArrow()
    assert rows(batch) == rows(expected)
    cut(tmp_path / "in", table, 3, delay=5)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    run(cepheid.match(df, queries, delay=5, shards=2), tmp_path)
    assert rows(spark.read.parquet(str(tmp_path / "out")).toArrow()) == rows(expected)
