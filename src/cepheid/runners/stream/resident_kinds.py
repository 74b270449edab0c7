"""How a streaming step keeps its state in memory: the one place that says when stacks or runs stay between steps."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.search.kept_runs import can_keep_runs
from cepheid.engine.search.kept_stacks import can_keep_stacks
from cepheid.runners.stream.resident import Resident
from cepheid.runners.stream.resident_runs import ResidentRuns
from cepheid.runners.stream.resident_stacks import ResidentStacks
from cepheid.runners.stream.state import Step


def resident_kind(step: Step, schema: pa.Schema) -> type[Resident]:
    """What keeps the state of a step: of one query, if it allows that, what its engine made of the events stays."""
    if len(step.plans) == 1:
        if step.keys and can_keep_stacks(step.plans[0], schema):
            return ResidentStacks
        if can_keep_runs(step.plans[0], schema):
            return ResidentRuns
    return Resident
