"""The experiments by name. Each module holds those of one paper or one question, as a tuple EXPERIMENTS."""

from __future__ import annotations

import importlib

from bench.harness.experiment import Experiment

MODULES = (
    "sase",
    "sase_plus",
    "lazy",
    "time",
    "time_more",
    "ayac",
    "totals",
    "rivals",
    "rows",
    "spark_batch",
    "spark_stream",
    "house",
)


def all_experiments() -> dict[str, Experiment]:
    """Every experiment, in the order of the report."""
    found: dict[str, Experiment] = {}
    for name in MODULES:
        module = importlib.import_module(f"bench.experiments.{name}")
        found.update({experiment.name: experiment for experiment in module.EXPERIMENTS})
    return found


def find_experiment(name: str) -> Experiment:
    """The experiment of a name."""
    known = all_experiments()
    if name not in known:
        raise SystemExit(f"no experiment '{name}'; there are {', '.join(known)}")
    return known[name]


def chosen_experiments(names: list[str]) -> list[Experiment]:
    """Experiments by name or by the beginning of their names (`sase` means all of SASE's); all, if none is named.

    The house's own benchmarks are for comparing two versions and claim nothing, so they are left out of "all".
    """
    known = all_experiments()
    if not names:
        return [experiment for name, experiment in known.items() if not name.startswith("house")]
    chosen = {}
    for wanted in names:
        fitting = [name for name in known if name == wanted or name.startswith((wanted + "-", wanted + "+-"))]
        if not fitting:
            raise SystemExit(f"no experiment '{wanted}'; there are {', '.join(known)}")
        chosen.update({name: known[name] for name in fitting})
    return list(chosen.values())
