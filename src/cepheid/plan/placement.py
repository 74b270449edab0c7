"""Where conditions can be tested: on which edge (SASE+ section 3.2, step 2), and negation at which place."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch, Conjunct, Negation, Phase
from cepheid.language.normal import negation_normal_form


def begin_conjuncts(bound: BoundQuery, place: int) -> tuple[Conjunct, ...]:
    """Tested on the first (or only) event of a component."""
    variable = bound.positives[place].variable
    return tuple(
        c
        for c in bound.conjuncts
        if c.place == place and (c.phase is Phase.BEGIN or (c.phase is Phase.TAKE and variable not in c.from_second))
    )


def take_conjuncts(bound: BoundQuery, place: int) -> tuple[Conjunct, ...]:
    """Tested on every further event of a Kleene group."""
    return tuple(c for c in bound.conjuncts if c.place == place and c.phase is Phase.TAKE)


def close_conjuncts(bound: BoundQuery, place: int) -> tuple[Conjunct, ...]:
    """Tested on a Kleene group as a whole, before anything may follow it."""
    return tuple(c for c in bound.conjuncts if c.place == place and c.phase is Phase.CLOSE)


def negation_conjuncts(bound: BoundQuery, negation: Negation, branch: Branch) -> tuple[Conjunct, ...]:
    """What an event of a negated component must pass to kill a match."""
    components = [*bound.positives, *(other.component for other in bound.negations)]
    return tuple(place_conjunct(part, components) for part in branch.passed_by(negation.component.variable))


def decisive_branches(bound: BoundQuery) -> tuple[Branch, ...]:
    """The disjuncts that negation is judged by, without the conditions that no negated component is concerned with.

    Those stand on edges as clauses of the conjunctive form, which is not the same for Kleene groups: a clause such as
    `a.x = 1 OR a.y = 2` may hold for one element by its x and for another by its y, a disjunct holds for all of them.
    """
    if not bound.negations or bound.where is None:
        return (Branch((), ()),)
    negated = {negation.component.variable for negation in bound.negations}
    apart: set[s.Expression] = set()
    concerned: set[s.Expression] = set()
    for part in _operands(negation_normal_form(bound.where), s.And):
        tests = any(isinstance(node, s.Equivalence) for node in s.walk(part))
        literals = concerned if tests or s.variables_of(part) & negated else apart
        literals.update(_operands(part, s.And, s.Or))
    reduced = (
        Branch(tuple(each for each in branch.positive if each not in apart or each in concerned), branch.negative)
        for branch in bound.branches
    )
    return tuple(dict.fromkeys(reduced))


def _operands(node: s.Expression, *kinds: type[s.Expression]) -> Iterator[s.Expression]:
    if isinstance(node, kinds):
        for inner in s.children(node):
            yield from _operands(inner, *kinds)
    else:
        yield node


def judged_by_branch(branches: tuple[Branch, ...]) -> bool:
    """Does it take a complete match to say which disjuncts of the condition it satisfies?"""
    return len(branches) > 1 or bool(branches[0].positive)


def judging_place(bound: BoundQuery, negation: Negation, branches: tuple[Branch, ...]) -> int:
    """The place whose first event lets a negated component be judged; past the last one: the complete match.

    Earlier is better, since it ends runs. It needs both neighbours, every component that the conditions mention
    (Kleene groups complete), and no ANY: there a later event may still say what an absent attribute should be.
    """
    end = len(bound.positives)
    if negation.after is None or negation.before is None or bound.may_lack:
        return end
    if judged_by_branch(branches):
        return end
    place = negation.before
    linked = linked_negations(bound, branches[0])
    for other in (
        each for each in bound.negations if linked[each.component.variable] == linked[negation.component.variable]
    ):
        if other.after is None or other.before is None:
            return end
        place = max(place, other.before)
        conjuncts = negation_conjuncts(bound, other, branches[0])
        for name in {name for c in conjuncts for name in c.variables} & set(bound.place_of):
            mentioned = bound.place_of[name]
            place = max(place, mentioned + 1 if bound.positives[mentioned].kleene else mentioned)
    return place


def linked_negations(bound: BoundQuery, branch: Branch) -> dict[str, int]:
    """For each negated component the first of those that it kills together with: conditions mention them both."""
    variables = [negation.component.variable for negation in bound.negations]
    return {name: variables.index(group[0]) for group in branch.killed_together(variables) for name in group}
