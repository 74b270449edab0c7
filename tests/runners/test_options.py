"""Options are types: an unknown one, or a value it cannot take, is an error that names the right ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid

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
