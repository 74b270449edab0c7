"""How a streaming step keeps its state in memory: the one place that says when searches go on where they stopped."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.incremental.queries import refusal
from cepheid.engine.search.incremental_runs import can_keep_runs
from cepheid.plan.explain import retained_text
from cepheid.plan.physical import Plan
from cepheid.runners.stream.incremental_pushed import ResidentIncremental
from cepheid.runners.stream.incremental_runs import ResidentRuns
from cepheid.runners.stream.incremental_shard import Resident
from cepheid.runners.stream.incremental_split import ResidentSplit
from cepheid.runners.stream.state import StreamStep


def resident_kind(step: StreamStep, schema: pa.Schema) -> type[Resident]:
    """What keeps the state of a step."""
    if len(step.plans) == 1 and not step.plans[0].partition and can_keep_runs(step.plans[0], schema):
        return ResidentRuns  # all that the window holds would be laid side by side at each possible end of a match
    refused = [refusal(plan, schema) is not None for plan in step.plans]
    return Resident if all(refused) else ResidentSplit if any(refused) else ResidentIncremental


def how_it_is_searched(resident: Resident, plan: Plan) -> list[str]:
    """Says whether a call goes on where the last one stopped, or which events it searches again and why."""
    if isinstance(resident, ResidentSplit):
        goes_on = refusal(plan, resident.schema) is None
    else:
        goes_on = isinstance(resident, ResidentIncremental)
    if goes_on:
        return ["incremental: a call searches the keys for which an event came that may end a match"]
    if isinstance(resident, ResidentRuns):
        return ["incremental: partial matches stay from one call to the next"]
    why = refusal(plan, resident.schema) or "another query of the same call is searched that way"
    return [f"replayed: a call that may end a match searches again {retained_text(plan)}", f"because {why}"]
