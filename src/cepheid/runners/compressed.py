"""Results that are counted or kept compressed instead of listed: Kleene plus can have more than anyone reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.engine.choose import Choice, chosen
from cepheid.engine.cold import answer
from cepheid.engine.data.matches import NEVER
from cepheid.engine.find import BEGINNING, ENGINES
from cepheid.engine.kernels.stop import within_budget
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.runners.local import Prepared, result_table
from cepheid.runners.totals import count_matches


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


def run_compressed(prepared: Prepared, output: str) -> CompressedResult | int:
    """The matches counted or compressed, which the run engine does for every precise query."""
    why = ENGINES["runs"].refuses(prepared.bound, prepared.plan.model)
    if why is None and prepared.bound.syntax.output.mode is not s.OutputMode.ALL:
        why = f"OUTPUT {prepared.bound.syntax.output.mode.value} has to compare matches one by one"
    if why is not None:
        raise EngineError(f"output='{output}' cannot be had for this query: {why}")
    from cepheid.engine.search import runs

    plan = chosen(prepared.plan, Choice("runs"))
    events, module = prepared.events, ENGINES["runs"].module
    with within_budget(plan.limits.timeout, plan.limits.max_bytes):
        if output == "count":
            counted = count_matches(plan, events)
            if counted is not None:
                return counted
            return answer(module, len(events), lambda: runs.count(plan, events, BEGINNING, NEVER))
        found = answer(module, len(events), lambda: runs.find_compressed(plan, events, BEGINNING, NEVER))
    return CompressedResult(replace(prepared, plan=plan), found)
