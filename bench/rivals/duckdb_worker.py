"""Runs inside DuckDB's own environment: EVENTS.arrow REQUEST.json MATCHES.arrow. Imports nothing of this project."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import duckdb
import pyarrow.ipc as ipc


def main() -> None:
    events_path, request_path, matches_path = sys.argv[1:]
    request = json.loads(Path(request_path).read_text())
    with ipc.open_file(events_path) as file:
        table = file.read_all()
    connection = duckdb.connect()
    connection.execute(f"SET threads = {request['threads']}")
    connection.register("stream", table)
    connection.execute("CREATE TABLE events AS SELECT * FROM stream")
    begun = time.perf_counter()
    answer = connection.execute(request["statement"])
    # Renamed in DuckDB 2.
    result = answer.to_arrow_table() if hasattr(answer, "to_arrow_table") else answer.fetch_arrow_table()
    seconds = time.perf_counter() - begun
    with ipc.new_file(matches_path, result.schema) as file:
        file.write_table(result)
    print(json.dumps({"seconds": seconds}))


main()
