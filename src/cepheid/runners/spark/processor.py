"""What Spark calls for a shard of a stream: the shard itself, packed, and what it keeps in Spark's store.

When a stream starts, and for each of its plans, Spark asks a process of its own on the driver's machine what there may
be in the store, before any task runs. It would load the engine, and with it numba, for the names of a few variables. So
the shard is unpacked by tasks alone.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.types import StringType, StructType

from cepheid.runners.spark.chunks import StateMap, client_of


@dataclass(frozen=True)
class Variables:
    """The names of what is kept in Spark's store."""

    values: tuple[str, ...]
    maps: tuple[str, ...]


class Keeps(Protocol):
    """A processor that can tell what it keeps."""

    def variables(self) -> Variables: ...


class PackedProcessor(StatefulProcessor):
    """A processor that is unpacked where there is something to process."""

    def __init__(self, processor: Keeps) -> None:
        self.variables = processor.variables()
        self.packed: bytes = cloudpickle.dumps(processor)  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        quieten()  # as early as anything of ours runs in a worker
        self.__dict__.update(state)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state, or tells what there may be."""
        client = client_of(handle)
        if client is not None and client.handle_state is StatefulProcessorHandleState.PRE_INIT:
            for name in self.variables.values:
                text_state(handle, name)
            for name in self.variables.maps:
                StateMap(handle, name)
            return
        self.processor: Any = pickle.loads(self.packed)
        self.processor.init(handle)

    def handleInputRows(self, key: object, rows: Iterator[object], timerValues: object) -> Iterator[Any]:
        """Takes in what came for a shard in a micro-batch."""
        yield from self.processor.handleInputRows(key, rows, timerValues)

    def handleExpiredTimer(self, key: object, timerValues: object, expiredTimerInfo: object) -> Iterator[Any]:
        """Nothing came for a while."""
        yield from self.processor.handleExpiredTimer(key, timerValues, expiredTimerInfo)

    def handleInitialState(self, key: object, initialState: object, timerValues: object) -> None:
        """Begins with a state that was moved here."""
        self.processor.handleInitialState(key, initialState, timerValues)

    def close(self) -> None:
        """Nothing to close."""


def text_state(handle: StatefulProcessorHandle, name: str) -> Any:
    """A variable of the store that holds a text."""
    # The schema as an object: as text, it would go to the JVM and back to be read.
    return handle.getValueState(name, StructType().add("told", StringType()))


def quieten() -> None:
    """Stops what Spark's own worker would print about the start of every stream. It has no setting for that."""
    main: Any = sys.modules["__main__"]
    if str(getattr(main, "__file__", "")).endswith("transform_with_state_driver_worker.py"):
        main.print = lambda *_: None
