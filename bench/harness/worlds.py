"""The calibration of missing events as a section of the report, from what `python -m bench calibration` wrote."""

from __future__ import annotations

import json
from pathlib import Path


def calibration_lines(folder: Path) -> list[str]:
    """World by world: what was said beside what was true."""
    text = ["## calibration: missing events, what was said beside what was true", ""]
    path = folder / "calibration.json"
    if not path.exists():
        return [*text, "Not run for this page: `python -m bench calibration`."]
    kept = json.loads(path.read_text(encoding="utf-8"))
    text += [
        "Each world is judged three times, on histories that were not looked at before; the worst one counts.",
        "",
        "| world | unsure matches | said | true | error, worst of three | `model.check` fits |",
        "|---|---|---|---|---|---|",
    ]
    for world, numbers in kept.items():
        if not isinstance(numbers, dict) or "by missing" not in numbers:
            continue
        whole, fits = numbers["by missing"]["all"], numbers["check"]["fits"]
        text.append(
            f"| {world} | {whole['matches']:,} | {whole['said']:.3f} | {whole['true']:.3f} | "
            f"{max(numbers['errors']):.3f} | {sum(fits)} of {len(fits)} |"
        )
    return text
