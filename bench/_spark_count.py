"""A stateful step for comparison: it unpacks the events of a shard and counts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructType

from cepheid.runners.arrow_bytes import decoded


class Count(StatefulProcessor):
    """Keeps a number per shard."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.seen = handle.getValueState("seen", StructType().add("number", LongType()))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:
        stored = self.seen.get()
        number = stored[0] if stored is not None else 0
        for packed in rows:
            number += sum(decoded(events).num_rows for events in packed["events"] if events is not None)
        self.seen.update((number,))
        yield pd.DataFrame({"shard": [key[0]], "events": [number]})

    def close(self) -> None:
        pass
