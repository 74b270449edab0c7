"""Experiments: the papers' figures, today's rivals, Spark, and two versions side by side.

python -m bench list                              what there is
python -m bench run sase-1 time --size quick      some of them, by name or the beginning of a name
python -m bench full --minutes 30                 all of them, published: bench/results and bench/RESULTS.md
python -m bench smoke                             does everything work? Seconds each, no times kept
python -m bench publish                           bench/RESULTS.md and the numbers in README and docs, from the results
python -m bench report --size quick               the report of a smaller run, under build/bench
python -m bench compare --before A --after B      two checkouts in one interleaved run
python -m bench rivals                            sets up the rivals under build/rivals (make bench-rivals)
python -m bench live                              live queries beside a batch (bench/live.py)
python -m bench cliffs                            queries a step beside the road, with their growth (bench/cliffs.py)
python -m bench shapes                            row patterns that look back, with their growth (bench/row_shapes.py)
python -m bench clauses                           24 shapes of MATCH_RECOGNIZE beside peers (bench/clause_shapes.py)
python -m bench search --minutes 10               drawn queries, the slowest for what they give (bench/search.py)
python -m bench planner --draws 200               drawn queries, auto beside every engine by hand (bench/planner.py)
python -m bench missing --size quick              scorings, recall and cost of missing events (bench/missing.py)
python -m bench calibration                       what was said beside what was true (bench/calibration.py)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.harness.experiment import SIZES, Experiment
from bench.harness.store import BUILD, PUBLISHED, folder_for, read_results

SECONDS = {"smoke": 2.0, "quick": 60.0, "full": 120.0}  # for an experiment of weight 1, if no minutes are given


def main() -> None:
    """Reads the command line and hands on to a command."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=kind)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the experiments").set_defaults(call=call_list)
    run = commands.add_parser("run", help="some experiments")
    run.add_argument("names", nargs="*", help="names or beginnings of names (default: all)")
    run.add_argument("--size", default="quick", choices=SIZES)
    run.add_argument("--quick", action="store_const", dest="size", const="quick", help="the same as --size quick")
    run.set_defaults(call=call_run)
    full = commands.add_parser("full", help="all experiments at full size: what is published")
    full.add_argument("names", nargs="*", help="names or beginnings of names (default: all)")
    full.set_defaults(call=call_run, size="full")
    for command in (run, full):
        command.add_argument("--minutes", type=float, help="for all of them together")
        command.add_argument("--again", action="store_true", help="also what has results of this commit already")
        command.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
        command.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    smoke = commands.add_parser("smoke", help="does everything work?")
    smoke.add_argument("names", nargs="*", help="names or beginnings of names (default: all)")
    smoke.add_argument("--without", nargs="*", default=[], help="what experiments must not need: spark, rivals")
    smoke.set_defaults(call=call_smoke)
    report = commands.add_parser("report", help="RESULTS.md anew from the result files")
    report.add_argument("--size", default="full", choices=SIZES)
    report.set_defaults(call=call_report)
    commands.add_parser("publish", help="RESULTS.md, README and docs from the results").set_defaults(call=call_publish)
    add_compare(commands)
    rivals = commands.add_parser("rivals", help="set up the rivals under build/rivals")
    rivals.add_argument("names", nargs="*", help="which (default: all)")
    rivals.add_argument("--opencep", type=Path, help="a checkout of OpenCEP's public source")
    rivals.set_defaults(call=call_rivals)
    cost = commands.add_parser("cost", help="what a cluster would need, from the result files")
    cost.add_argument("--size", default="full", choices=SIZES)
    cost.set_defaults(call=call_cost)
    cliffs = commands.add_parser("cliffs", help="queries a step beside the road, with their growth")
    cliffs.add_argument("names", nargs="*", help="equalities, outputs, streams, ... (bench/cliffs.py; default: all)")
    cliffs.set_defaults(call=call_cliffs)
    shapes = commands.add_parser("shapes", help="row patterns that look back, with their growth")
    shapes.set_defaults(call=call_shapes)
    clauses = commands.add_parser("clauses", help="24 shapes of MATCH_RECOGNIZE beside DuckDB and pandas")
    clauses.set_defaults(call=call_clauses)
    search = commands.add_parser("search", help="drawn queries, the slowest for what they give")
    search.add_argument("--minutes", type=float, default=5.0)
    search.add_argument("--seed", type=int, default=0)
    search.add_argument("--draws", type=int, default=1_000_000)
    search.add_argument("--events", type=int, default=100_000)
    search.add_argument("--seconds", type=float, default=5.0, help="for one query")
    search.add_argument("--grow", action="store_true", help="with twice the events, too")
    search.add_argument("--kind", default="", help="sequence, expression, rows or flink (default: in turns)")
    search.set_defaults(call=call_search)
    planner = commands.add_parser("planner", help="drawn queries, auto beside every engine by hand")
    planner.add_argument("--draws", type=int, default=200)
    planner.add_argument("--seed", type=int, default=0)
    planner.add_argument("--events", type=int, default=20_000)
    planner.add_argument("--minutes", type=float, default=60.0)
    planner.add_argument("--kind", choices=("precise", "shifting", "imprecise", "existence"), default="precise")
    planner.set_defaults(call=call_planner)
    live = commands.add_parser("live", help="live queries: batches of 100 and single events beside a batch")
    live.add_argument("--size", default="full", choices=("quick", "full"))
    live.set_defaults(call=call_live)
    missing = commands.add_parser("missing", help="missing events: calibration, recall, cost")
    missing.add_argument("--size", default="full", choices=("quick", "full"))
    missing.set_defaults(call=call_missing)
    calibration = commands.add_parser("calibration", help="missing events: what was said beside what was true")
    calibration.add_argument("--size", default="full", choices=("quick", "full"))
    calibration.set_defaults(call=call_calibration)
    arguments = parser.parse_args()
    arguments.call(arguments)


