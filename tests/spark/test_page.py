"""The examples of docs/spark.md run."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_examples(spark, tmp_path, monkeypatch):
    text = PAGE.read_text(encoding="utf-8")
    names = {"__name__": "docs.spark", "session": spark}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        # The page's folders, and the session of the tests instead of one of its own
        code = block[1].replace("/data/", f"{tmp_path}/").replace('cepheid.start_session("local[2]")', "session")
        if "readStream" in code:
            names["readings"].write.parquet(f"{tmp_path}/readings")
        exec(compile("\n" * line + code, str(PAGE), "exec"), names)
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    spark.streams.removeListener(names["watch"])
