"""Query texts, row patterns and Flink patterns over streams: one clock, one set of numbers, one place for late events.

What Spark does before and after a match must go on working: watermarks, windows, duplicates, further matches.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException, StreamingQueryException

import cepheid
from cepheid.errors import CepheidError, DataError, EngineError
from cepheid.flink import Pattern
from cepheid.metrics import Numbers
from cepheid.runners.spark.searches import record
from cepheid.runners.stream.identity import Fingerprint, new_record

pytestmark = pytest.mark.spark

MADE = """SELECT timestamp_seconds(id * 7) AS ts, IF(id * 5 % 11 > 4, 'B', 'A') AS type, IF(id % 3 = 0, 'a', 'b') AS k,
id * 5 % 11 AS v FROM range({}, {})"""
CUTS = ((0, 13), (13, 40), (40, 60), (100_000, 100_001))  # a last event far ahead lets time pass all others
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(v) AS first, LAST(v) AS v, LAST(ts) AS ended
PATTERN (A B+) WITHIN INTERVAL '1' MINUTE DEFINE B AS v > PREV(v))"""
QUERIES: dict[str, Any] = {
    "text": "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 1 minute RETURN a.v AS first, b.v AS v, b.ts AS ended",
    "rows": CLAUSE,
    "flink": Pattern.begin("a").where("v < 5").followed_by("b").where("v > a.v").within("1 minute"),
}
OTHERS = [pytest.param(language, marks=pytest.mark.slow) for language in ("flink", "text")]
LANGUAGES = pytest.mark.parametrize("language", ["rows", *OTHERS])
COLUMNS = ("first", "v", "ended")


def matched(df: Any, language: str, **options: Any) -> Any:
    """The matches in columns that are the same for all languages."""
    more = {"partition_by": "k"} if language == "flink" else {}
    found = cepheid.match(df, QUERIES[language], **more, **options)
    return found.selectExpr("a.v AS first", "b.v AS v", "match_end AS ended") if language == "flink" else found


def written(spark: Any, folder: Path, cuts: Any = CUTS) -> Any:
    """A stream of a file for each cut."""
    for number, (low, high) in enumerate(cuts):
        spark.sql(MADE.format(low, high)).coalesce(1).write.parquet(str(folder / f"part={number}"))
    df = spark.readStream.schema(spark.sql(MADE.format(0, 1)).schema).option("maxFilesPerTrigger", 1)
    return df.parquet(str(folder / "part=*"))


def run(found: Any, folder: Path) -> tuple[list[Any], list[Any]]:
    """What a stream writes until its source has nothing more, and what Spark says about its micro-batches."""
    rows: list[Any] = []
    writer = found.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows, [json.loads(progress.json) for progress in query.recentProgress]


def ends(spark: Any, language: str) -> list[datetime]:
    """When the matches end, of a batch over the same events."""
    return [row["ended"] for row in matched(spark.sql(MADE.format(0, 60)), language).collect()]


def minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


@pytest.mark.parametrize("language", ["rows", *OTHERS])
def test_a_window_over_matches_with_watermarks_before_and_after(spark: Any, tmp_path: Path, language: str) -> None:
    """The first watermark gives the delay; a minute comes out when the second has passed it."""
    from pyspark.sql import functions as F

    stream = written(spark, tmp_path / "in").withWatermark("ts", "20 seconds")
    found = matched(stream, language, shards=2 if language == "rows" else None).withWatermark("ended", "10 seconds")
    counted = found.groupBy(F.window("ended", "1 minute")).count()
    rows, _ = run(counted.selectExpr("window.start AS start", "count"), tmp_path / "c")
    every = ends(spark, language)
    known = max(every) - timedelta(seconds=10)
    expected = Counter(minute(time) for time in every if minute(time) + timedelta(minutes=1) <= known)
    assert len(expected) > 3
    assert sorted((row["start"], row["count"]) for row in rows) == sorted(expected.items())


@pytest.mark.slow
@LANGUAGES
def test_duplicates_within_a_later_watermark(spark: Any, tmp_path: Path, language: str) -> None:
    found = matched(written(spark, tmp_path / "in"), language, delay="20 seconds").withWatermark("ended", "1 hour")
    rows, _ = run(found.dropDuplicatesWithinWatermark(["ended"]).select("ended"), tmp_path / "c")
    assert sorted(row["ended"] for row in rows) == sorted(set(ends(spark, language)))