def add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`compare`: two checkouts in one run."""
    command = commands.add_parser("compare", help="two checkouts in one interleaved run: ratios per benchmark")
    command.add_argument("--before", type=Path, required=True, help="a checkout of the older version")
    command.add_argument("--after", type=Path, required=True, help="a checkout of the newer version")
    command.add_argument("--experiments", nargs="*", default=["house"], help="names or beginnings (default: house)")
    command.add_argument("--size", default="full", choices=SIZES)
    command.add_argument("--rounds", type=int, default=7, help="runs of each side at most, after one that warms up")
    command.add_argument("--minutes", type=float, default=20.0, help="for all experiments; fewer rounds if it is short")
    command.add_argument("--output", type=Path, default=BUILD / "compare", help="folder of the results")
    command.add_argument(
        "--python-before", type=Path, help="interpreter (default: the checkout's .venv, else this one)"
    )
    command.add_argument("--python-after", type=Path, help="interpreter (default: the checkout's .venv, else this one)")
    command.set_defaults(call=call_compare)


def call_list(arguments: argparse.Namespace) -> None:
    from bench.experiments import all_experiments

    for experiment in all_experiments().values():
        print(f"{experiment.name:18} {experiment.source:42} {experiment.title}")


def call_run(arguments: argparse.Namespace) -> None:
    """Each experiment in a process of its own: memory, JVMs and crashes stay apart, and the others go on."""
    from bench.experiments import chosen_experiments
    from bench.harness.run import run_experiment

    chosen = chosen_experiments(arguments.names)
    if arguments.here:
        run_experiment(chosen[0], arguments.size, arguments.seconds, arguments.again)
        return
    if not arguments.again:
        chosen = [experiment for experiment in chosen if not is_done(experiment, arguments.size)]
    failed = []
    deadline = time.monotonic() + 60 * arguments.minutes if arguments.minutes else None
    for number, experiment in enumerate(chosen):
        seconds = SECONDS[arguments.size] * experiment.weight
        if deadline is not None:
            weights = sum(each.weight for each in chosen[number:])
            # What starting a process and making streams takes is not the experiment's to spend.
            seconds = max(5.0, 0.85 * (deadline - time.monotonic()) * experiment.weight / weights)
        print(f"\n=== {experiment.name}: {experiment.title} ({seconds:.0f} s) ===", flush=True)
        command = [sys.executable, "-m", "bench", "run", experiment.name, "--here"]
        command += ["--size", arguments.size, "--seconds", str(seconds), *(["--again"] if arguments.again else [])]
        if subprocess.run(command, check=False).returncode != 0:
            failed.append(experiment.name)
    call_report(arguments)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; run the same command again to go on where they stopped")


def is_done(experiment: Experiment, size: str) -> bool:
    """Are there results of this commit?"""
    from bench.harness.machine import machine_facts

    kept = read_results(experiment.name, folder_for(size))
    return kept is not None and kept[0]["measured_on"]["commit"] == machine_facts()["commit"] and size != "smoke"


def call_smoke(arguments: argparse.Namespace) -> None:
    from bench.experiments import chosen_experiments
    from bench.harness.report import judged
    from bench.harness.run import run_experiment

    for experiment in chosen_experiments(arguments.names):
        if set(experiment.needs) & set(arguments.without):
            print(f"{experiment.name}: left out, it needs {', '.join(experiment.needs)}")
            continue
        summary = run_experiment(experiment, "smoke", SECONDS["smoke"], again=True)
        judged(experiment, summary)


def call_report(arguments: argparse.Namespace) -> None:
    from bench.experiments import chosen_experiments
    from bench.harness.report import REPORT, write_report

    folder = folder_for(arguments.size)
    path = REPORT if folder == PUBLISHED else folder / "RESULTS.md"
    write_report(chosen_experiments([]), folder, path)
    print(f"\n{path}")


def call_publish(arguments: argparse.Namespace) -> None:
    from bench.harness.publish import publish

    publish()


def call_compare(arguments: argparse.Namespace) -> None:
    from bench.experiments import chosen_experiments
    from bench.harness.compare import compare

    lines = compare(
        arguments.before,
        arguments.after,
        [experiment.name for experiment in chosen_experiments(arguments.experiments)],
        size=arguments.size,
        rounds=arguments.rounds,
        minutes=arguments.minutes,
        output=arguments.output,
        pythons={"before": arguments.python_before, "after": arguments.python_after},
    )
    print(f"\n{arguments.output}/COMPARE.md has the table, compare.parquet every run, *.log what each side said")
    if any(line.get("same_matches") is False for line in lines):
        sys.exit("the two sides find different matches")


def call_rivals(arguments: argparse.Namespace) -> None:
    from bench.rivals.setup import set_up

    set_up(arguments.names, arguments.opencep)


def call_cost(arguments: argparse.Namespace) -> None:
    from bench.cost_model import main as cost

    cost(folder_for(arguments.size))


def call_cliffs(arguments: argparse.Namespace) -> None:
    from bench import cliffs

    cliffs.main(arguments.names)


def call_planner(arguments: argparse.Namespace) -> None:
    """Compares the planner's choices with every engine."""
    from bench import planner

    planner.main(arguments.draws, arguments.seed, arguments.events, arguments.minutes, arguments.kind)


