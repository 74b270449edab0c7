"""PySpark is an extra: everything but Spark works without it, and what needs it says how to get it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import importlib.metadata, sys

class NoSpark:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyspark":
            raise ImportError("no pyspark here")

sys.meta_path.insert(0, NoSpark())
known = importlib.metadata.version
def version(name):
    if name == "pyspark":
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)
importlib.metadata.version = version

import pandas as pd
import cepheid

events = pd.DataFrame({"ts": [1, 2], "type": ["A", "B"], "id": [1, 1]})
query = cepheid.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5")
assert len(query.match(events)) == 1
live = query.live(events)
live.send(events)
assert len(live.finish()) == 1
query.explain(events); query.why(events)
from cepheid.runners.spark.session import start_session
try:
    start_session()
except cepheid.CepheidError as error:
    print(error)
"""


def test_without_spark() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert ran.stdout.strip() == "PySpark is not installed: pip install 'cepheid[spark]'", ran.stderr
