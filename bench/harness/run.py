"""Runs an experiment within a budget of time: warm-up, rounds in which all contestants have their turn, agreement."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.harness.clock import timed, use_cores
from bench.harness.experiment import Case, Contestant, Experiment, Unavailable
from bench.harness.machine import machine_facts
from bench.harness.plots import plot
from bench.harness.store import add_progress, folder_for, progress_file, read_progress, write_results
from bench.harness.summary import Summary, disagreement, summarise

ROUNDS = {"smoke": 1, "quick": 3, "full": 9}
LEAST_ROUNDS = {"smoke": 1, "quick": 1, "full": 3}
SHARE = 0.7  # of a case's time that one run of one contestant may take; a slower one is left out of heavier cases


@dataclass(frozen=True)
class Budget:
    """How long an experiment may take."""

    seconds: float
    rounds: int
    least_rounds: int
    warm_up: bool


def run_experiment(experiment: Experiment, size: str, seconds: float, again: bool = False) -> Summary:
    """Runs what is not done yet, writes the result files and the plot, and returns the summary."""
    use_cores(experiment.cores)
    facts = machine_facts()
    done = {} if again else read_progress(experiment.name, size, facts["commit"])
    if not done:
        progress_file(experiment.name, size).unlink(missing_ok=True)
    cases = experiment.cases(size)
    deadline = time.monotonic() + seconds
    left_out: dict[tuple[str, str], str] = {}
    for number, case in enumerate(cases):
        if case.key in done:
            continue
        allowed = max(1.0, (deadline - time.monotonic()) / (len(cases) - number))
        budget = Budget(allowed, ROUNDS[size], LEAST_ROUNDS[size], size != "smoke")
        done[case.key] = run_case(experiment, case, budget, left_out)
        add_progress(experiment.name, size, facts["commit"], case.key, done[case.key])
        print_case(experiment, case, done[case.key])
    runs = [run for case in cases for run in done[case.key]]
    problems = [run["error"] for run in runs if run.get("error")]
    told = {
        "experiment": experiment.name,
        "source": experiment.source,
        "title": experiment.title,
        "size": size,
        "measured_on": facts,
        "seconds_allowed": seconds,
        "left_out": sorted(set(problems)),
    }
    summary = write_results(experiment.name, size, told, runs)
    if size != "smoke":
        plot(experiment, summary, folder_for(size) / f"{experiment.name}.png")
    return summary


def run_case(
    experiment: Experiment, case: Case, budget: Budget, left_out: dict[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """All rounds of a case. What fails, or was too slow in a lighter case, is noted and left out."""
    label = {"series": case.series, "x": case.x}
    runs: list[dict[str, Any]] = []
    begun = time.monotonic()
    try:
        contestants = list(case.make())
    except Unavailable as problem:
        return [_left_out(label, "all", str(problem))]
    taking_part: list[Contestant] = []
    for contestant in contestants:
        why = left_out.get((case.series, contestant.name))
        if why is None and budget.warm_up:
            why = attempt(contestant.run, strict=False)[0]
        if why is None:
            taking_part.append(contestant)
        else:
            left_out[case.series, contestant.name] = why
            runs.append(_left_out(label, contestant.name, f"{contestant.name} at {case.x}: {why}"))
    for turn in range(1, budget.rounds + 1):
        # In turns, forwards and backwards, so that a drift of the machine falls on all alike.
        for contestant in list(taking_part if turn % 2 else reversed(taking_part)):
            if turn > (contestant.most_repeats or budget.rounds):
                continue
            asked = time.monotonic()
            why, run = attempt(partial(timed, contestant), not budget.warm_up)
            if run is None:
                taking_part.remove(contestant)
                left_out[case.series, contestant.name] = str(why)
                runs.append(_left_out(label, contestant.name, f"{contestant.name} at {case.x}: {why}"))
                continue
            runs.append({**label, "round": turn, **run.row()})
            taken = time.monotonic() - asked
            if budget.warm_up and taken > max(2.0, SHARE * budget.seconds):
                left_out[case.series, contestant.name] = f"took {taken:.1f} s in a lighter case, which is too long"
        if turn >= budget.least_rounds and time.monotonic() - begun > budget.seconds:
            break
    wrong = disagreement(runs, [contestant.name for contestant in contestants if contestant.agrees])
    if wrong:
        raise ResultsDiffer(f"{experiment.name}, {case.key}: {wrong}")
    return runs


class ResultsDiffer(AssertionError):
    """Contestants of one case found different matches, so their times say nothing."""


def attempt(call: Callable[[], Any], strict: bool) -> tuple[str | None, Any]:
    """What the call returns; or why it failed, in a sentence. In a smoke run a failure is one."""
    try:
        return None, call()
    except Unavailable as problem:
        return str(problem), None
    except Exception as problem:
        if strict:
            raise
        traceback.print_exc()
        return f"{type(problem).__name__}: {problem}"[:500], None


def _left_out(label: Mapping[str, Any], contestant: str, why: str) -> dict[str, Any]:
    nothing = {"round": 0, "events": 0, "seconds": 0.0, "peak_mb": 0.0, "matches": None, "digest": None, "metrics": {}}
    return {**label, "contestant": contestant, **nothing, "error": why}


def print_case(experiment: Experiment, case: Case, runs: Sequence[Mapping[str, Any]]) -> None:
    """The case as lines on the terminal."""
    place = f"{experiment.name} {case.series} {experiment.x} = {case.x}".replace("  ", " ")
    for row in summarise(runs).rows:
        found = "" if row.matches is None else f"{row.matches:>12,} matches"
        speed = f"{row.events_per_second:>14,.0f} events/s"
        print(f"{place:48} {row.contestant:32} {speed} ±{row.spread:5.1%} {found}", flush=True)
    for run in runs:
        if run.get("error"):
            print(f"{place:48} left out: {run['error'][:160]}", flush=True)
