"""A query at imprecise times, ready for a kernel: what is asked for, its program, and room to build matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import Prepared
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.partial_matches import Nodes, new_nodes
from cepheid.engine.limits import MAX_BRANCHES
from cepheid.engine.program.compile import CompiledProgram, compile_program
from cepheid.engine.program.placing import Order
from cepheid.engine.program.tables import Program
from cepheid.engine.scoring.match_score import MatchScore, worth_of
from cepheid.errors import EngineError
from cepheid.plan.physical import Plan


@dataclass(frozen=True)
class IntervalQuery:
    """What a kernel needs besides events."""

    match_score: MatchScore
    program: Program
    columns: Columns
    predicate: Callable[..., Any]
    nodes: Nodes


@dataclass(frozen=True)
class Conditions:
    """The conditions of a query, placed for some order of evaluation."""

    program: Program
    columns: Columns
    predicate: Callable[..., Any]


def compile_conditions(plan: Plan, events: EventTable, prepared: Prepared, order: Order) -> Conditions:
    """The conditions as a search tests them that fills places in some order."""
    compiled = compile_program(plan.bound, order=order)
    return Conditions(compiled.program, _columns(compiled, plan, events, prepared), compiled.predicate.call)


def compile_query(plan: Plan, events: EventTable, prepared: Prepared) -> IntervalQuery:
    """The query in the order of the pattern, which is how matches are judged whatever the search."""
    codes = prepared.timed.compared.shape[0]
    match_score = worth_of(plan, prepared.step, codes)
    compiled = compile_program(plan.bound, variants=match_score.scored)
    program = compiled.program
    if program.judged and program.branches > MAX_BRANCHES:
        problem = f"the condition has {program.branches} alternatives; with negation and imprecise time"
        raise EngineError(f"{problem} at most {MAX_BRANCHES} are supported", hint="use fewer ORs")
    scratch = new_scratch(compiled.slots, compiled.whole, compiled.number, codes)
    return IntervalQuery(
        match_score,
        program,
        _columns(compiled, plan, events, prepared),
        compiled.predicate.call,
        new_nodes(max(8, program.places), compiled.slots, compiled.whole, compiled.number, codes, scratch),
    )


def _columns(compiled: CompiledProgram, plan: Plan, events: EventTable, prepared: Prepared) -> Columns:
    return fill(compiled.layout, events.table, prepared.rows, plan.bound.schema)
