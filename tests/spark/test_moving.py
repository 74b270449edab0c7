"""A query moves from `cepheid.live` to Spark and back: together they find what a batch finds."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid

QUERIES = {
    "keys": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 RETURN a.n AS first, b.n AS second",
    "apart": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 OUTPUT NON-OVERLAP RETURN a.n AS first, b.n AS second",
    "no key": "PATTERN SEQ(A a, !(C c), B b) WHERE a.id + 1 = b.id WITHIN 6 RETURN a.n AS first, b.n AS second",
    "totals": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 12 SUMMARISE count(*) AS first, sum(b.n) AS second EVERY 3",
    "by key": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 SUMMARISE count(*) AS first, sum(b.n) AS second BY id EVERY 8",
}
EVENTS = pa.table(
    {
        "ts": pa.array([n // 2 for n in range(90)], pa.int64()),
        "type": ["ABCAB"[n % 5] for n in range(90)],
        "id": pa.array([n // 2 % 3 for n in range(90)], pa.int32()),
        "n": pa.array(range(90), pa.int64()),
    }
)


def streamed(spark, folder, query, events, **options):
    """What a stream over some events finds, and where its checkpoint is."""
    source = folder / "events"
    source.mkdir(parents=True)
    pq.write_table(events, source / "part.parquet")
    stream = spark.readStream.schema(spark.createDataFrame(EVENTS).schema).parquet(str(source))
    shards = {"shards": 3} if "[id]" in str(query) else {}
    found = cepheid.match(stream, query, delay=2, **shards, **options)
    sink, checkpoint = str(folder / "found"), str(folder / "checkpoint")
    started = found.writeStream.format("parquet").option("path", sink).option("checkpointLocation", checkpoint)
    started.trigger(availableNow=True).start().awaitTermination()
    return pairs(spark.read.schema(found.schema).parquet(sink).toArrow()), checkpoint


def pairs(table):
    return list(zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_there_and_back(spark, tmp_path, name):
    query = cepheid.query(QUERIES[name])
    expected = sorted(pairs(query.match(EVENTS)))
    assert len(expected) > 10
    here = query.live(EVENTS.schema, delay=2)
    found = pairs(here.send(EVENTS.slice(0, 30)))
    there, checkpoint = streamed(spark, tmp_path, query, EVENTS.slice(30, 30), state=here.save())
    assert there
    found += there
    again = query.live(EVENTS.schema, delay=2, state=cepheid.read_checkpoint(spark, checkpoint))
    found += pairs(again.send(EVENTS.slice(60)))
    found += pairs(again.finish())
    assert sorted(found) == expected


@pytest.mark.slow
def test_the_state_of_another_query_is_refused(spark, tmp_path):
    state = cepheid.live(QUERIES["keys"], EVENTS.schema, delay=2).save()
    with pytest.raises(cepheid.DataError, match="belongs to another query"):
        streamed(spark, tmp_path, QUERIES["keys"].replace("12", "13"), EVENTS, state=state)
