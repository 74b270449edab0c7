"""How a streaming step keeps its state in memory: the one place that says when searches go on where they stopped."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.search.incremental_runs import can_keep_runs
from cepheid.runners.stream.incremental_pushed import ResidentIncremental, is_incremental
from cepheid.runners.stream.incremental_runs import ResidentRuns
from cepheid.runners.stream.incremental_shard import Resident
from cepheid.runners.stream.state import StreamStep


def resident_kind(step: StreamStep, schema: pa.Schema) -> type[Resident]:
    """What keeps the state of a step."""
    if len(step.plans) == 1 and not step.plans[0].partition and can_keep_runs(step.plans[0], schema):
        return ResidentRuns  # all that the window holds would be laid side by side at each possible end of a match
    return ResidentIncremental if is_incremental(step, schema) else Resident
