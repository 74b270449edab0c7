"""No text, however odd, long or deep, does anything but give a query or a QueryError."""

import sys
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.errors import QueryError
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import MAX_TEXT, parse
from queries.corpus import QUERIES, PrintedQuery
from strategies.queries import SCHEMA

START = "PATTERN SEQ(A a, B b) WHERE "
NEGATED = "PATTERN SEQ(A a, !(B b), C c) WHERE "


def survives(text: str, printed: PrintedQuery | None = None) -> str | None:
    """The code of the error that a text gives, or None if it is a query; any other exception fails the test."""
    try:
        query = check(parse(text), text)
        bind(query, printed.schema if printed else SCHEMA, printed.parameters if printed else {}, text)
    except QueryError as error:
        return error.code if str(error) else ""
    printed_text = to_text(query)
    assert check(parse(printed_text)) == query
    return None


# --- drawn texts ----------------------------------------------------------------------------------------------------

WORDS = """
PATTERN EVENT SEQ SEQ( ( ) [ ] { } , . .. [] + - * / % ! ~ = != < <= ∧ ∨ ≠ ∈ ¬ AND OR NOT IN BETWEEN IS NULL TRUE
WHERE WITHIN THRESHOLD CONFIDENCE RETURN OUTPUT TOP BY AS ANY( A B a b a.x a[i].x a[1].x a[a.LEN] a.LEN i 1 0.5 5%
's' "s" `q` ' " ` /* */ -- avg( skip_till_any_match partition-contiguity( hours EVENTS NON-OVERLAP ; x₁
"""
TOKENS = [*WORDS.split(), "\0", "\ud800", "\n"]


@given(st.text())
def test_any_text(text: str) -> None:
    survives(text)


@given(st.text(alphabet=st.characters(categories=None)).map(lambda text: START + text))
def test_any_condition(text: str) -> None:
    survives(text)


@given(st.lists(st.sampled_from(TOKENS)).map(" ".join))
def test_any_words(text: str) -> None:
    survives(text)


@given(st.lists(st.sampled_from(TOKENS)).map(lambda words: START + " ".join(words)))
def test_any_words_in_a_condition(text: str) -> None:
    survives(text)


def _without(text: str, start: int, end: int, _: str) -> str:
    return text[:start] + text[end:]


def _twice(text: str, start: int, end: int, _: str) -> str:
    return text[:end] + text[start:end] + text[end:]


def _replaced(text: str, start: int, end: int, other: str) -> str:
    return text[:start] + other + text[end:]


def _reversed(text: str, start: int, end: int, _: str) -> str:
    return text[:start] + text[start:end][::-1] + text[end:]


MUTATIONS: list[Callable[[str, int, int, str], str]] = [_without, _twice, _replaced, _reversed]


@given(st.data())
def test_mutated_queries(data: st.DataObject) -> None:
    printed = QUERIES[data.draw(st.sampled_from(sorted(QUERIES)))]
    text = printed.text[printed.text.index("*/") + 2 :]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        other = data.draw(st.sampled_from(TOKENS) | st.text(max_size=3))
        text = data.draw(st.sampled_from(MUTATIONS))(text, start, end, other)
    survives(text, printed)


# --- long, deep and broken texts ------------------------------------------------------------------------------------


