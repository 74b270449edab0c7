"""One side of a comparison: a process with that side's package, which runs what it is told, one line of JSON at a time.

{"experiment": "house-search", "size": "quick", "case": 0}   prepares a case, answers with its contestants
{"contestant": "sequence"}                                   runs one of them, answers with seconds and matches
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import cepheid
from bench.harness.clock import timed, use_cores
from bench.harness.experiment import Contestant
from bench.harness.machine import machine_facts


def main() -> None:
    """Answers requests until there are no more. What the engine prints goes to the error stream."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    from bench.experiments import find_experiment

    say({"package": os.path.dirname(cepheid.__file__), "machine": machine_facts()})
    contestants: dict[str, Contestant] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "experiment" in request:
                contestants.clear()
                experiment = find_experiment(request["experiment"])
                use_cores(experiment.cores)
                case = experiment.cases(request["size"])[request["case"]]
                contestants.update({contestant.name: contestant for contestant in case.make()})
                say({"contestants": list(contestants)})
            else:
                say(timed(contestants[request["contestant"]]).row())
        except Exception as problem:
            traceback.print_exc()
            say({"error": f"{type(problem).__name__}: {problem}"})


if __name__ == "__main__":
    main()