@pytest.mark.slow
def test_matches_of_matches_and_matches_beside_matches(spark: Any, tmp_path: Path) -> None:
    """A row pattern over the rows of another, beside the matches of the other languages."""
    stream = written(spark, tmp_path / "in").withWatermark("ts", "20 seconds")
    options = {language: {"metrics": f"of {language}"} for language in QUERIES}
    beside = [
        matched(stream, name, **options[name]).selectExpr(f"'{name}' AS of", *COLUMNS) for name in ("text", "flink")
    ]
    above = """MATCH_RECOGNIZE (ORDER BY ended MEASURES FIRST(first) AS first, LAST(v) AS v, LAST(ended) AS ended
    PATTERN (A B) WITHIN INTERVAL '5' MINUTES DEFINE B AS v < PREV(v))"""
    inner = matched(stream, "rows", **options["rows"]).withWatermark("ended", "1 minute")
    chained = cepheid.match(inner, above, metrics="above").selectExpr("'above' AS of", *COLUMNS)
    rows, progress = run(chained.unionAll(beside[0]).unionAll(beside[1]), tmp_path / "c")
    batch = spark.sql(MADE.format(0, 60))
    for name in ("text", "flink"):
        assert sorted(row[1:] for row in rows if row["of"] == name) == sorted(
            map(tuple, matched(batch, name).select(*COLUMNS).collect())
        )
    # The last rows wait for time to pass them, which nothing moves on.
    expected = sorted(map(tuple, cepheid.match(matched(batch, "rows"), above).select(*COLUMNS).collect()))
    found = sorted(row[1:] for row in rows if row["of"] == "above")
    last = max(ends(spark, "rows")) - timedelta(minutes=6)
    assert [row for row in expected if row[2] < last] == [row for row in found if row[2] < last] != []
    assert set(found) <= set(expected)
    assert {"of text", "of rows", "of flink", "above"} <= {
        name for each in progress for name in each["observedMetrics"]
    }


@LANGUAGES
def test_late_events_numbers_and_no_micro_batches_without_data(spark: Any, tmp_path: Path, language: str) -> None:
    """Everything is decided in the micro-batch that moves the time; what comes too late is counted and comes out."""
    setting = "spark.sql.streaming.noDataMicroBatches.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        stream = written(spark, tmp_path / "in", (*CUTS, (3, 6)))
        more = {"partition_by": "k"} if language == "flink" else {}
        found = cepheid.match(stream, QUERIES[language], delay="20 seconds", late_events=True, metrics="told", **more)
        rows, progress = run(found, tmp_path / "c")
    finally:
        spark.conf.set(setting, before)
    matches = [row for row in rows if row["late_event"] is None]
    assert len(matches) == len(ends(spark, language)) > 5
    late = [row["late_event"].asDict() for row in rows if row["late_event"] is not None]
    sent = [row.asDict() for row in spark.sql(MADE.format(3, 6)).collect()]
    assert sorted(map(str, late)) == sorted(str({name: row[name] for name in late[0]}) for row in sent)
    assert {"ts", "k", "v"} <= late[0].keys()
    numbers = Numbers()
    for each in progress:
        numbers.take(each)
    told = {name: sum(values.values()) for name, values in numbers.values.items()}
    assert told["cepheid_read_total"] == told["cepheid_events_total"] == 64
    assert told["cepheid_matches_total"] == len(matches)
    outcomes = {dict(labels)["outcome"]: value for labels, value in numbers.values["cepheid_events_total"].items()}
    assert (outcomes["late"], outcomes["used"]) == (3, 61)
    assert told["cepheid_state_bytes"] > 0
    assert told["cepheid_watermark_lag"] == 20_000_001
    last = next(each for each in reversed(progress) if each["numInputRows"])
    assert last["observedMetrics"]["told"]["retained"] >= 1


