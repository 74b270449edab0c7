"""Spark's processes that need no engine load none: what packs events, unpacks matches, and starts a stream.

None of the three parses a query or makes a plan, and what starts a stream holds no tables, either.
"""

import pickle
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.language.schema import Schema
from cepheid.runners.arrow_bytes import decoded
from cepheid.runners.options import Options
from cepheid.runners.spark.pack import Marks, packed_rows, packer
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
unwanted = {"numba", "scipy", "llvmlite", "lark", "cepheid.api", "cepheid.language.syntax", "cepheid.plan.options"}
unwanted |= {"cepheid.engine.find", "cepheid.runners.options", "cepheid.runners.spark.session"}
unwanted |= {"numpy", "pyarrow"} if sys.argv[1] == "starts" else set()
heavy = unwanted & sys.modules.keys()
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
    done = subprocess.run([sys.executable, "-c", UNPICKLED, kind], input=packed, capture_output=True, check=False)
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


class Value:
    """A value, or a map, of the state store."""

    told: tuple[str] | None = None

    def exists(self) -> bool:
        return self.told is not None

    def get(self) -> tuple[str] | None:
        return self.told

    def update(self, told: tuple[str]) -> None:
        self.told = told


def test_a_task_unpacks_the_shard_and_calls_it():
    """Rows of a micro-batch, and a state that was moved."""
    work = pickle.loads(pickle.dumps(processor("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN b.ts AS at")))
    opened: dict[str, Value] = {}
    work.init(
        SimpleNamespace(
            getValueState=lambda name, _: opened.setdefault(name, Value()),
            getMapState=lambda name, *_: opened.setdefault(name, Value()),
        )
    )
    assert set(opened) == {*work.variables.values, *work.variables.maps}
    table = pa.table([[1, 2, 9], ["A", "B", "A"], [1, 1, 1]], schema=COLUMNS)
    table = table.append_column("__shard", pa.array([0, 0, 0], pa.int32()))
    rows = packed_rows(table, "ts", Marks("__shard"), 1).to_pandas()
    (found,) = work.handleInputRows((0,), iter([rows]), None)
    packed = [decoded(each) for each in found["packed"] if each is not None]
    assert [row["at"] for part in packed for row in part.to_pylist()] == [2]
    moved = pickle.loads(work.packed)
    moved.clock = Value()
    work.processor = moved
    state = rows.assign(kind="clock", number=0, packed=b"{}")
    work.handleInitialState((0,), state, None)
    assert moved.clock.told == ("{}",)
