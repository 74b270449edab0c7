"""The charts of docs/gallery.md: `python docs/site/gallery.py` writes docs/img/gallery-*.svg."""

from __future__ import annotations

import numpy as np
import pandas as pd
from drawings import IMAGES

import cepheid
from cepheid import plot

QUERY = "PATTERN SEQ(Dock a, Gate b, Yard c) WHERE [box] WITHIN 7200"


def boxes(number: int, seed: int) -> tuple[pd.DataFrame, dict[int, bool]]:
    """Boxes that pass a dock, perhaps a gate whose reader misses some, and a yard; and which did pass the gate."""
    rng = np.random.default_rng(seed)
    dock = np.sort(rng.uniform(0, 200 * number, number))
    passes = rng.random(number) < 0.7
    gate = dock + rng.gamma(2, 300, number)
    yard = np.where(passes, gate, dock) + rng.gamma(3, 200, number)
    seen, box = passes & (rng.random(number) > 0.2), np.arange(number)
    events = pd.DataFrame(
        {
            "ts": np.concatenate([dock, gate[seen], yard]).round().astype("int64"),
            "type": ["Dock"] * number + ["Gate"] * int(seen.sum()) + ["Yard"] * number,
            "box": np.concatenate([box, box[seen], box]),
        }
    )
    return events.sort_values("ts", ignore_index=True), dict(enumerate(passes.tolist()))


def main() -> None:
    history, _ = boxes(10_000, 1)
    model = cepheid.fit(history, QUERY)
    today, truth = boxes(4_000, 2)
    likely = f"{QUERY} THRESHOLD 0.01 OUTPUT MAXIMAL"
    found = cepheid.match(today, likely, model=model, scoring="posterior")
    logins = cepheid.match(
        cepheid.examples.logins(),
        "PATTERN SEQ(Failed+ f[], Accepted ok) WHERE skip_till_next_match { [user] } WITHIN 10 minutes OUTPUT MAXIMAL",
        tiebreak="row",
    )
    plot.timeline(found, limit=12, key="box").save(IMAGES / "gallery-timeline.svg")
    plot.over_time(logins).save(IMAGES / "gallery-over-time.svg")
    plot.probabilities(found, threshold=0.5).save(IMAGES / "gallery-probabilities.svg")
    plot.calibration(found, truth, key="box").save(IMAGES / "gallery-calibration.svg")
    plot.gaps(model).save(IMAGES / "gallery-gaps.svg")


if __name__ == "__main__":
    main()
