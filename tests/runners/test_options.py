"""Options are types: an unknown one, or a value it cannot take, is an error that names the right ones."""

from __future__ import annotations

import ast
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.flink import Pattern
from cepheid.plan.options import declared, options_from_text
from cepheid.runners.options import BatchOptions, FlinkOptions, Options, RowOptions, StreamOptions
from runners.option_pages import COMMAND, DOCS, TABLES, every_option, own_options, page

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [1, 1, 1]})
QUERY = "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 9"
BOUNDS = {"lower": "ts", "upper": "ts"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scoring": "bogus"}, "scoring='bogus' is not 'exact', 'paper' or 'posterior'"),
        ({"scoring": "exactly"}, "did you mean 'exact'?"),
        ({"method": "bogus", **BOUNDS}, "method='bogus' is not 'auto', 'query-order'"),
        ({"method": "sorted"}, "method is for imprecise times; pass lower="),
        ({"merge": "bogus"}, "merge='bogus' is not True or False"),
        ({"output": "bogus"}, "output='bogus' is not 'rows', 'count' or 'compressed'"),
        ({"equivalence": "bogus"}, "equivalence='bogus' is not 'scan' or 'construction'"),
        ({"max_matches": "10"}, "max_matches='10' is not a whole number of at least 1"),
        ({"max_matches": 0}, "max_matches=0 is not a whole number of at least 1"),
        ({"max_partial_matches": 2.5}, "max_partial_matches=2.5 is not a whole number"),
        ({"truncate": 1}, "truncate=1 is not True or False"),
        ({"time": 3}, "time=3 is not a name in quotes"),
        ({"type": 3}, "type=3 is not a name in quotes, or None for events without types"),
        ({"tiebreak": 3}, "tiebreak=3 is not a name in quotes, or a list of them"),
        ({"lower": "ts"}, "only lower was passed; add upper="),
        ({"upper": "ts"}, "only upper was passed; add lower="),
        ({"scoring": "posterior"}, "scoring is for events that may be missing; pass model="),
        ({"missing_last": True}, "missing_last is for events that may be missing"),
        ({"confidence": 0.9}, "confidence is for imprecise times"),
        ({"partitions": 3}, "partitions is an option of Spark batches"),
        ({"delay": 3}, "delay is an option of streams"),
        ({"mrge": False}, "no option 'mrge'; did you mean merge"),
        ({"zzzz": False}, "no option 'zzzz'; there are aside, bad_records"),
    ],
)
@pytest.mark.parametrize(
    "call", [cepheid.match, lambda events, query, **options: query_of(query).explain(events, **options)]
)
def test_options_that_cannot_be(call: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(cepheid.CepheidError) as error:
        call(EVENTS, QUERY, **options)
    assert told in str(error.value)


def query_of(text: str) -> cepheid.Query:
    return cepheid.query(text)


def test_options_hold_for_fitting_and_diagnosis_too() -> None:
    from cepheid import why

    with pytest.raises(cepheid.CepheidError, match="scoring='bogus'"):
        cepheid.fit(EVENTS, QUERY, scoring="bogus")
    with pytest.raises(cepheid.CepheidError, match="scoring='bogus'"):
        why(EVENTS, QUERY, scoring="bogus")


def test_confidence_needs_imprecise_times() -> None:
    with pytest.raises(cepheid.QueryError, match=r"CONFIDENCE needs imprecise times.*pass lower='...' and upper"):
        cepheid.match(EVENTS, QUERY + " CONFIDENCE 90%")
    assert cepheid.match(EVENTS, QUERY + " CONFIDENCE 90%", engine="reference", **BOUNDS).num_rows == 1
    assert "imprecise times by confidence of at least 0.9" in cepheid.query(QUERY + " CONFIDENCE 90%").explain()


def test_defaults_may_be_passed_where_they_say_nothing() -> None:
    options = {"scoring": "exact", "merge": True, "model": None, "confidence": None, "method": None, "order": None}
    assert cepheid.match(EVENTS, QUERY, **options).num_rows == 1


OPTIONS = {name: (declared, said) for name, declared, said in every_option().values()}


@pytest.mark.parametrize("name", TABLES)
def test_pages_show_the_options_as_they_are_declared(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert page(name, text) == text, f"run {COMMAND}"


def test_every_option_is_in_one_table() -> None:
    every = {
        name for kind in (Options, BatchOptions, StreamOptions, RowOptions, FlinkOptions) for name in declared(kind)
    }
    assert every == set(OPTIONS)
    kinds = [kind for tables in TABLES.values() for shown in tables.values() for kind in shown]
    shown = [name for kind in kinds for name, _, _ in own_options(kind)]
    twice = {name for name in shown if shown.count(name) > 1}
    assert twice == {"max_partial_matches"}  # which Flink patterns declare with another default


@pytest.mark.parametrize("name", [name for name, (_, said) in OPTIONS.items() if said.example is not None])
def test_examples_of_options(name: str) -> None:
    field, said = OPTIONS[name]
    value = ast.literal_eval(said.example or "")
    assert said.kind(value) is None
    assert value != field.default


@pytest.mark.parametrize("name", OPTIONS)
def test_the_sentences_of_options(name: str) -> None:
    field, said = OPTIONS[name]
    assert not said.help.endswith(".")
    assert said.languages
    assert "\n" not in said.help
    assert field.default is None or said.kind(field.default) is None, "the default is a value that it takes"


@pytest.mark.parametrize(
    ("query", "options", "told"),
    [
        ("rows", {"partitions": 2}, "partitions is an option of Spark batches; leave it out here"),
        ("rows", {"delay": 2}, "delay is an option of streams; leave it out here"),
        ("rows", {"max_rows": 2}, "max_rows is an option of streams; leave it out here"),
        ("rows", {"slices": 2}, "no option 'slices' for a MATCH_RECOGNIZE clause"),
        ("rows", {"tiemout": 2}, "no option 'tiemout' for a MATCH_RECOGNIZE clause; did you mean timeout?"),
        ("rows", {"timeout": "soon"}, "timeout='soon' is not a number of at least 0"),
        ("rows", {"max_partial_matches": 9}, "max_partial_matches: a row pattern follows one partial match at a time"),
        ("flink", {"partitions": 2}, "partitions is an option of Spark batches; leave it out here"),
        ("flink", {"idle": "1 s"}, "idle is an option of streams; leave it out here"),
        ("flink", {"time": 3}, "time=3 is not a name in quotes"),
        ("flink", {"partial": 1}, "partial=1 is not True or False"),
        ("flink", {"lower": "ts"}, "no option 'lower' for a Flink pattern"),
        ("flink", {"engine": "runs"}, "engine 'runs' cannot run a Flink pattern; use auto or automaton or reference"),
        ("flink", {"output": "compressed"}, "output='compressed' is not for a Flink pattern; use rows or count"),
    ],
)
def test_options_of_other_languages_that_cannot_be(query: str, options: dict[str, Any], told: str) -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE A AS type = 'A')"
    queries: dict[str, Any] = {"rows": clause, "flink": Pattern.begin("a")}
    with pytest.raises(cepheid.CepheidError) as error:
        cepheid.match(EVENTS, queries[query], **options)
    assert told in str(error.value)


def test_options_written_as_text() -> None:
    given = {"tiebreak": "a, b", "dedupe": "id", "time": "a,b", "max_matches": 5}
    read = {"tiebreak": ("a", "b"), "dedupe": ("id",), "time": "a,b", "max_matches": 5}
    assert options_from_text(given, Options) == read
