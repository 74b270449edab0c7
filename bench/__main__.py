"""Runs the experiments. `python -m bench --help` lists the commands, `python -m bench list` the experiments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HOUSE = ("sequences", "kleene", "lazy", "imprecise", "missing", "start")


def main() -> None:
    """Reads the command line and hands on to a command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add_compare(commands)
    arguments = parser.parse_args()
    arguments.call(arguments)


def add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`compare`: two checkouts in one run."""
    command = commands.add_parser("compare", help="two checkouts in one interleaved run: ratios per benchmark")
    command.add_argument("--before", type=Path, required=True, help="a checkout of the older version")
    command.add_argument("--after", type=Path, required=True, help="a checkout of the newer version")
    command.add_argument("--experiments", nargs="*", default=["house"], help="names or beginnings (default: house)")
    command.add_argument("--size", default="full", choices=("smoke", "quick", "full"))
    command.add_argument("--rounds", type=int, default=7, help="runs of each side at most, after one that warms up")
    command.add_argument("--minutes", type=float, default=20.0, help="for all experiments; fewer rounds if it is short")
    command.add_argument("--output", type=Path, default=Path("build/bench/compare"), help="folder of the results")
    command.add_argument(
        "--python-before", type=Path, help="interpreter (default: the checkout's .venv, else this one)"
    )
    command.add_argument("--python-after", type=Path, help="interpreter (default: the checkout's .venv, else this one)")
    command.set_defaults(call=call_compare)


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


if __name__ == "__main__":
    main()