EXTREMES = {
    "too many parentheses": (START + "(" * 90_000, "syntax"),
    "closed parentheses": (START + "(" * 9_000 + "a.x > 1" + ")" * 9_000, None),
    "NOT": (START + "NOT " * 20_000 + "a.x > 1", "too-deep"),
    "bangs": (START + "!" * 50_000 + "(a.x > 1)", "too-deep"),
    "100,000 NOTs": (START + "NOT " * 100_000 + "a.x > 1", "too-long"),
    "minus": (START + "- " * 20_000 + "a.x > 1", "too-deep"),
    "a long sum": (START + "a.x" + "+1" * 10_000 + " > 1", "too-deep"),
    "a sum of 90": (START + "a.x" + "+1" * 90 + " > 1", None),
    "a product of 90": (START + "a.x" + "*1" * 90 + " > 1", None),
    "calls": (START + "abs(" * 20_000 + "a.x", "syntax"),
    "90 calls": (START + "abs(" * 90 + "a.x" + ")" * 90 + " > 1", None),
    "90 comparisons": (START + "(" * 90 + "a.x" + " IS NULL)" * 90, None),
    "brackets": (START + "[" * 90_000, "syntax"),
    "braces": (START + "{" * 90_000, "syntax"),
    "indices": (START + "a[" * 40_000, "syntax"),
    "defaults": (START + "a.x[" * 20_000 + "1", "syntax"),
    "closed defaults": (START + "a.x[" * 5_000 + "1" + "]" * 5_000 + " > 1", "too-deep"),
    "dots": (START + "a" + ".x" * 40_000, "unknown-attribute"),
    "the same condition": (START + " AND ".join(["a.x > 1"] * 2_000), None),
    "different conditions": (START + " AND ".join(f"a.x > {n}" for n in range(2_000)), "too-many-combinations"),
    "alternatives": (START + " OR ".join(f"a.x > {n}" for n in range(2_000)), None),
    "alternatives to a negation": (NEGATED + " OR ".join(f"b.x > {n}" for n in range(2_000)), "too-many-combinations"),
    "AND of ORs": (START + " AND ".join(f"(a.x > {n} OR b.x < {n})" for n in range(500)), None),
    "AND of ORs on a negation": (
        NEGATED + " AND ".join(f"(a.x > {n} OR b.x < {n})" for n in range(500)),
        "too-many-combinations",
    ),
    "OR of ANDs": (START + " OR ".join(f"(a.x > {n} AND b.x < {n})" for n in range(500)), "too-many-combinations"),
    "AND in OR in AND": (START + "(a.x > 1 AND (b.x > 1 OR " * 30 + "a.x = 2" + "))" * 30, None),
    "a long list": (START + "a.x IN (" + ",".join(map(str, range(3_000))) + ")", None),
    "commas": (START + "a.x > 1" + "," * 50_000, "syntax"),
    "many components": ("PATTERN SEQ(" + ",".join(f"A a{n}" for n in range(5_000)) + ")", "too-many-components"),
    "many columns": ("PATTERN A a RETURN " + ",".join(f"a.x AS c{n}" for n in range(1_000)), None),
    "a long type": ("PATTERN SEQ(A" + "-a" * 40_000 + " b)", None),
    "hyphens": ("PATTERN SEQ(A" + "-" * 90_000, "syntax"),
    "a long name": (START + "a." + "x" * 90_000 + " > 1", "unknown-attribute"),
    "a long number": (START + "a.x > " + "9" * 90_000, "bad-number"),
    "a number of 4,000 digits": (START + "a.x > " + "9" * 4_000, "bad-number"),
    "a huge number": (START + "a.x > 1e999", "bad-number"),
    "a huge percentage": (START + "a.x > 1" + "0" * 400 + "%", "bad-number"),
    "a huge window": ("PATTERN SEQ(A a, B b) WITHIN " + "9" * 4_000, "bad-window"),
    "a huge window of time": ("PATTERN SEQ(A a, B b) WITHIN 1e300", "bad-window"),
    "a long string": (START + "a.s = '" + "x" * 90_000 + "'", None),
    "quotes": (START + "a.s = " + "''" * 40_000, None),
    "an open string": (START + "a.s = '" + "x" * 90_000, "open-string"),
    "an open string in double quotes": (START + 'a.s = "x', "open-string"),
    "an open name": (START + "a.`x > 1", "open-name"),
    "an open comment": (START + "a.x /* > 1", "open-comment"),
    "an open comment first": ("/* PATTERN A", "open-comment"),
    "an open comment last": ("PATTERN A a /* the end", "open-comment"),
    "open comments": ("/*" * 40_000, "syntax"),
    "a comment": ("/*" + "*" * 90_000 + "*/ PATTERN A a", None),
    "comments": ("--\n" * 30_000 + "PATTERN A a", None),
    "spaces": (" " * 90_000, "empty"),
    "only a comment": ("/* nothing */", "syntax"),
    "NULs": (START + "\0" * 5_000, "syntax"),
    "a lone surrogate": (START + "\ud800", "syntax"),
    "a lone surrogate in a string": (START + "a.s = '\ud800'", "bad-text"),
    "semicolons": ("PATTERN A a" + ";" * 50_000, "syntax"),
    "too long": ("PATTERN A a" + " " * MAX_TEXT, "too-long"),
}


@pytest.mark.some(12)
@pytest.mark.parametrize(("text", "code"), EXTREMES.values(), ids=EXTREMES)
def test_extremes(text: str, code: str | None) -> None:
    assert survives(text) == code


def test_deep_queries_fit_a_stack_that_is_already_half_used() -> None:
    # Spark calls from deep inside its own frames, so the deepest query that is allowed must leave room.
    deepest = START + "NOT " * 97 + "a.x > 1"
    result: list[object] = []

    def dive(levels: int) -> None:
        result.append(survives(deepest)) if levels == 0 else dive(levels - 1)

    worker = threading.Thread(target=dive, args=(sys.getrecursionlimit() // 3,))
    worker.start()
    worker.join()
    assert result == [None]


def test_nothing_is_left_of_an_error_but_the_error() -> None:
    for _ in range(3):
        assert survives(START + "(") == "syntax"
        assert survives(START + "a.x > 1") is None
