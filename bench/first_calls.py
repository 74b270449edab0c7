"""What a query costs that is new to the process, beside the same query again: `python -m bench.first_calls`.

A new condition runs as Python over few events and is compiled over many (`values/python_first.py`). Each clause and
each query differs from the one before in a constant of its conditions. Times are the processor's, which other work
changes little; the ratio is that of the first call to the second.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import cepheid
from bench.experiments.rows import V_SHAPE, ticks

SIZES = ((10, 1), (1_000, 20), (10_000, 200), (100_000, 2_000))
REPEATS = 5
_fresh = itertools.count(1_000_000)


def new_clause() -> cepheid.Query:
    """A V-shape whose last condition counts rows, too."""
    last = f"E.price <= LAST(UP.price) AND count(*) < {next(_fresh)}"
    text = V_SHAPE.format(time="ts", window=1).replace("E.price <= LAST(UP.price)", last)
    return cepheid.query(f"MATCH_RECOGNIZE ({text})")


def new_query() -> cepheid.Query:
    """A sequence of three events of one key with rising prices."""
    rising = f"x.price + {next(_fresh) / 1e12} < y.price AND y.price < z.price"
    return cepheid.query(f"PATTERN SEQ(a x, b y, c z) WHERE [k] AND {rising} WITHIN 50")


def events(rows: int, keys: int) -> pa.Table:
    """The same ticks, of three types."""
    kinds = np.random.default_rng(2).choice(["a", "b", "c"], rows)
    return ticks(rows, keys).append_column("type", pa.array(kinds))


def seconds(call: Callable[[], object]) -> float:
    """The processor's work for a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def main() -> None:
    """Prints a table."""
    print(f"{'':<18}{'rows':>9}{'first, ms':>12}{'again, ms':>12}{'ratio':>8}")
    for name, make in (("MATCH_RECOGNIZE", new_clause), ("query text", new_query)):
        make().match(events(*SIZES[0]))
        for rows, keys in SIZES:
            table = events(rows, keys)
            times = []
            for _ in range(REPEATS):
                query = make()
                times.append([seconds(lambda: query.match(table)) for _ in range(2)])  # noqa: B023
            first, again = (1e3 * statistics.median(each) for each in zip(*times, strict=True))
            print(f"{name:<18}{rows:>9,}{first:>12.1f}{again:>12.1f}{first / again:>8.1f}")


if __name__ == "__main__":
    main()
