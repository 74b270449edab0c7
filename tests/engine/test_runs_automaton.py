"""The automaton of a query: its states and edges (SASE+ section 3.2), and what each state still needs (5.2.2)."""

from __future__ import annotations

import cepheid
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType, Schema
from cepheid.plan.automaton import Automaton, QueryAutomaton
from cepheid.plan.automaton_text import describe, edge_word, formula_of
from cepheid.plan.lowering import automaton_of

SCHEMA = Schema(
    (
        ("ts", DataType.INT),
        ("type", DataType.STRING),
        ("id", DataType.INT),
        ("x", DataType.INT),
        ("y", DataType.FLOAT),
    ),
    "ts",
    "type",
)


def automaton(text: str) -> tuple[BoundQuery, QueryAutomaton]:
    """A query over a small schema, and its automaton."""
    bound = cepheid.query(text).bind(SCHEMA)
    found = automaton_of(bound)
    assert isinstance(found, Automaton)
    return bound, found


def edges(bound: BoundQuery, found: QueryAutomaton) -> dict[str, dict[str, tuple[str, str]]]:
    """For each state its edges: where they lead, and their formula."""
    return {
        state.name: {
            edge_word(edge): (found.states[edge.target].name, " AND ".join(formula_of(bound, found, number, edge)))
            for edge in state.edges
        }
        for number, state in enumerate(found.states)
    }


def test_states_are_one_for_a_single_event_and_two_for_a_group() -> None:
    bound, found = automaton("PATTERN SEQ(A a, B+ b[], !(C c), A+ d[])")
    assert [state.name for state in found.states] == ["a", "b[1]", "b[i]", "d[1]", "d[i]", "F"]
    assert {name: list(each) for name, each in edges(bound, found).items()} == {
        "a": ["begin"],  # no edges lead to the start state
        "b[1]": ["begin", "ignore"],
        "b[i]": ["take", "ignore", "proceed"],
        "d[1]": ["begin", "ignore"],
        "d[i]": ["take", "ignore", "proceed"],
        "F": [],
    }


def test_conditions_stand_where_all_they_mention_is_known() -> None:
    found = edges(
        *automaton(
            "PATTERN SEQ(A+ a[], B b) WHERE a[1].x > 1 AND a[i].x > a[i-1].x AND a.y > 0.5 "
            "AND avg(a[].x) < 9 AND b.x = a[a.LEN].x WITHIN 9"
        )
    )
    assert found["a[1]"]["begin"] == ("a[i]", "A AND a[1].x > 1 AND a.y > 0.5")
    assert found["a[i]"]["take"] == ("a[i]", "A AND a[i].x > a[i-1].x AND a.y > 0.5 AND within 9")
    assert found["a[i]"]["proceed"] == ("b", "avg(a[].x) < 9 AND the event can begin b")
    assert found["b"]["begin"] == ("F", "B AND b.x = a[a.LEN].x AND within 9")


def test_the_strategy_says_what_is_ignored() -> None:
    text = "PATTERN SEQ(A+ a[], B b) WHERE {}(a[], b) {{ [id] }}"
    ignored = {}
    for strategy in (
        "strict_contiguity",
        "partition_contiguity",
        "skip_till_next_match",
        "skip_till_any_match",
    ):
        found = edges(*automaton(text.format(strategy)))
        ignored[strategy] = (found["a[i]"].get("ignore"), found["b"].get("ignore"))
    assert ignored == {
        "strict_contiguity": (None, None),
        "partition_contiguity": (("a[i]", "NOT same id"), ("b", "NOT same id")),
        "skip_till_next_match": (("a[i]", "NOT take"), ("b", "NOT begin")),
        "skip_till_any_match": (("a[i]", ""), ("b", "")),
    }


def kept(text: str) -> dict[str, set[str]]:
    """What each state keeps, as explain shows it."""
    lines = describe(*automaton(text)).splitlines()
    found: dict[str, set[str]] = {}
    state = ""
    for line in lines:
        state = line[:8].strip() or state
        if line[8:].startswith("keeps"):
            found[state] = set(line[16:].split(", "))
    return found


def test_a_state_keeps_what_later_edges_can_read() -> None:
    assert kept("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.y < c.y") == {"b": {"a.x"}, "c": {"b.y"}}
    assert kept("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x") == {"a[i]": {"a[a.LEN].x"}}
    assert kept("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[1].x AND b.y > max(a[].y)") == {
        "a[i]": {"a[1].x", "max(a[].y)"},
        "b": {"max(a[].y)"},
    }


def test_what_the_last_event_decides_at_closing_is_not_kept() -> None:
    assert kept("PATTERN SEQ(A+ a[], B b) WHERE a[a.LEN].x > 3") == {}


def test_a_condition_on_every_element_needs_the_whole_group() -> None:
    assert kept("PATTERN SEQ(A+ a[], B b) WHERE a.x < b.x") == {"a[i]": {"all of a[]"}, "b": {"all of a[]"}}


def test_negation_needs_the_instants_around_it_until_it_is_judged() -> None:
    found = describe(*automaton("PATTERN SEQ(A a, !(C c), B b, B d) WHERE c.x > d.x WITHIN 9"))
    assert "unless  C c between a and b with c.x > d.x" in found
    assert kept("PATTERN SEQ(A a, !(C c), B b, B d) WHERE c.x > d.x WITHIN 9") == {
        "b": {"the instant of a"},
        "d": {"the instant of a", "the instant of b"},
    }
    assert kept("PATTERN SEQ(A a, !(C c), B b, B d) WHERE c.x > a.x WITHIN 9") == {"b": {"a.x", "the instant of a"}}
