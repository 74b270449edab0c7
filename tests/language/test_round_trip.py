"""Whatever tree is printed, its text parses back to the same tree."""

from decimal import Decimal

import pytest
from hypothesis import example, given

from cepheid.language import syntax as s
from cepheid.language.printing import expression_text, name_text, to_text
from cepheid.language.sase.parse import parse
from strategies.syntax import expressions, names, query_trees


def parsed(expression: str) -> s.Expression | None:
    return parse(f"PATTERN SEQ(`no such` `variable`) WHERE {expression}").where


@given(expressions())
@example(s.Negative(s.Negative(s.Name("x"))))
@example(s.Arithmetic("-", s.Literal(1), s.Literal(-1)))
@example(s.Arithmetic("%", s.Literal(7), s.Name("x")))
@example(s.Arithmetic("%", s.Literal(Decimal(1)), s.Name("x")))
@example(s.Arithmetic("-", s.Literal(Decimal(-7)), s.Literal(Decimal(0))))
@example(s.Attribute(s.Reference("a", s.Element.LAST), "LEN"))
@example(s.Membership(s.Name("x"), s.Name("Hi-Tech")))
@example(s.Equivalence((("user.id", s.Literal(2)),)))
def test_expressions(node: s.Expression) -> None:
    again = parsed(f"({expression_text(node)})")
    assert again == node
    assert repr(again) == repr(node)


@given(query_trees())
@example(s.QuerySyntax((s.Component("x"), s.Component("y", kleene=True)), where=s.Name("x")))
@example(s.QuerySyntax((s.Component("within", ("where",)),), sequence=False, within=s.Window(s.Name("return"))))
def test_queries(query: s.QuerySyntax) -> None:
    text = to_text(query)
    again = parse(text)
    assert again == query
    assert repr(again) == repr(query)
    assert to_text(again) == text


@pytest.mark.parametrize("strategy", list(s.Strategy))
def test_a_strategy_over_all_components_does_not_turn_types_into_variables(strategy: s.Strategy) -> None:
    query = parse(f"PATTERN SEQ(A a, b, * c) WHERE {strategy.value} {{ a.x = 1 }}")
    assert [component.types for component in query.components] == [("A",), ("b",), None]
    assert parse(to_text(query)) == query


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("SEQ((B b)+, C c)", "SEQ(B+ b[], C c)"),
        ("(B b)+", "B+ b[]"),
        ("SEQ(A a, (B b){2}, (C c)*)", "SEQ(A a, B{2} b[], C* c[])"),
    ],
)
def test_a_group_of_one_component_is_that_component_with_the_quantifier(written: str, canonical: str) -> None:
    assert parse(f"PATTERN {written}") == parse(f"PATTERN {canonical}")


@given(names)
def test_names(name: str) -> None:
    assert parsed(name_text(name)) == s.Name(name)
    attribute = s.Attribute(s.Reference("a"), name)
    assert parsed(expression_text(attribute)) == attribute


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("a.x≠1 ∧ ¬(b.x ≤ 2) ∨ a.y ∉ {1,2}", "a.x != 1 AND NOT b.x <= 2 OR a.y NOT IN (1, 2)"),
        ("a.x <> 1 && a.x == 2 || !(a.x ≥ 3)", "a.x != 1 AND a.x = 2 OR NOT a.x >= 3"),
        ("((a.x)) + (1 + 2) > -(1)", "a.x + (1 + 2) > -1"),
        ("- -a.x = +1 - -1", "-(-a.x) = 1 - -1"),
        ("a.x > 80%*b.x and a.x %500==0 and 7%2 = 1", "a.x > 0.8 * b.x AND a.x % 500 = 0 AND 7 % 2 = 1"),
        ('a.s = "it\'s" AND a.s = \'say "it"\'', "a.s = 'it''s' AND a.s = 'say \"it\"'"),
        ("not a.x in [1] and a.x not in Hi-Tech", "NOT a.x IN (1) AND a.x NOT IN Hi-Tech"),
        ("b[ i ].from = b[ i - 1 ].to", "b[i].from = b[i-1].to"),
        ("avg(a[i-1].x) > avg(a[…i-1].x)", "avg(a[..i-1].x) > avg(a[..i-1].x)"),
        ("b.x < a[a.len].x AND a.LEN > 2 AND a.`len` > 2", "b.x < a[a.LEN].x AND a.LEN > 2 AND a.`len` > 2"),
        ("1_000 < 1e3 AND .5 < 1.50", "1000 < 1000.0 AND 0.5 < 1.50"),
        ("a.x /* one */ > -- two\n 3", "a.x > 3"),
        ("{ a.x > 1, a.y > 2 or a.y < 1 }", "a.x > 1 AND (a.y > 2 OR a.y < 1)"),
    ],
)
def test_spellings(written: str, canonical: str) -> None:
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {written}")
    assert to_text(query) == f"PATTERN SEQ(A a, B b)\nWHERE {canonical}"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("event seq(A a, !B b, ~(C c), D d) within 1 hr", "PATTERN SEQ(A a, !(B b), !(C c), D d)\nWITHIN 1 hour"),
        ("SEQUENCE(x, !y) WHERE x.a = y.a WITHIN 3", "PATTERN SEQ(x, !(y))\nWHERE x.a = y.a\nWITHIN 3"),
        ("SEQUENCE(x, !y) WITHIN 3;", "PATTERN SEQ(x, !(y))\nWITHIN 3"),
        ("PATTERN(STOCK+ a[ ], STOCK b)", "PATTERN SEQ(STOCK+ a[], STOCK b)"),
        ("pattern A+ a, B within 2 event", "PATTERN SEQ(A+ a[], B)\nWITHIN 2 EVENTS"),
        ("PATTERN (SHELF- READING)", "PATTERN SHELF-READING"),
        ("PATTERN 'a type' x OUTPUT non overlapping", "PATTERN `a type` x\nOUTPUT NON-OVERLAP"),
        ("PATTERN A a OUTPUT all RETURN a.x y", "PATTERN A a\nRETURN a.x AS y"),
        ("PATTERN A a THRESHOLD 5% CONFIDENCE 1", "PATTERN A a\nTHRESHOLD 0.05\nCONFIDENCE 1.0"),
        ("PATTERN A a OUTPUT TOP 3", "PATTERN A a\nOUTPUT TOP 3 BY CONFIDENCE"),
        ("SEQ(A a) WHERE partition-contiguity {}", "PATTERN SEQ(A a)\nWHERE partition_contiguity(a) { }"),
        (
            "SEQ(A+ a[]) WHERE a.x > 1 AND Skip-Till-Any-Match(a)",
            "PATTERN SEQ(A+ a[])\nWHERE skip_till_any_match(a[]) { a.x > 1 }",
        ),
    ],
)
def test_clauses(written: str, canonical: str) -> None:
    assert to_text(parse(written)) == canonical
    assert parse(canonical) == parse(written)
