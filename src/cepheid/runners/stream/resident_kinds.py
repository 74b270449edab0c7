"""How a streaming step keeps its state in memory: the one place that says when stacks or runs stay between steps."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.search.kept_runs import can_keep_runs
from cepheid.engine.search.kept_scans import can_keep_scans
from cepheid.engine.search.kept_stacks import can_keep_stacks
from cepheid.runners.stream.resident import Resident
from cepheid.runners.stream.resident_runs import ResidentRuns
from cepheid.runners.stream.resident_stacks import ResidentScans, ResidentStacks
from cepheid.runners.stream.state import Step


def resident_kind(step: Step, schema: pa.Schema) -> type[Resident]:
    """What keeps the state of a step: of one query, if it allows that, what its engine made of the events stays."""
    if len(step.plans) == 1:
        plan = step.plans[0]
        if can_keep_runs(plan, schema):
            return ResidentRuns
        if step.keys and can_keep_stacks(plan, schema):
            return ResidentStacks
        if step.keys and can_keep_scans(plan, schema):
            return ResidentScans
    return Resident