def call_clauses(arguments: argparse.Namespace) -> None:
    """24 shapes of MATCH_RECOGNIZE beside peers."""
    from bench import clause_shapes

    clause_shapes.main()


def call_shapes(arguments: argparse.Namespace) -> None:
    from bench import row_shapes

    row_shapes.main()


def call_search(arguments: argparse.Namespace) -> None:
    from bench import search

    sizes = (arguments.minutes, arguments.seed, arguments.draws, arguments.seconds, arguments.events)
    search.main(*sizes, arguments.grow, arguments.kind)


def call_live(arguments: argparse.Namespace) -> None:
    """Live queries."""
    from bench import live, live_patterns

    live.main(arguments.size == "quick")
    live_patterns.main(arguments.size == "quick")


def call_missing(arguments: argparse.Namespace) -> None:
    quick = arguments.size == "quick"
    if quick:  # bench.measure reads it when it is imported
        os.environ["CEPHEID_BENCH_RESULTS"] = str(folder_for("quick"))
    from bench import missing

    missing.main(quick)


def call_calibration(arguments: argparse.Namespace) -> None:
    quick = arguments.size == "quick"
    if quick:  # as above
        os.environ["CEPHEID_BENCH_RESULTS"] = str(folder_for("quick"))
    from bench import calibration

    calibration.main(quick)


if __name__ == "__main__":
    main()
