"""Conditions when events may be missing: one compiled variant for each choice of missing events.

A condition that mentions a missing event uses its default, or is vacuous without one (AYAC section 2.2). Since a
condition mentions few events, all its variants are compiled, and the kernel picks one by a small bit mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.candidates import own_conditions
from cepheid.engine.values.cases import any_variables
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.printing import expression_text

MOST_PLACES = 6  # events that one condition may mention
POSITIVE = -1  # owner of a condition that concerns no negated component
NO_BRANCH = -1  # a clause of the conjunctive form, tested as early as possible
TRUE = s.Literal(True)


@dataclass(frozen=True)
class Clause:
    """A condition with its place in the search: backwards, it is decided once the search has come down to `known`."""

    expression: s.Expression
    places: tuple[int, ...]  # positive components it mentions, defaults included
    owner: int  # the negated component it concerns, or POSITIVE
    branch: int  # the disjunct it belongs to, or NO_BRANCH
    every: int  # the Kleene component each of whose events is meant, or -1
    pairs: bool  # does it compare each event of that group with the one before?
    known: int  # twice the place from which all is decided; odd: once that place's group is left


class Slots:
    """Where the kernel keeps chosen events: per positive component first, last, current and previous; then negated."""

    FIRST, LAST, CURRENT, PREVIOUS = range(4)

    def __init__(self, bound: BoundQuery) -> None:
        self.kleene = {component.variable: component.kleene for component in bound.positives}
        self.places = bound.place_of
        base = 4 * len(bound.positives)
        self.negated = {n.component.variable: base + j for j, n in enumerate(bound.negations)}
        self.count = base + len(bound.negations)

    def of(self, reference: s.Reference) -> str:
        """The source of a reference: an element of the kernel's `at`."""
        if reference.variable in self.negated:
            return f"at[{self.negated[reference.variable]}]"
        base = 4 * self.places[reference.variable]
        if not self.kleene[reference.variable]:
            return f"at[{base}]"
        kind = {
            s.Element.FIRST: self.FIRST,
            s.Element.LAST: self.LAST,
            s.Element.PREVIOUS: self.PREVIOUS,
        }.get(reference.element, self.CURRENT)
        return f"at[{base + kind}]"


@dataclass(frozen=True)
class CompiledClauses:
    """The clauses as arrays, and the function that tests them."""

    clauses: tuple[Clause, ...]
    predicate: Predicate
    base: npt.NDArray[np.int64]  # the first case of each clause; its variants follow
    places: npt.NDArray[np.int64]  # per clause, the places whose bits choose the variant, filled up with -1
    tested: npt.NDArray[np.int64]  # per case


def clauses_of(bound: BoundQuery) -> tuple[Clause, ...]:
    """Every condition that the search must test itself."""
    found: list[Clause] = []
    for conjunct in bound.conjuncts:
        alone = conjunct.own and len(conjunct.variables) == 1
        component = bound.positives[conjunct.place]
        if alone and (not component.kleene or component.variable in conjunct.every) and not _has_default(conjunct):
            continue  # decided before the search, for whole columns
        found.append(_clause(bound, conjunct.expression, POSITIVE, NO_BRANCH))
    several = len(bound.branches) > 1
    for number, branch in enumerate(bound.branches):
        if several:
            found += [_clause(bound, part, POSITIVE, number) for part in branch.positive]
        for index, negation in enumerate(bound.negations):
            own = [] if several else own_conditions(bound, negation.component)
            parts = branch.passed_by(negation.component.variable)
            found += [_clause(bound, part, index, number) for part in parts if part not in own]
    return tuple(found)


def _has_default(conjunct: Conjunct) -> bool:
    """Does it say something of an event even where that is missing?"""
    nodes = s.walk(conjunct.expression)
    return any(isinstance(node, s.Attribute) and node.default is not None for node in nodes)


def refusal(bound: BoundQuery) -> str | None:
    """Why the conditions cannot be tested while events may be missing, or None."""
    try:
        clauses_of(bound)
    except EngineError as error:
        return str(error)
    return None