@pytest.mark.slow
@LANGUAGES
def test_a_stream_goes_on_after_a_stop_and_another_pattern_is_refused(
    spark: Any, tmp_path: Path, language: str
) -> None:
    rows: list[Any] = []
    for number, cut in enumerate(CUTS):
        spark.sql(MADE.format(*cut)).coalesce(1).write.parquet(str(tmp_path / "in" / f"part={number}"))
        df = spark.readStream.schema(spark.sql(MADE.format(0, 1)).schema).parquet(str(tmp_path / "in" / "part=*"))
        rows += run(matched(df, language, delay="20 seconds"), tmp_path / "c")[0]
    batch = matched(spark.sql(MADE.format(0, 60)), language)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, batch.collect()))
    others = {
        "text": "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 2 minutes",
        "rows": CLAUSE.replace("v > PREV", "v < PREV"),
        "flink": Pattern.begin("a").where("v < 6").followed_by("b").where("v > a.v").within("1 minute"),
    }
    more = {"partition_by": "k"} if language == "flink" else {}
    with pytest.raises(StreamingQueryException, match="changed since it was written"):
        run(cepheid.match(df, others[language], delay="20 seconds", **more), tmp_path / "c")


def test_a_checkpoint_with_another_kind_of_state_is_refused() -> None:
    """Row patterns and Flink patterns once had states that named no query."""
    old = new_record([Fingerprint(2, ("k",))], None)
    known = Fingerprint(2, ("k",), {"": {"text": "1"}})
    with pytest.raises(DataError, match=r"another kind of state.*start a new checkpoint"):
        record(known, old)
    assert record(known, record(known, None)) == new_record([known], None)


def test_a_watermark_that_another_operator_needs_stays(spark: Any, tmp_path: Path) -> None:
    """Spark would refuse the second one in its second micro-batch, in words of its own."""
    stream = written(spark, tmp_path / "in").withWatermark("ts", "20 seconds").dropDuplicatesWithinWatermark(["ts"])
    found = matched(stream, "rows").withWatermark("ended", "10 seconds")
    with pytest.raises(StreamingQueryException, match=r"watermark in front of the match.*write the matches to a table"):
        run(found, tmp_path / "c")


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
@LANGUAGES
def test_an_error_in_a_worker_reaches_the_driver_as_its_sentence(
    spark: Any, tmp_path: Path, language: str, streaming: bool
) -> None:
    """Spark puts a sentence of its own in front; the way through the worker's code is left out."""
    df = spark.sql(MADE.format(0, 9)).selectExpr("IF(v = 5, NULL, ts) AS ts", "type", "k", "v")

    def stream() -> None:
        df.write.parquet(str(tmp_path / "in"))
        read = spark.readStream.schema(df.schema).parquet(str(tmp_path / "in"))
        writer = matched(read, language, delay="20 seconds").writeStream.format("memory").queryName("failing")
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises((PythonException, StreamingQueryException)) as caught:
        stream() if streaming else matched(df, language).collect()
    told = str(caught.value).splitlines()
    assert "Traceback" not in "\n".join(told)
    assert "cepheid.errors.DataError: column 'ts'" in "\n".join(told[:2])


def test_options_of_streams_and_patterns_that_streams_cannot_run(spark: Any) -> None:
    df = spark.sql(MADE.format(0, 9))
    for language in QUERIES:
        for option in ({"delay": "1 second"}, {"late_events": True}, {"metrics": "m"}):
            with pytest.raises(CepheidError, match="stream"):
                matched(df, language, **option)
    source = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    with pytest.raises(DataError, match="how much later"):
        cepheid.match(source, CLAUSE.replace("PARTITION BY k", "").replace("v", "value"))
    many, steps = Pattern.begin("s0").times(2), [f"s{number}" for number in range(63)]
    for step in steps[1:]:
        many = many.next(step).times(2)
    many = many.next("end").where(" AND ".join(f"value > {step}.value" for step in steps))
    with pytest.raises(EngineError, match="which streams need"):
        cepheid.match(source, many, delay="1 second")


def test_languages_together_in_a_table(spark: Any) -> None:
    """One result with a column for each query; a further query reads their matches."""
    batch = spark.sql(MADE.format(0, 60))
    reader = "PATTERN SEQ(rows r, text t) WITHIN 1 minute FROM rows, text"
    found = cepheid.match(batch, {**QUERIES, "both": reader}, partition_by="k")
    counts = Counter(row["query"] for row in found.collect())
    assert found.columns == ["query", "match_start", "match_end", *QUERIES, "both"]
    local = cepheid.match(batch.toArrow(), {**QUERIES, "both": reader}, partition_by="k").column("query").to_pylist()
    assert counts == Counter(local)
    assert set(counts) == {*QUERIES, "both"}
    assert cepheid.match(batch, CLAUSE, output="count") == counts["rows"]
    assert cepheid.match(batch, QUERIES["flink"], output="count", partition_by="k") == counts["flink"]


