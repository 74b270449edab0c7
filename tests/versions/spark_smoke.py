"""One query on whatever PySpark is installed: a batch, a stream and SQL give what pandas gives.

make spark-versions runs it with each version of PySpark that the extra `cepheid[spark]` allows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

import cepheid
from cepheid.runners.spark.session import start_session

QUERY = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x WITHIN 5 RETURN a.id AS id, a.x AS first, b.x AS second"
EVENTS = pd.DataFrame(
    {
        "ts": range(60),
        "type": ["A", "B", "C"] * 20,
        "id": [n // 3 % 4 for n in range(60)],
        "x": [n % 7 for n in range(60)],
    }
)


def rows_of(table: pd.DataFrame) -> list[tuple[int, ...]]:
    return sorted(map(tuple, table[["match_start", "match_end", "id", "first", "second"]].values.tolist()))


def main() -> None:
    expected = rows_of(cepheid.match(EVENTS, QUERY))
    assert expected
    spark = start_session("local[2]", **{"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
    try:
        batch = spark.createDataFrame(EVENTS)
        assert rows_of(cepheid.match(batch, QUERY).toPandas()) == expected, "batch"
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "events")
            source.mkdir()
            for number in range(0, 60, 20):
                part = pa.Table.from_pandas(EVENTS.iloc[number : number + 20], preserve_index=False)
                pq.write_table(part, source / f"{number:03d}.parquet")
            stream = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(str(source))
            found = cepheid.match(stream, QUERY, delay=0)
            started = (
                found.writeStream.format("memory")
                .queryName("found")
                .option("checkpointLocation", f"{folder}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            started.awaitTermination()
            streamed = rows_of(spark.table("found").toPandas())
            # A stream has no end: what the last events complete is not known yet.
            assert streamed, "stream"
            assert set(streamed) <= set(expected), "stream"
            assert [row for row in expected if row[1] < 55] == [row for row in streamed if row[1] < 55], "stream"
        batch.createOrReplaceTempView("events")
        cepheid.sql.register(spark)
        statement = f"SELECT * FROM match_events(TABLE(events) PARTITION BY (id), '{QUERY}')"
        assert rows_of(spark.sql(statement).toPandas()) == expected, "SQL"
        rows = cepheid.sql.query(
            spark,
            "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS s, LAST(B.ts) AS e "
            "PATTERN (A B+) DEFINE A AS A.type = 'A', B AS B.type <> 'A')",
        )
        assert rows.count() > 0, "MATCH_RECOGNIZE"
    finally:
        spark.stop()
    print(f"PySpark {pyspark.__version__}: batch, stream, SQL and MATCH_RECOGNIZE agree with pandas")


if __name__ == "__main__":
    main()
