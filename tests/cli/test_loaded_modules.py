"""What a small call loads: no model, no Spark, no page, no pandas, no compiled kernel and no compiler.

Each would cost a second or so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CALL = """
import sys
from cepheid.cli import main
for query in sys.argv[2:]:
    try:
        main(["run", query, "-i", sys.argv[1]])
    except SystemExit as end:
        assert not end.code
print(*sorted(sys.modules))
import pandas, pyarrow
assert pyarrow.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
assert pyarrow.array(pandas.Series([float("nan")])).null_count == 1
import os
from cepheid.engine.data.timed import trimmed
was_disabled = not hasattr(trimmed, "dispatcher")
os.environ["NUMBA_DISABLE_JIT"] = "0" if was_disabled else "1"  # too late: kernels are declared
assert was_disabled or trimmed.dispatcher().overloads
"""
QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x WITHIN 10",
    "MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.x AS x PATTERN (A B) DEFINE A AS x > 0, B AS x > A.x)",
    "steps.py:steps",
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 SUMMARISE count(*) AS n, sum(b.x) AS x BY id",
    "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 10 SUMMARISE count(*) AS n",
]
STEPS = """
from cepheid.flink import Pattern
steps = Pattern.begin("a").where("type = 'A'").followed_by("b").where("type = 'B' AND x > a.x").within(10)
"""
UNWANTED = {
    "altair",
    "cepheid.console",
    "cepheid.diagnose",
    "cepheid.engine.reference",
    "cepheid.model",
    "cepheid.plot",
}
UNWANTED |= {
    "llvmlite",
    "matplotlib",
    "numba",
    "pandas",
    "polars",
    "pyspark",
    "scipy.linalg",
    "scipy.signal",
    "scipy.special",
    "scipy.stats",
    "sqlglot",
}


def test_small_runs(tmp_path: Path) -> None:
    """One process runs a query of each language: what none of them may load is not loaded by all of them."""
    (tmp_path / "events.csv").write_text("ts,type,id,x\n1,A,1,1\n2,B,1,2\n3,A,2,3\n4,C,1,4\n5,B,2,5\n")
    (tmp_path / "steps.py").write_text(STEPS)
    command = [sys.executable, "-c", CALL, str(tmp_path / "events.csv"), *QUERIES]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "CEPHEID_COMPILE": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"cepheid.engine.find", "cepheid.runners.rows", "cepheid.runners.flink"} <= loaded
    assert loaded & UNWANTED == set()
