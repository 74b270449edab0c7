"""A rival in a process of its own: events and request go out as files, matches and seconds come back."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc

from bench.harness.calls import match_digest
from bench.harness.experiment import Contestant, Outcome, Unavailable

REPEATS = 3
TIMEOUT = 300.0


def in_process(
    name: str, command: Sequence[str], table: pa.Table, request: Mapping[str, Any], agrees: bool = True
) -> Contestant:
    """A contestant that is a command, called with the paths of the events, the request and the matches to write.

    Its own clock counts: from the first event handed over to the last match, after everything has started.
    """

    def run() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            events, asked, matches = (
                str(Path(folder) / name) for name in ("events.arrow", "request.json", "matches.arrow")
            )
            with ipc.new_file(events, table.schema) as file:
                file.write_table(table)
            Path(asked).write_text(json.dumps(request))
            try:
                done = subprocess.run(
                    [*command, events, asked, matches],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=TIMEOUT,
                    cwd=folder,
                )
            except subprocess.TimeoutExpired:
                raise Unavailable(f"did not finish in {TIMEOUT:.0f} s") from None
            answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode != 0 or not answers:
                raise Unavailable(f"failed: {(done.stderr or done.stdout).strip()[-500:]}")
            answer: dict[str, Any] = json.loads(answers[-1])
            if Path(matches).exists():
                with ipc.open_file(matches) as file:
                    answer["table"] = file.read_all()
            return answer

    def inspect(answer: dict[str, Any]) -> Outcome:
        found = answer.get("table")
        if found is None:
            return Outcome(answer.get("matches"), answer.get("digest"), answer["seconds"])
        return Outcome(found.num_rows, match_digest(found), answer["seconds"])

    return Contestant(name, run, table.num_rows, inspect, agrees, REPEATS, warms_itself=True)
