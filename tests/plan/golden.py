"""Plans in text, one file each: `python tests/plan/golden.py` writes them anew, and a diff shows what changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.language.schema import Schema
from cepheid.plan.explain import plan_lines
from cepheid.plan.options import PlanOptions
from queries.corpus import QUERIES

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Planned:
    """A query of the corpus, planned with some options."""

    query: str
    name: str = ""  # of the file, where it is not the query's
    options: Mapping[str, Any] = field(default_factory=dict)
    imprecise: bool = False
    later: bool = False  # left to workers, as on Spark
    shards: int | None = None  # of a stream
    more: str = ""  # clauses added to the text

    @property
    def path(self) -> Path:
        """The file that holds the plan."""
        return FOLDER / f"{self.name or self.query}.txt"

    def text(self) -> str:
        """The plan as explain prints it."""
        printed = QUERIES[self.query]
        schema: Schema = replace(printed.schema, lower="ts", upper="ts") if self.imprecise else printed.schema
        query = cepheid.query(printed.text + self.more, printed.parameters)
        plan, _ = make_plan(query.bind(schema), None, PlanOptions(**self.options), decide_later=self.later)
        if self.shards is not None:
            plan = replace(plan, exchange=replace(plan.exchange, shards=self.shards))
        return "\n".join([str(query), "", *(line.rstrip() for line in plan_lines(plan))]) + "\n"


MODEL = cepheid.Model(loss=0.1, gaps={name: cepheid.Exponential(mean=60) for name in ("x", "y", "z")})

PLANS = (
    Planned("ayac-shoplifting", options={"model": MODEL, "scoring": "posterior"}),
    Planned("lazy-correlated-stocks"),
    Planned("lazy-correlated-stocks", "lazy-correlated-stocks-on-spark", later=True),
    Planned("lazy-correlated-stocks", "lazy-correlated-stocks-order", {"order": "cba"}),
    Planned("lazy-figure-1"),
    Planned("sase-any-in-sequence"),
    Planned("sase-medicine-overdose"),
    Planned("sase-negation-at-the-end", shards=16),
    Planned("sase-negation-at-the-start"),
    Planned("sase-negation-in-the-middle"),
    Planned("sase-plus-p1-s2"),
    Planned("sase-plus-p3-avg-s3"),
    Planned("sase-plus-q2-contamination"),
    Planned("sase-plus-q3-stock-trend", shards=16),
    Planned("sase-predicates-two-equivalence-tests"),
    Planned("sase-predicates-two-equivalence-tests", "sase-two-tests-construction", {"equivalence": "construction"}),
    Planned("sase-q2-shoplifting"),
    Planned("sase-q2-shoplifting", "sase-q2-shoplifting-basic", {"pushdown": False}),
    Planned("sase-q3-query-plan"),
    Planned("time-q1-cluster-monitoring", imprecise=True),
)


def main() -> None:
    """Writes every plan."""
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for planned in PLANS:
        planned.path.write_text(planned.text(), encoding="utf-8")
    print(f"{len(PLANS)} plans in {os.path.relpath(FOLDER)}")


if __name__ == "__main__":
    main()
