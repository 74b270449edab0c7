"""Runs inside CORE's own environment: EVENTS.arrow REQUEST.json MATCHES.arrow. Imports nothing of this project."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pycer

NUMBERS = re.compile(r"attributes: \[(-?\d+) (-?\d+) \]")


def main() -> None:
    events_path, request_path, matches_path = sys.argv[1:]
    request = json.loads(Path(request_path).read_text())
    with ipc.open_file(events_path) as file:
        table = file.read_all()
    types = sorted(set(table["type"].to_pylist()))
    declared = ", ".join(f"EVENT {name} {{ {request['key']}:int, ts:primary_time }}" for name in types)
    server = pycer.PyOfflineServer()
    info = server.declare_stream(f"CREATE STREAM S {{ {declared} }}")
    ids = {event.name: event.id for event in info.events_info}
    steps = "; ".join(f"{name} as e{place}" for place, name in enumerate(request["types"], start=1))
    server.add_query(f"SELECT * FROM S WHERE ({steps}) PARTITION BY [{request['key']}] WITHIN {request['window']} [ts]")
    rows = zip(*(table[name].to_pylist() for name in ("type", request["key"], "ts")), strict=True)
    value = pycer.PyIntValue
    events = [pycer.PyEvent(ids[name], [value(key), value(ts)], value(ts)) for name, key, ts in rows]
    begun = time.perf_counter()
    server.send_events(events)
    output = server.get_output()
    seconds = time.perf_counter() - begun
    length = len(request["types"])
    times = [int(ts) for _, ts in NUMBERS.findall(output)]
    columns = {f"e{place + 1}": pa.array(times[place::length], pa.int64()) for place in range(length)}
    result = pa.table({**columns, "match_start": columns["e1"], "match_end": columns[f"e{length}"]})
    with ipc.new_file(matches_path, result.schema) as file:
        file.write_table(result)
    print(json.dumps({"seconds": seconds}))


main()
