"""The rows of matches that are shown as their events, of all queries of a step at once.

The events of all matches are taken out of the log in one piece, and become structs once for each place of a pattern.
Each query gets a slice of them: its own arrays would take longer than the search of a query with few matches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import MISSING, Matches
from cepheid.runners.stream.event_log import EventLog
from cepheid.runners.worker_plans import MATCHES_AT_ONCE, WorkerPlan

_WHOLE = pa.int64()


def shown_at_once(
    log: EventLog, events: pa.Schema, found: Mapping[int, Matches], plans: Sequence[WorkerPlan]
) -> dict[int, pa.RecordBatch]:
    """The rows of queries without groups of events, by the number of the query; others are left out."""
    alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, matches in found.items():
        bound = plans[number].plan.bound
        kind = events.field(bound.schema.time).type
        if bound.returns is not None or len(matches) > MATCHES_AT_ONCE:
            continue
        if kind != pa.int64() and not pa.types.is_timestamp(kind):
            continue
        if all(each.offsets is None for each in matches.chosen):
            alike[(bound.schema.time, *bound.schema.names, len(matches.chosen))].append(number)
    shown: dict[int, pa.RecordBatch] = {}
    for numbers in alike.values():
        shown |= _shown(log, events, {number: found[number] for number in numbers}, plans)
    return shown


def _shown(
    log: EventLog, events: pa.Schema, found: Mapping[int, Matches], plans: Sequence[WorkerPlan]
) -> dict[int, pa.RecordBatch]:
    """The rows of queries that read the same columns and have as many variables."""
    first = plans[next(iter(found))].plan.bound
    names, time, places = first.schema.names, first.schema.time, len(first.positives)
    every = list(found.values())
    rows: list[Int64s] = [matches.chosen[place].rows for place in range(places) for matches in every]
    total = sum(map(len, every))
    chosen = np.concatenate(rows)
    missing = chosen == MISSING
    there = None
    if missing.any():  # another event of the match lies there, and is not shown
        table = chosen.reshape(places, total)
        chosen = np.where(table == MISSING, table.max(axis=0), table).reshape(-1)
        there = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    taken = dict(zip(events.names, log.arrays(chosen), strict=True))
    kind = taken[time].type
    times = taken[time].view(_WHOLE).to_numpy().reshape(places, total)
    bounds = (times[0], times[0]) if places == 1 else (times.min(axis=0), times.max(axis=0))
    arrays = [pa.array(each, _WHOLE).view(kind) for each in bounds]
    kinds = pa.struct([(name, taken[name].type) for name in names])
    structs = pa.Array.from_buffers(kinds, len(chosen), [there], children=[taken[name] for name in names])
    arrays += [structs.slice(place * total, total) for place in range(places)]
    shown, start = {}, 0
    for number, matches in found.items():
        schema = plans[number].schema
        own = [array.slice(start, len(matches)) for array in arrays] if len(found) > 1 else arrays
        if matches.probability is not None:
            own = [*own, pa.array(matches.probability)]
        if schema.types == [array.type for array in own]:
            shown[number] = pa.RecordBatch.from_arrays(own, schema=schema)
        start += len(matches)
    return shown
