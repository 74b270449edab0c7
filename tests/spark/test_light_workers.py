"""Spark's processes that need no engine load none: what packs events, unpacks matches, and starts a stream."""

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.language.schema import Schema
from cepheid.runners.options import Options
from cepheid.runners.spark.pack import Marks, packer
from cepheid.runners.spark.processor import PackedProcessor
from cepheid.runners.spark.shard import Shard, Telling
from cepheid.runners.spark.unpack import unpacker
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream.identity import fingerprint
from cepheid.runners.stream.state import StreamStep

COLUMNS = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])
UNPICKLED = """
import pickle, sys
work = pickle.loads(sys.stdin.buffer.read())
heavy = {"numba", "scipy", "llvmlite", "cepheid.engine.find"} & sys.modules.keys()
assert not heavy, sorted(heavy)
"""


def processor(text: str) -> PackedProcessor:
    """What Spark calls for the shards of a query."""
    schema = Schema.from_arrow(COLUMNS, time="ts", type="type")
    plan = make_plan(cepheid.query(text).bind(schema), None, Options(), decide_later=True)[0]
    group = (ship(plan, COLUMNS),)
    return PackedProcessor(Shard(StreamStep(group, (0,), 0, schema=COLUMNS), fingerprint(group, 1), Telling()))


WORK = {
    "packs": lambda: packer(COLUMNS.names, "ts", Marks("__shard"), 1),
    "unpacks": lambda: unpacker([None], pa.schema([("match_start", pa.int64())])),
    "starts": lambda: processor("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"),
}


@pytest.mark.parametrize("kind", WORK)
def test_a_process_that_needs_no_engine_loads_none(kind):
    packed = cloudpickle.dumps(WORK[kind]())
    done = subprocess.run([sys.executable, "-c", UNPICKLED], input=packed, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("text", "maps"),
    [
        ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5", ("chunks", "keys")),
        ("PATTERN SEQ(A a, B b) WITHIN 5", ("chunks",)),
        ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 OUTPUT NON-OVERLAP", ("chunks", "ended")),
        ("PATTERN SEQ(A a, B b) WITHIN 5 SUMMARISE count(*) AS n EVERY 5", ("chunks", "ended")),
    ],
)
def test_what_lies_in_the_store_is_known_before_a_task_runs(text, maps):
    """In the plan, in the process that starts the stream and in tasks it is the same."""
    planned = processor(text)
    assert planned.variables.values == ("clock",)
    assert planned.variables.maps == maps
    shard = pickle.loads(planned.packed)
    shard.step = shard.step.ready()
    assert shard.variables() == planned.variables
