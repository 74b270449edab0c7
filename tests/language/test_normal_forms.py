"""Normal forms mean what the condition means, in SQL's three-valued logic."""

import operator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.normal import conjuncts, disjuncts, negation_normal_form

# Six comparisons of one value with 0, and one attribute that is true or false itself.
ATOMS = [s.Comparison(sign, s.Name("x"), s.Literal(0)) for sign in ("=", "!=", "<", "<=", ">", ">=")]
ATOMS += [s.Comparison("<", s.Name("y"), s.Literal(0)), s.Name("flag"), s.Literal(True), s.Literal(False)]
ATOMS += [
    s.IsNull(s.Name("x")),
    s.Membership(s.Name("y"), (s.Literal(0),)),
    s.Between(s.Name("x"), s.Literal(0), s.Literal(1)),
]
trees = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.builds(s.Not, inner)
        | st.builds(s.And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(s.Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)
World = dict[str, int | bool | None]
WORLDS: list[World] = [
    {"x": x, "y": y, "flag": flag} for x, y, flag in product((-1, 0, 2, None), (-1, 0, None), (True, False, None))
]


SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def truth(node: s.Expression, world: World) -> bool | None:
    """SQL's value of a condition."""
    match node:
        case s.Not(operand=operand):
            inner = truth(operand, world)
            return None if inner is None else not inner
        case s.And(operands=operands):
            values = [truth(operand, world) for operand in operands]
            return False if False in values else None if None in values else True
        case s.Or(operands=operands):
            values = [truth(operand, world) for operand in operands]
            return True if True in values else None if None in values else False
        case s.Literal(value=bool() as value):
            return value
        case s.Name(name=name):
            return world[name]  # type: ignore[return-value]
        case s.IsNull(operand=s.Name(name=name), negated=negated):
            return (world[name] is None) != negated
        case s.Comparison(operator=sign, left=s.Name(name=name)):
            return None if world[name] is None else bool(SIGNS[sign](world[name], 0))
        case s.Membership(operand=s.Name(name=name), negated=negated):
            return None if world[name] is None else (world[name] == 0) != negated
        case s.Between(operand=s.Name(name=name), negated=negated):
            value = world[name]
            return None if value is None else (0 <= value <= 1) != negated
    raise AssertionError(node)


@given(trees)
def test_negation_moves_inward_only(node: s.Expression) -> None:
    normal = negation_normal_form(node)
    negated = [inner.operand for inner in s.walk(normal) if isinstance(inner, s.Not)]
    assert not any(isinstance(operand, s.And | s.Or | s.Not) for operand in negated)
    assert all(truth(normal, world) is truth(node, world) for world in WORLDS)


@given(trees)
def test_conjunctive_form(node: s.Expression) -> None:
    clauses = conjuncts(node)
    assert len(set(clauses)) == len(clauses)
    for world in WORLDS:
        assert all(truth(clause, world) is True for clause in clauses) == (truth(node, world) is True)


@given(trees)
def test_disjunctive_form(node: s.Expression) -> None:
    branches = disjuncts(node)
    for world in WORLDS:
        selected = any(all(truth(part, world) is True for part in branch) for branch in branches)
        assert selected == (truth(node, world) is True)


def test_no_condition_holds_always() -> None:
    assert conjuncts(None) == ()
    assert disjuncts(None) == ((),)


def test_repeated_conditions_count_once() -> None:
    a, b = ATOMS[0], ATOMS[6]
    assert conjuncts(s.And((a, b, a, s.And((b, a))))) == (a, b)
    assert disjuncts(s.And((a, b, a))) == ((a, b),)
    assert disjuncts(s.Or((s.And((a, b)), s.And((b, a))))) == ((a, b),)
