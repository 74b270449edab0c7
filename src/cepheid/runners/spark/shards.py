"""Into how many pieces the state of a stream goes, where nobody says so.

Each shard costs a step in every micro-batch, busy or not, so there should be few; but each task that runs at once
should have its part. Two tasks are not worth it: one shard needs no shuffle, and reading, packing, matching and
unpacking are processes that work side by side, so that it took less time even with 200,000 events in a micro-batch
(1.57 s beside 1.69 s with 6 shards, and 1.7 s of processor time beside 2.7 s).

Spark deals shards to partitions by a hash of their number, which leaves some without any: of 2 shards both go to one
of 2 partitions, while 6 are dealt evenly.

A checkpoint keeps its number of shards, whatever the machine that goes on with it: the plan of a stream is made before
its checkpoint is known, so events are dealt by a remainder that leaves the number open, and workers learn it from a
setting that is made for this one query when it starts (started.py).
"""

from __future__ import annotations

from functools import cache
from math import lcm
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.runners.spark.session import Session

WORTH_PARTING = 3  # tasks that run at once, from which on each should have its part
_32 = 0xFFFFFFFF
ADOPTED = "spark.cepheid.shards"  # in the settings of one query: the shards of the checkpoint that it goes on from
OPEN = 4 * lcm(*range(1, 41))  # the remainder of it tells that of each number up to 40, and of many above


def shards_for(session: Session, asked: int | None) -> int:
    """The shards that were asked for, or as many as serve best with so many tasks at once."""
    from cepheid.runners.spark.session import parallelism  # workers, which need neither this nor options, start lighter

    tasks = parallelism(session)
    return asked if asked is not None else even_shards(tasks) if tasks >= WORTH_PARTING else 1


def adoptable(shards: int) -> bool:
    """Can a stream whose number of shards was left open go on with so many?

    >>> [adoptable(shards) for shards in (2, 16, 39, 64, 100, 41)]
    [True, True, True, True, True, False]
    """
    return OPEN % shards == 0


def shards_here(planned: int) -> int:
    """In a worker: the shards of the checkpoint, if the number was left open and another one was planned."""
    from pyspark import TaskContext

    task = TaskContext.get()
    told = task.getLocalProperty(ADOPTED) if task is not None else None
    return int(told) if told is not None else planned


@cache
def even_shards(partitions: int) -> int:
    """The number of shards, up to SHARDS, of which the busiest partition gets the least part; of several the fewest.

    >>> [even_shards(partitions) for partitions in (1, 2, 4, 8, 64)]
    [1, 6, 16, 16, 16]
    """
    from cepheid.runners.options import SHARDS

    if partitions >= SHARDS:
        return SHARDS
    loads = [0] * partitions
    best, least = SHARDS, 1.1
    for number in range(SHARDS):
        loads[spark_hash(number) % partitions] += 1
        count = number + 1
        if count >= partitions and max(loads) / count < least:
            best, least = count, max(loads) / count
    return best


def spark_hash(number: int) -> int:
    """What Spark's `hash` makes of an int: Murmur3 with the seed 42.

    >>> spark_hash(0), spark_hash(1)
    (933211791, -559580957)
    """
    mixed = _rotated((number & _32) * 0xCC9E2D51 & _32, 15) * 0x1B873593 & _32
    found = (_rotated(42 ^ mixed, 13) * 5 + 0xE6546B64 & _32) ^ 4
    found = (found ^ found >> 16) * 0x85EBCA6B & _32
    found = (found ^ found >> 13) * 0xC2B2AE35 & _32
    found ^= found >> 16
    return found - (1 << 32) if found >> 31 else found


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _32
