"""Every query printed in the five papers parses, is sound, binds, prints back, and has normal forms."""

import re

import pytest

from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery, BoundWindow, Phase
from cepheid.language.check import check
from cepheid.language.normal import conjuncts, disjuncts
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import parse
from queries.corpus import FOLDER, QUERIES, PrintedQuery

every_query = pytest.mark.parametrize("printed", QUERIES.values(), ids=QUERIES)


def checked(text: str) -> s.QuerySyntax:
    return check(parse(text), text)


def bound(name: str) -> BoundQuery:
    printed = QUERIES[name]
    return bind(checked(printed.text), printed.schema, printed.parameters, printed.text)


def test_every_file_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.cepheid")} == set(QUERIES)


@every_query
def test_its_comment_names_paper_and_section(printed: PrintedQuery) -> None:
    assert re.match(r"/\* (AYAC|LAZY|SASE\+?|TIME), (section|figure) \d", printed.text)


@every_query
def test_it_prints_back(printed: PrintedQuery) -> None:
    query = checked(printed.text)
    text = to_text(query)
    again = checked(text)
    assert again == query
    assert repr(again) == repr(query)  # 1 == 1.0 == True, but they do not mean the same
    assert to_text(again) == text


@every_query
def test_it_binds(printed: PrintedQuery) -> None:
    query = bound(printed.name)
    assert query.positives
    assert query.attributes() <= set(printed.schema.names)


@every_query
def test_its_normal_forms_are_made_of_simple_conditions(printed: PrintedQuery) -> None:
    where = bound(printed.name).syntax.where
    for clause in conjuncts(where):
        parts = clause.operands if isinstance(clause, s.Or) else (clause,)
        assert not any(isinstance(part, s.And | s.Or) for part in parts)
    for branch in disjuncts(where):
        assert not any(isinstance(part, s.And | s.Or) for part in branch)


# What the papers say of their queries, beyond being read at all.


def test_a_filter_query_is_about_its_only_event() -> None:
    query = bound("sase-q1-shelf-readings")
    assert not query.syntax.sequence
    assert [conjunct.variables for conjunct in query.conjuncts] == [frozenset({"event"})] * 2


def test_shoplifting_without_the_shorthand_says_the_same_of_the_negated_event() -> None:
    query = bound("sase-q2-shoplifting")
    assert [component.variable for component in query.positives] == ["x", "z"]
    (negation,) = query.negations
    assert (negation.after, negation.before) == (0, 1)
    (branch,) = query.branches
    assert len(branch.passed_by("y")) == 1
    assert branch.positive == ()  # x.id = z.id is tested as a clause of its own
    assert len(query.conjuncts) == 1
    assert query.window == BoundWindow(12 * 3600 * 1_000_000)


def test_the_hyphen_at_a_line_break_belongs_to_the_type() -> None:
    negated = bound("sase-misplaced-inventory").negations[0].component
    assert negated.types == ("COUNTER-READING", "SHELF-READING")
    assert negated.any


def test_equivalence_tests_may_fix_their_value() -> None:
    query = bound("sase-medicine-overdose")
    assert query.equivalence == ("name", "medicine")
    assert query.fixed == (("name", s.Literal("John")), ("medicine", s.Literal("Antibiotics")))


def test_the_wildcard_in_a_sequence_needs_no_variable() -> None:
    assert [component.variable for component in bound("sase-any-in-sequence").components] == ["A₁", "A₂₁_or_A₂₂", "A₃"]


def test_where_negation_stands_decides_its_interval() -> None:
    places = {
        name: bound(f"sase-negation-{name}").negations[0] for name in ("at-the-start", "in-the-middle", "at-the-end")
    }
    assert {name: (place.after, place.before) for name, place in places.items()} == {
        "at-the-start": (None, 0),
        "in-the-middle": (0, 1),
        "at-the-end": (0, None),
    }
    assert bound("sase-negation-at-the-end").postponed


def test_contamination_is_tested_at_the_first_and_at_every_further_shipment() -> None:
    moments = [(conjunct.place, conjunct.phase) for conjunct in bound("sase-plus-q2-contamination").conjuncts]
    assert moments == [(0, Phase.BEGIN), (1, Phase.BEGIN), (1, Phase.TAKE)]


def test_the_running_average_is_tested_from_the_second_event_on() -> None:
    query = bound("sase-plus-q3-stock-trend")
    assert query.strategy is s.Strategy.SKIP_TILL_NEXT
    assert [(c.place, c.phase, sorted(c.from_second)) for c in query.conjuncts] == [
        (0, Phase.BEGIN, []),
        (0, Phase.TAKE, ["a"]),
        (1, Phase.BEGIN, []),
    ]


def test_table_1_means_all_events_before_by_one_before_inside_an_aggregate() -> None:
    text = QUERIES["sase-plus-p3-max-s2"].text
    assert "max(a[i-1].price)" in text
    assert "max(a[..i-1].price)" in to_text(checked(text))


def test_table_1_names_strategies_without_variables() -> None:
    query = checked(QUERIES["sase-plus-p1-s2"].text)
    assert query.selection == s.Selection(s.Strategy.PARTITION_CONTIGUITY, ("a", "b"))
    assert query.within == s.Window(500, "events")


def test_free_names_are_parameters() -> None:
    query = bound("lazy-correlated-stocks")
    assert query.window == BoundWindow(20 * 60 * 1_000_000)
    sets = [node for c in query.conjuncts for node in s.walk(c.expression) if isinstance(node, s.Membership)]
    assert [member.values for member in sets] == [
        (s.Literal("JPM"), s.Literal("GS")),
        (s.Literal("MSFT"), s.Literal("IBM")),
    ]


def test_a_strategy_among_the_conditions_is_taken_out_of_them() -> None:
    query = bound("time-q1-cluster-monitoring")
    assert query.strategy is s.Strategy.SKIP_TILL_ANY
    assert len(query.conjuncts) == 5
    assert [name for name, _ in query.returns or ()] == ["a", "b", "c"]


def test_missing_events_have_defaults() -> None:
    query = bound("ayac-shoplifting")
    assert [component.types for component in query.components] == [None, None, None]
    assert query.syntax.threshold == 0.05
    defaults = [n for n in s.walk(query.syntax.where or s.Literal(True)) if isinstance(n, s.Attribute) and n.default]
    assert [node.of.variable for node in defaults] == ["x", "x"]
