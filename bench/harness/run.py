"""Runs an experiment within a budget of time: warm-up, rounds in which all contestants have their turn, agreement."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.harness.clock import timed, use_cores
from bench.harness.experiment import Case, Contestant, Experiment, Unavailable
from bench.harness.machine import machine_facts
from bench.harness.plots import plot
from bench.harness.store import add_progress, folder_for, progress_file, read_progress, write_results
from bench.harness.summary import Summary, disagreement, summarise

ROUNDS = {"smoke": 1, "quick": 3, "full": 9}
LEAST_ROUNDS = {"smoke": 1, "quick": 1, "full": 3}
OVERTIME = 3.0  # times an experiment's share, after which the cases that are left get a word instead of a run
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
    course = Course()
    for number, case in enumerate(cases):
        if case.key in done:
            continue
        if size != "smoke" and time.monotonic() > deadline + (OVERTIME - 1) * seconds:
            done[case.key] = [left_out_row(case, "all", f"{case.key}: no time was left for it")]
            continue
        allowed = max(1.0, (deadline - time.monotonic()) / (len(cases) - number))
        budget = Budget(allowed, ROUNDS[size], LEAST_ROUNDS[size], size != "smoke")
        done[case.key] = run_case(experiment, case, budget, course)
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


@dataclass
class Course:
    """What is known of contestants from lighter cases of their series: why they are out, how long a run took."""

    left_out: dict[tuple[str, str], str] = field(default_factory=dict)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)


def run_case(experiment: Experiment, case: Case, budget: Budget, course: Course) -> list[dict[str, Any]]:
    """All rounds of a case. What fails, or was too slow in a lighter case, is noted and left out."""
    begun = time.monotonic()
    try:
        contestants = list(case.make())
    except Unavailable as problem:
        return [left_out_row(case, "all", str(problem))]
    runs: list[dict[str, Any]] = []
    for turn in range(0 if budget.warm_up else 1, budget.rounds + 1):
        # In turns, forwards and backwards, so that a drift of the machine falls on all alike.
        for contestant in contestants if turn % 2 else reversed(contestants):
            if may_run(contestant, case, course, turn, begun, budget):
                run_once(contestant, case, course, turn, budget, runs)
        if turn >= budget.least_rounds and time.monotonic() - begun > budget.seconds:
            break
    for contestant in contestants:
        key = (case.series, contestant.name)
        if key in course.left_out and not any(run["contestant"] == contestant.name for run in runs):
            runs.append(left_out_row(case, contestant.name, f"{contestant.name} at {case.x}: {course.left_out[key]}"))
        elif course.seconds.get(key, 0.0) > max(2.0, SHARE * budget.seconds) and budget.warm_up:
            course.left_out[key] = f"took {course.seconds[key]:.1f} s in a lighter case, which is too long"
    wrong = disagreement(runs, [contestant.name for contestant in contestants if contestant.agrees])
    if wrong:
        raise ResultsDiffer(f"{experiment.name}, {case.key}: {wrong}")
    return runs


def may_run(contestant: Contestant, case: Case, course: Course, turn: int, begun: float, budget: Budget) -> bool:
    """Has the contestant a turn? Slow ones warm up once in a series, and have one turn if time is short."""
    key = (case.series, contestant.name)
    if key in course.left_out or turn > (contestant.most_repeats or budget.rounds):
        return False
    expected = course.seconds.get(key, 0.0)
    if turn == 0:
        return expected < 2.0 and not contestant.warms_itself
    return turn == 1 or time.monotonic() - begun + expected < 1.2 * budget.seconds or expected < 0.1


def run_once(
    contestant: Contestant, case: Case, course: Course, turn: int, budget: Budget, runs: list[dict[str, Any]]
) -> None:
    """A turn of a contestant. Turn 0 warms up and is not kept. In a smoke run a failure is one."""
    key = (case.series, contestant.name)
    begun = time.monotonic()
    try:
        run = timed(contestant)
    except Unavailable as problem:
        course.left_out[key] = str(problem)
        return
    except Exception as problem:
        if not budget.warm_up:
            raise
        traceback.print_exc()
        course.left_out[key] = f"{type(problem).__name__}: {problem}"[:500]
        return
    if turn == 0:
        course.seconds.setdefault(key, 0.0)  # compiling is in it, so it tells nothing of the next run
    else:
        course.seconds[key] = time.monotonic() - begun
        runs.append({"series": case.series, "x": case.x, "round": turn, **run.row()})


class ResultsDiffer(AssertionError):
    """Contestants of one case found different matches, so their times say nothing."""


def left_out_row(case: Case, contestant: str, why: str) -> dict[str, Any]:
    """A row that says why there is none."""
    nothing = {"round": 0, "events": 0, "seconds": 0.0, "peak_mb": 0.0, "matches": None, "digest": None, "metrics": {}}
    return {"series": case.series, "x": case.x, "contestant": contestant, **nothing, "error": why}


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
