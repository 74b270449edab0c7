"""What the console feeds a live query with."""

import numpy as np
import pyarrow as pa

from cepheid.console.sources import replayed
from cepheid.console.workspace import Workspace

TIMES = np.arange(60)
EVENTS = pa.table(
    {
        "ts": TIMES,
        "type": [("A", "B", "C")[t % 3] if t % 7 else "N" for t in TIMES.tolist()],
        "id": (TIMES // 2 % 4),
    }
)


def test_a_table_is_replayed_in_order() -> None:
    table = Workspace().add("events", EVENTS.take(pa.array(np.roll(TIMES, 13))))
    parts = list(replayed(table, per_second=40, steps_per_second=4))
    assert [len(part) for part in parts] == [10] * 6
    assert pa.concat_tables(parts)["ts"].to_pylist() == TIMES.tolist()
