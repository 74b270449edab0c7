"""Runs beside a checkout of OpenCEP: EVENTS.arrow REQUEST.json MATCHES.arrow. Imports nothing of this project.

OpenCEP's public interface: a pattern of a structure, conditions and a window, a stream that is handed out event by
event, and a formatter that says what an event's type and time are. Its window takes a match of exactly its length.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc

ORIGIN = datetime(2000, 1, 1)


def main() -> None:
    events_path, request_path, matches_path = sys.argv[1:]
    request = json.loads(Path(request_path).read_text())
    sys.path.insert(0, request["checkout"])
    with ipc.open_file(events_path) as file:
        rows = file.read_all().to_pylist()
    from base.DataFormatter import DataFormatter
    from CEP import CEP
    from stream.Stream import Stream

    class Rows(DataFormatter):
        """Events are dictionaries already."""

        def __init__(self) -> None:
            pass

        def parse_event(self, raw_data):
            return dict(raw_data)

        def get_event_type(self, event_payload):
            return event_payload["type"]

        def get_event_timestamp(self, event_payload):
            return ORIGIN + timedelta(seconds=event_payload["ts"])

        def get_probability(self, event_payload):
            return None

    found: list[list[int]] = []

    class Found(Stream):
        """Keeps the times of each match's events."""

        def add_item(self, item):
            found.append(sorted(event.payload["ts"] for event in item.events))

        def close(self):
            pass

    events = Stream()
    for row in rows:
        events.add_item(row)
    events.close()
    engine = CEP([pattern(request)])
    begun = time.perf_counter()
    engine.run(events, Found(), Rows())
    seconds = time.perf_counter() - begun
    length = len(request["types"])
    columns = {f"e{place + 1}": pa.array([match[place] for match in found], pa.int64()) for place in range(length)}
    result = pa.table({**columns, "match_start": columns["e1"], "match_end": columns[f"e{length}"]})
    with ipc.new_file(matches_path, result.schema) as file:
        file.write_table(result)
    print(json.dumps({"seconds": seconds}))


def pattern(request):
    """SEQ over the types with the same key on neighbours."""
    from base.Pattern import Pattern
    from base.PatternStructure import PrimitiveEventStructure, SeqOperator
    from condition.BaseRelationCondition import EqCondition
    from condition.CompositeCondition import AndCondition
    from condition.Condition import Variable

    key, names = request["key"], [f"e{place}" for place in range(1, len(request["types"]) + 1)]
    steps = [PrimitiveEventStructure(kind, name) for kind, name in zip(request["types"], names, strict=True)]
    same = [
        EqCondition(Variable(left, lambda event: event[key]), Variable(right, lambda event: event[key]))
        for left, right in itertools.pairwise(names)
    ]
    return Pattern(SeqOperator(*steps), AndCondition(*same), timedelta(seconds=request["window"] - 1))


main()