@pytest.mark.slow
def test_languages_together_in_a_stream(spark: Any, tmp_path: Path) -> None:
    """What a table gives; a query whose sources have states apart is refused."""
    whole = cepheid.match(spark.sql(MADE.format(0, 60)).toArrow(), QUERIES, partition_by="k").column("query")
    stream = written(spark, tmp_path / "in")
    reader = "PATTERN SEQ(rows r, text t) WITHIN 1 minute FROM rows, text"
    with pytest.raises(CepheidError, match="'both' reads the matches of rows and text, which a stream finds apart"):
        cepheid.match(stream, {**QUERIES, "both": reader}, partition_by="k", delay="20 seconds")
    rows, _ = run(cepheid.match(stream, QUERIES, partition_by="k", delay="20 seconds"), tmp_path / "c")
    assert Counter(row["query"] for row in rows) == Counter(whole.to_pylist())


READERS = {
    "two": """PATTERN SEQ(rows p, !(rows x), rows q) WHERE [k] WITHIN 3 minutes FROM rows
        RETURN p.v AS one, q.v AS v, q.k AS k""",
    "alone": "PATTERN SEQ(two p, !(two q)) WHERE [k] WITHIN 1 minute FROM two RETURN p.v AS v, p.match_end AS ended",
}


def test_queries_read_a_clause_in_a_stream(spark: Any, tmp_path: Path) -> None:
    """As in a table: a query over matches of a clause, and one over matches of that; the stream is taken up again."""
    queries: dict[str, Any] = {**READERS, "rows": CLAUSE}
    local = cepheid.match(spark.sql(MADE.format(0, 60)).toArrow(), queries).to_pylist()
    rows: list[Any] = []
    for first, last in ((0, 2), (2, 4)):
        for number, (low, high) in list(enumerate(CUTS))[first:last]:
            spark.sql(MADE.format(low, high)).coalesce(1).write.parquet(str(tmp_path / "in" / f"part={number}"))
        stream = spark.readStream.schema(spark.sql(MADE.format(0, 1)).schema).option("maxFilesPerTrigger", 1)
        found = cepheid.match(stream.parquet(str(tmp_path / "in" / "part=*")), queries, delay="20 seconds", shards=2)
        assert found.columns == ["query", "match_start", "match_end", *queries]
        rows += run(found, tmp_path / "checkpoint")[0]
    assert {row["query"] for row in rows} == {*queries}
    seen = [(row["query"], row["match_start"], row["match_end"]) for row in rows]
    known = [(row["query"], *(row[end].replace(tzinfo=None) for end in ("match_start", "match_end"))) for row in local]
    assert sorted(seen) == sorted(known)


@pytest.mark.slow
def test_queries_read_a_flink_pattern_in_a_stream(spark: Any, tmp_path: Path) -> None:
    """Its matches return no key, so they are read where there is one shard."""
    queries = {"flink": QUERIES["flink"], "two": "PATTERN SEQ(flink p, flink q) WITHIN 1 minute FROM flink"}
    local = cepheid.match(spark.sql(MADE.format(0, 60)).toArrow(), queries, partition_by="k").column("query")
    stream = written(spark, tmp_path / "in")
    with pytest.raises(CepheidError, match=r"query 'two' may match across \[k\]"):
        cepheid.match(stream, queries, partition_by="k", delay="20 seconds", shards=2)
    found = cepheid.match(stream, queries, partition_by="k", delay="20 seconds", shards=1)
    rows, progress = run(found, tmp_path / "checkpoint")
    counts = Counter(row["query"] for row in rows)
    assert counts == Counter(local.to_pylist())
    assert counts["two"] > 0
    assert sum(each["observedMetrics"][found_metrics(each)]["matches[two]"] for each in progress) == counts["two"]


def found_metrics(progress: dict[str, Any]) -> str:
    """The name under which a stream tells its numbers."""
    return next(iter(progress["observedMetrics"]))
