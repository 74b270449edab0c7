"""A query as the imprecise kernels see it: its shape, and its conditions compiled into one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64S, INT64S
from cepheid.engine.limits import MAX_BRANCHES
from cepheid.engine.values.cases import any_variables, branch_cases, negative_conditions, slots_of
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.engine.worth.confidence.bounds import NO_WINDOW
from cepheid.errors import DataError, EngineError
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

ROUNDING = 1e-9  # a confidence that reaches its threshold but for rounding has reached it
MAX_COST = 1e9  # steps for the confidence of one match


class Shape(NamedTuple):
    """The query, as a kernel sees it. Places are those of the positive components, in the order of the pattern."""

    positives: int
    negatives: int
    window: int  # in instants
    deadline: int  # the window in steps of the time column, if matches are known only when it has passed; else -1
    next: bool  # skip_till_next_match
    shared: bool  # can one event fill several places?
    least: Float64s  # [0]: the smallest confidence to report, which TOP k raises; [1]: where it begins
    best: Float64s  # for TOP k room for the k best confidences of a partition, see `top`
    budget: float  # how many steps the confidence of one match may take
    order: Int64s  # the order in which places are filled
    tested: Int64s  # per case: 1 if there is a condition to test
    # Cases: one for each place, when all before it are filled; one for each step of `order`; then one for each
    # condition; one for each negated component; and for each disjunct its positive part and its negated components.
    mentioned: Int64s  # for each condition the places it mentions, as bits
    neg_after: Int64s  # per negated component: the positive before it, -1 for the window's edge
    neg_before: Int64s  # ... and the positive behind it
    branches: int


SHAPE = types.NamedTuple(
    (
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.boolean,
        FLOAT64S,
        FLOAT64S,
        types.float64,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
    ),
    Shape,
)


@dataclass(frozen=True)
class Compiled:
    """What a query needs besides events."""

    shape: Shape
    predicate: Predicate


def least_confidence(plan: Plan) -> float:
    """The smallest confidence that is reported: the option, or the CONFIDENCE of the query."""
    given = plan.options.get("confidence", plan.bound.syntax.confidence)
    return float(given or 0.0) - ROUNDING


def competing(plan: Plan, compared: int) -> int:
    """How many matches of a partition get to be reported, where that can be told while it is searched; else 0.

    TOP counts by the values of the equivalence test: partitions must be at least as fine, and no attribute be compared.
    """
    output = plan.bound.syntax.output
    if output.mode is not s.OutputMode.TOP or compared > 0 or not set(plan.bound.equivalence) <= set(plan.partition):
        return 0
    return output.count or 1


def compile_query(plan: Plan, order: Sequence[int], shared: bool, step: int, compared: int) -> Compiled:
    """Compiles the conditions of a query without Kleene plus, for places filled in some order.

    `compared` is how many attributes of the equivalence test are compared event by event.
    """
    bound = plan.bound
    count = len(bound.positives)
    slots, slot = slots_of(bound)
    rank = {place: index for index, place in enumerate(order)}
    crossing = [c for c in bound.conjuncts if not (c.own and len(c.variables) == 1)]
    by_place: list[list[s.Expression]] = [[] for _ in range(count)]
    by_step: list[list[s.Expression]] = [[] for _ in range(count)]
    mentioned = []
    for conjunct in crossing:
        places = [slots[name] for name in conjunct.variables] or [0]
        by_place[max(places)].append(conjunct.expression)
        by_step[max(rank[place] for place in places)].append(conjunct.expression)
        mentioned.append(sum(1 << place for place in places))
    cases = [Case(tuple(parts), slot) for parts in (*by_place, *by_step)]
    cases += [Case((conjunct.expression,), slot) for conjunct in crossing]
    cases += [Case(tuple(parts), slot) for parts in negative_conditions(bound)]
    if bound.negations:
        if len(bound.branches) > MAX_BRANCHES:
            raise too_many_branches(len(bound.branches))
        cases += branch_cases(bound, slot)
    predicate = compile_cases(cases, bound.schema, any_variables(bound))
    return Compiled(shape_of(plan, order, shared, step, compared, predicate, mentioned), predicate)


def too_many_branches(number: int) -> EngineError:
    """The error for a condition whose disjuncts are too many to look at all their subsets."""
    told = (
        f"the condition has {number} alternatives; with negation and imprecise time at most {MAX_BRANCHES} are judged"
    )
    return EngineError(told, hint="use fewer ORs")


def window_in_instants(plan: Plan, step: int) -> int:
    """How many instants the window holds, each being some steps of the time column."""
    if plan.bound.window is None:
        return NO_WINDOW
    window, rest = divmod(plan.bound.window.length, step)
    if rest:
        told = f"a window of {plan.bound.window.length} steps is not a whole number of units of {step}"
        raise DataError(told, hint="choose a unit that divides the window")
    return window


def shape_of(
    plan: Plan,
    order: Sequence[int],
    shared: bool,
    step: int,
    compared: int,
    predicate: Predicate,
    mentioned: Sequence[int],
) -> Shape:
    """The shape of a query; `step` is how many steps of the time column one instant is."""
    bound = plan.bound
    deadline = -1
    if bound.postponed:
        assert bound.window is not None
        deadline = bound.window.length
    return Shape(
        len(bound.positives),
        len(bound.negations),
        window_in_instants(plan, step),
        deadline,
        bound.strategy is s.Strategy.SKIP_TILL_NEXT,
        shared,
        np.full(2, least_confidence(plan)),
        np.zeros(competing(plan, compared)),
        float(plan.options.get("max_cost", MAX_COST)),
        np.array(order, np.int64),
        np.array(predicate.cases, np.int64),
        np.array(mentioned, np.int64),
        np.array([-1 if n.after is None else n.after for n in bound.negations], np.int64),
        np.array([-1 if n.before is None else n.before for n in bound.negations], np.int64),
        len(bound.branches) if bound.negations else 1,
    )
