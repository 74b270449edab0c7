"""`python -m bench publish`: the report, the numbers in README and docs, and no result files of experiments gone."""

from __future__ import annotations

from pathlib import Path

from bench.experiments import all_experiments, chosen_experiments
from bench.harness.cited import fill_pages
from bench.harness.report import REPORT, write_report
from bench.harness.store import PUBLISHED, ROOT

SUFFIXES = (".json", ".parquet", ".png")
# What commands of their own write, such as `python -m bench cliffs`.
OTHERS = ("calibration", "clauses", "cliffs", "missing", "planner", "search", "shapes")


def publish() -> None:
    """Everything that a full run changes, from the result files."""
    for path in stale_results(PUBLISHED):
        print(f"removed {path.relative_to(ROOT)}: no experiment writes it")
        path.unlink()
    write_report(chosen_experiments([]), PUBLISHED, REPORT)
    print(REPORT.relative_to(ROOT))
    for line in fill_pages(PUBLISHED):
        print(f"not measured: {line}")


def stale_results(folder: Path) -> list[Path]:
    """Files of experiments that there are no more."""
    kept = {f"{name}{suffix}" for name in all_experiments() for suffix in SUFFIXES}
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name not in kept and not path.stem.split("_")[0].startswith(OTHERS)
    ]
