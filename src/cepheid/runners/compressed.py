"""Results that are kept compressed instead of listed: Kleene plus can have more than anyone reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.choose import Choice, chosen
from cepheid.engine.data.matches import NEVER
from cepheid.engine.engines import of_runs
from cepheid.engine.find import BEGINNING, ENGINES
from cepheid.engine.jit_fallback import answer
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from cepheid.runners.local import Prepared, result_table


@dataclass(frozen=True)
class CompressedResult:
    """All matches of a query as one shared structure (SASE+ section 4.2).

    `count` is exact and lists nothing; `first(n)` and `all` list matches as rows when they are wanted.
    """

    prepared: Prepared
    found: Any  # engine.runs.CompressedMatches

    @property
    def count(self) -> int:
        """How many matches there are."""
        counted: int = self.found.count()
        return counted

    def first(self, number: int) -> pa.Table:
        """The first matches, as rows."""
        return result_table(self.prepared.plan, self.prepared.events, self.found.enumerate(number))

    def all(self) -> pa.Table:
        """All matches, as rows."""
        return result_table(self.prepared.plan, self.prepared.events, self.found.enumerate())

    def __repr__(self) -> str:
        return f"CompressedResult({self.count:,} matches in {len(self.found.entries):,} shared entries)"


def run_compressed(prepared: Prepared) -> CompressedResult:
    """The matches compressed, which the run engine does for every precise query."""
    check_compressible(prepared.plan)
    from cepheid.engine.search import runs

    plan = chosen(prepared.plan, Choice(of_runs(prepared.plan.bound)))
    events, module = prepared.events, ENGINES["runs"].module
    with within_budget(plan.limits.timeout, plan.limits.max_bytes):
        found = answer(module, len(events), lambda: runs.find_compressed(plan, events, BEGINNING, NEVER), once=True)
    return CompressedResult(replace(prepared, plan=plan), found)


def check_compressible(plan: Plan) -> None:
    """An error if the matches of a query cannot be kept as one shared structure."""
    why = ENGINES[of_runs(plan.bound)].refuses(plan.bound, plan.model)
    if why is None and plan.bound.output.mode is not s.OutputMode.ALL:
        why = f"OUTPUT {plan.bound.output.mode.value} compares matches one by one"
    if why is None and plan.bound.summary is not None:
        why = "SUMMARISE keeps no matches"
    if why is not None:
        raise EngineError(f"output='compressed' does not support this query: {why}")