def _clause(bound: BoundQuery, expression: s.Expression, owner: int, branch: int) -> Clause:
    negated = [negation.component for negation in bound.negations]
    places = bound.place_of
    mentioned = {node.variable for node in s.walk(expression) if isinstance(node, s.Reference | s.Length)}
    where = tuple(sorted(places[name] for name in mentioned if name in places))
    text = expression_text(expression)
    if len(where) > MOST_PLACES:
        raise EngineError(f"'{text}' mentions more than {MOST_PLACES} components")
    for node in s.walk(expression):
        grouped = isinstance(node, s.Call) and node.function.lower() in AGGREGATES
        if grouped or isinstance(node, s.Length):
            raise EngineError(f"it keeps no aggregates, as in '{text}', while events may be missing")
    conjunct = place_conjunct(expression, [*bound.positives, *negated])
    if len(conjunct.every) > 1:
        raise EngineError(f"'{text}' compares every event of two Kleene groups")
    every = places[next(iter(conjunct.every))] if conjunct.every else -1
    elements = {node.element for node in s.walk(expression) if isinstance(node, s.Reference)}
    pairs = s.Element.PREVIOUS in elements
    if conjunct.from_second and not pairs:
        # a[i] against a[1]: the first event has nothing to be compared with, so it counts as its own pair partner.
        pairs = True
    lowest = min(where, default=len(bound.positives))
    closed = lowest < len(bound.positives) and bound.positives[lowest].kleene
    return Clause(expression, where, owner, branch, every, pairs, 2 * lowest - (1 if closed else 0))


def compile_clauses(bound: BoundQuery) -> CompiledClauses:
    """Compiles every variant of every clause into one function."""
    clauses = clauses_of(bound)
    slots = Slots(bound)
    names = [component.variable for component in bound.positives]
    cases: list[Case] = []
    base = []
    for clause in clauses:
        base.append(len(cases))
        for seen in product((True, False), repeat=len(clause.places)):
            # Bit t of the variant says that places[t] is missing; product counts the last position fastest.
            absent = frozenset(names[p] for p, there in zip(reversed(clause.places), seen, strict=True) if not there)
            variant = without(clause.expression, absent)
            cases.append(Case(() if variant == TRUE else (variant,), slots.of))
    predicate = compile_cases(cases, bound.schema, any_variables(bound))
    places = np.full((len(clauses), MOST_PLACES), -1, np.int64)
    for row, clause in enumerate(clauses):
        places[row, : len(clause.places)] = clause.places
    return CompiledClauses(
        clauses, predicate, np.array(base, np.int64), places, np.array([*predicate.cases, False], np.int64)
    )


def without(node: s.Expression, missing: frozenset[str]) -> s.Expression:
    """The condition as it reads when some events are missing; TRUE where nothing is left to test.

    >>> x, z = s.Attribute(s.Reference("x"), "id", s.Attribute(s.Reference("z"), "id")), s.Literal(3)
    >>> without(s.Comparison("=", x, z), frozenset("x"))  # doctest: +ELLIPSIS
    Comparison(operator='=', left=Attribute(of=Reference(variable='z', ...), name='id', ...), right=Literal(value=3))
    >>> without(s.Comparison("=", x, z), frozenset("xz"))
    Literal(value=True)
    """
    match node:
        case s.And(operands=operands):
            parts = [part for part in (without(operand, missing) for operand in operands) if part != TRUE]
            return _joined(s.And, parts, TRUE)
        case s.Or(operands=operands):
            alternatives = [without(operand, missing) for operand in operands]
            return TRUE if TRUE in alternatives else _joined(s.Or, alternatives, TRUE)
    replaced = _with_defaults(node, missing)
    return TRUE if replaced is None else replaced


def _joined(kind: type[s.And] | type[s.Or], parts: Sequence[s.Expression], empty: s.Expression) -> s.Expression:
    return empty if not parts else parts[0] if len(parts) == 1 else kind(tuple(parts))


class _NoDefault(Exception):
    """A missing event without a default."""


def _with_defaults(node: s.Expression, missing: frozenset[str]) -> s.Expression | None:
    def change(inner: s.Expression) -> s.Expression:
        if isinstance(inner, s.Attribute):
            if inner.of.variable not in missing:
                return s.Attribute(inner.of, inner.name, span=inner.span)
            if inner.default is None:
                raise _NoDefault
            return change(inner.default)
        return s.rebuild(inner, change)

    try:
        return change(node)
    except _NoDefault:
        return None
