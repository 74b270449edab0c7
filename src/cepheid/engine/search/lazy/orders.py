"""Orders of evaluation: which component is filled when, where its events are looked for, and how that reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.engine.data.candidates import Candidates
from cepheid.errors import EngineError
from cepheid.language.bound import BoundQuery
from cepheid.language.printing import expression_text
from cepheid.plan.cost import Work
from cepheid.plan.physical import Plan
from cepheid.plan.statistics import Statistics

START, FINISH = "start", "finish"


def scopes(names: Sequence[str], order: Sequence[int]) -> list[tuple[str, str, str]]:
    """For each take edge its event and its scoping parameters (s, f): from where to where its event is looked for.

    `start` is the beginning of the input buffer; `finish` means that events still to come are taken, too. The paper
    (LAZY section 5) takes the latest preceding event in the order of evaluation; the nearest one in the order of the
    sequence, as in its examples, is the tighter and right one: for b, a, c it gives c the scope (b, finish).

    >>> scopes("abc", (0, 1, 2))
    [('a', 'start', 'finish'), ('b', 'a', 'finish'), ('c', 'b', 'finish')]
    >>> scopes("abc", (2, 0, 1))
    [('c', 'start', 'finish'), ('a', 'start', 'c'), ('b', 'a', 'c')]
    """
    edges = []
    for step, place in enumerate(order):
        earlier = [other for other in order[:step] if other < place]
        later = [other for other in order[:step] if other > place]
        begin = names[max(earlier)] if earlier else START
        end = names[min(later)] if later else FINISH
        edges.append((names[place], begin, end))
    return edges


def chain_order(plan: Plan, prepared: Candidates) -> tuple[int, ...]:
    """The plan's order, or one from the candidates at hand: rarest first (LAZY section 5), conditions considered."""
    bound = plan.bound
    places = range(len(bound.positives))
    if plan.order is not None:
        if sorted(plan.order) != list(places):
            raise EngineError(f"order={plan.order} must hold each of the places 0 to {len(bound.positives) - 1} once")
        return tuple(plan.order)
    counts = tuple(float(np.count_nonzero(prepared.mask & (1 << place))) for place in places)
    return Work(bound, Statistics(prepared.scanned, per_window=counts)).cheapest_order[0]


def chain_text(plan: Plan) -> str:
    """The chain automaton (LAZY section 5, figure 5): one state per component, in the order of evaluation."""
    bound = plan.bound
    if plan.order is None:
        return "a chain in the order of what the events hold, rarest first"
    names = [component.variable for component in bound.positives]
    lines = []
    for step, (name, begin, end) in enumerate(scopes(names, plan.order)):
        target = "F" if step + 1 == len(names) else f"q{step + 2}"
        known = {names[place] for place in plan.order[: step + 1]}
        lines.append(f"q{step + 1} -> {target}  take({name}) from ({begin}, {end}){_conditions(bound, known, name)}")
        stored = [names[place] for place in plan.order[step + 1 :]]
        ignored = [names[place] for place in plan.order[:step]]
        loops = [f"{verb} {', '.join(some)}" for verb, some in (("store", stored), ("ignore", ignored)) if some]
        if loops:
            lines.append(f"q{step + 1} -> q{step + 1}  {'; '.join(loops)}")
    return "\n".join(lines)


def tree_text(plan: Plan) -> str:
    """The tree automaton (LAZY section 6): the rules by which states come to be, since only reached ones exist."""
    names = [component.variable for component in plan.bound.positives]
    lines = [
        f"q() is the initial state; q(...) names the components filled so far, out of {', '.join(names)}",
        "store and wait until every open component has a candidate in its scope",
        "then take the one that leaves the fewest partial matches per candidate looked at, and move to its state",
        "F when all are filled; a state exists from when it is first reached",
    ]
    lines += [f"take({name}){_conditions(plan.bound, set(names), name)}" for name in names]
    return "\n".join(lines)


def _conditions(bound: BoundQuery, known: set[str], name: str) -> str:
    tested = [
        expression_text(conjunct.expression)
        for conjunct in bound.conjuncts
        if name in conjunct.variables and conjunct.variables <= known
    ]
    return f" if {' and '.join(tested)}" if tested else ""
