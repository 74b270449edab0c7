"""From a bound query to its automaton: by its places if it is a plain sequence (NFA^b of SASE+ section 3.2), else by
the states of its pattern (`plan/states.py`).

A single component of a sequence is one state, which awaits its event. A Kleene component is a pair: `a[1]` awaits the
first event of the group, `a[i]` the further ones, and proceeds when the group closes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.kept import kept_with_query
from cepheid.plan import automaton as a
from cepheid.plan.ends import end_of, is_end, with_ends
from cepheid.plan.placement import begin_conjuncts, close_conjuncts, take_conjuncts
from cepheid.plan.states import UnsuitableError, lower_expression


@kept_with_query
def automaton_of(bound: BoundQuery) -> a.QueryAutomaton | str:
    """The automaton of a query, kept as long as the query is; or why it has none."""
    try:
        return lower_sequence(bound) if bound.is_linear else lower_expression(with_ends(bound))
    except UnsuitableError as error:
        return str(error)


def lower_sequence(bound: BoundQuery) -> a.QueryAutomaton:
    """The automaton of a plain sequence."""
    ends, parted = dict(bound.untils), bool(bound.equivalence)
    names = [name for component in bound.positives for name in _names(component.variable, component.kleene)]
    states: list[a.QueryState] = []
    for place, component in enumerate(bound.positives):
        number, variable = len(states), component.variable
        begun_by, taken_by = bound.reached_by(variable, False), bound.reached_by(variable, True)
        begin: a.QueryEdge = a.Edge(
            a.Action.TAKE, number + 1, _tests(begin_conjuncts(bound, place), variable), variable
        )
        if place > 0:
            begin = replace(begin, reached_by=begun_by)
        waits = a.ignores(number, begun_by, parted) if place > 0 else ()
        states.append(a.State(names[number], (begin, *waits)))
        if component.kleene:
            forbids = ((end_of(variable), (a.Test(ends[variable]),)),) if variable in ends else ()
            guard = _tests(take_conjuncts(bound, place), variable)
            take: a.QueryEdge = a.Edge(a.Action.TAKE, number + 1, guard, variable, forbids)
            take = replace(take, first=False, further=True, reached_by=taken_by)
            close: a.QueryEdge = a.Edge(a.Action.PROCEED, number + 2, _tests(close_conjuncts(bound, place)))
            states.append(a.State(names[number + 1], (take, *a.ignores(number + 1, taken_by, parted), close)))
    return a.Automaton((*states, a.State("F", kind=a.Kind.FINAL)), 0)


def _names(variable: str, kleene: bool) -> tuple[str, ...]:
    return (f"{variable}[1]", f"{variable}[i]") if kleene else (variable,)


def _tests(conjuncts: Iterable[Conjunct], at_hand: str = "") -> a.Tests:
    return tuple(a.Test(each.expression, tuple(sorted(each.every - {at_hand}))) for each in conjuncts)


def every_beginning(automaton: a.QueryAutomaton, *, refused: bool) -> a.QueryAutomaton:
    """The same states, each of which a run may end in: what runs have taken on the way, whatever comes of it.

    `refused`: also those that meet what must not happen, since negation takes no part in what a run takes.
    """
    (final,) = (number for number, state in enumerate(automaton.states) if state.kind is a.Kind.FINAL)

    def ends_anywhere(number: int, state: a.QueryState) -> a.QueryState:
        edges = tuple(_unrefused(edge) if refused else edge for edge in state.takes)
        return replace(state, edges=edges if number in (automaton.start, final) else (*edges, a.ends_match(final)))

    states = tuple(ends_anywhere(number, state) for number, state in enumerate(automaton.states))
    return a.Automaton(states, automaton.start)


def _unrefused(edge: a.QueryEdge) -> a.QueryEdge:
    return replace(edge, forbids=tuple((name, tests) for name, tests in edge.forbids if is_end(name)))
