"""Queries that may have Kleene plus, compiled for the kernels that build matches from nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cepheid.engine.abilities import MAX_BRANCHES
from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import Prepared
from cepheid.engine.program.compile import compile_program
from cepheid.engine.program.tables import Program
from cepheid.engine.search.intervals.query import Shape, shape_of, too_many_branches
from cepheid.engine.kernels.partial_matches import Nodes, new_nodes
from cepheid.engine.search.runs.conditions import new_scratch
from cepheid.plan.physical import Plan


@dataclass(frozen=True)
class Grouped:
    """What a kernel needs besides events."""

    shape: Shape
    program: Program
    columns: Columns
    predicate: Callable[..., Any]
    nodes: Nodes


def compile_grouped(plan: Plan, events: EventTable, prepared: Prepared) -> Grouped:
    """The conditions of a query as the run engine compiles them, and room for nodes."""
    compiled = compile_program(plan.bound)
    program = compiled.program
    if program.judged and program.branches > MAX_BRANCHES:
        raise too_many_branches(program.branches)
    codes = prepared.timed.compared.shape[0]
    scratch = new_scratch(compiled.slots, compiled.whole, compiled.number, codes)
    return Grouped(
        shape_of(plan, range(len(plan.bound.positives)), True, prepared.step, codes, compiled.predicate, ()),
        program,
        fill(compiled.layout, events.table, prepared.rows, plan.bound.schema),
        compiled.predicate.call,
        new_nodes(8, compiled.slots, compiled.whole, compiled.number, codes, scratch),
    )
