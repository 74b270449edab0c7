"""TIME's synthetic series with uncertain timestamps (TIME §5.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.simulate.simulation import Simulation, check_at_least


def imprecise_series(events: int = 100_000, *, half_width: int = 5, series: int = 1_000, seed: int = 0) -> Simulation:
    """Values 1 .. series, over and over, one event a time unit, each known only to lie within `half_width` of `ts`.

    The truth is one possible world: `true_ts` drawn uniformly from every event's interval, `true_ts` and `ts` side by
    side, so that confidences can be compared with what happened. It is not among the events.
    """
    check_at_least("events", events, 1)
    check_at_least("half_width", half_width, 0)
    check_at_least("series", series, 1)
    rng = np.random.default_rng(seed)
    ts = np.arange(events, dtype=np.int64)
    true_ts = ts + rng.integers(-half_width, half_width + 1, events, dtype=np.int64)
    table = pa.table(
        {
            "ts": pa.array(ts),
            "value": pa.array(ts % series + 1),
            "lower": pa.array(ts - half_width),
            "upper": pa.array(ts + half_width),
            "type": pa.repeat("E", events),
        }
    )
    truth = pa.table({"ts": pa.array(ts), "true_ts": pa.array(true_ts)})
    return Simulation(
        table, truth, f"TIME's series 1..{series} with uncertainty of {half_width} either side", imprecise_query()
    )


def imprecise_query(*, divisors: Sequence[int] = (10, 10, 10), window: int = 100) -> str:
    """TIME's query template: component j takes the values that are multiples of divisors[j].

    >>> imprecise_query(divisors=(2, 5), window=20)
    'PATTERN SEQ(E e1, E e2) WHERE e1.value % 2 = 0 AND e2.value % 5 = 0 WITHIN 20'
    """
    check_at_least("the number of divisors", len(divisors), 1)
    components = ", ".join(f"E e{j}" for j in range(1, len(divisors) + 1))
    conditions = " AND ".join(f"e{j}.value % {divisor} = 0" for j, divisor in enumerate(divisors, start=1))
    return f"PATTERN SEQ({components}) WHERE {conditions} WITHIN {window}"
