"""SASE's synthetic events and queries."""

import numpy as np
import pytest

from cepheid.errors import DataError
from cepheid.simulate.sase import expected_selectivity, sase_events, sase_query


def test_types_and_attributes_stay_in_their_domains_and_fill_them() -> None:
    events = sase_events(20_000, types=5, domains=(3, 7), seed=2).events
    assert events.column_names == ["ts", "type", "attr1", "attr2"]
    assert events["ts"].to_pylist() == list(range(20_000))
    assert set(events["type"].to_pylist()) == {"T0", "T1", "T2", "T3", "T4"}
    assert set(events["attr1"].to_pylist()) == {0, 1, 2}
    assert set(events["attr2"].to_pylist()) == set(range(7))


@pytest.mark.parametrize("zipf", [0.0, 1.0, 2.0])
def test_type_frequencies_follow_zipf(zipf: float) -> None:
    types = 6
    drawn = sase_events(60_000, types=types, zipf=zipf, seed=4).events["type"].to_pylist()
    weights = [1 / (k + 1) ** zipf for k in range(types)]
    for k, weight in enumerate(weights):
        assert drawn.count(f"T{k}") / len(drawn) == pytest.approx(weight / sum(weights), abs=0.01)


def test_the_number_of_results_is_as_expected() -> None:
    types, domain, window = 4, 5, 40
    events = sase_events(4_000, types=types, domains=(domain,), seed=5).events.to_pydict()
    rows = list(zip(events["ts"], events["type"], events["attr1"], strict=True))
    results = 0
    for i, (start, first, key) in enumerate(rows):
        if first != "T0":
            continue
        inside = [row for row in rows[i + 1 : i + window] if row[2] == key]
        assert all(ts - start < window for ts, _, _ in inside)
        results += sum(
            second == "T1" and third == "T2"
            for j, (_, second, _) in enumerate(inside)
            for _, third, _ in inside[j + 1 :]
        )
    assert results / len(rows) == pytest.approx(expected_selectivity(3, window, types, domain), rel=0.15)


def test_query_has_the_parts_asked_for() -> None:
    query = sase_query(
        length=4, equivalence_tests=2, inequalities=1, simple_predicates=1, negations=2, window=99, seed=6
    )
    components = query[query.index("SEQ(") + 4 : query.index(") WHERE")]
    assert components.count("!(") == 2
    drawn = [word.removeprefix("!(") for word in components.split() if "T" in word]
    assert len(drawn) == len(set(drawn)) == 6
    conditions = query[query.index("WHERE ") + 6 : query.index(" WITHIN 99")].split(" AND ")
    assert conditions[:2] == ["[attr1]", "[attr2]"]
    assert len(conditions) == 4
    assert all("attr1" not in condition and "attr2" not in condition for condition in conditions[2:])
    left, right = conditions[2].split(" < ")
    assert left.split(".")[1] == right.split(".")[1]
    assert left.split(".")[0] < right.split(".")[0]


def test_queries_differ_by_seed_and_repeat_by_seed() -> None:
    assert sase_query(seed=1) == sase_query(seed=1)
    assert len({sase_query(seed=seed) for seed in range(5)}) > 1


def test_skewed_queries_prefer_the_common_types() -> None:
    firsts = [sase_query(length=1, zipf=2.0, seed=seed).split("(")[1].split()[0] for seed in range(60)]
    assert firsts.count("T0") > 25


@pytest.mark.parametrize(
    "arguments",
    [
        {"length": 19, "negations": 2},
        {"equivalence_tests": 6},
        {"equivalence_tests": 5, "simple_predicates": 1},
        {"length": 1, "inequalities": 1},
        {"window": 0},
    ],
)
def test_impossible_queries_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(DataError, match="simulate: "):
        sase_query(**arguments)


def test_a_domain_without_values_is_refused() -> None:
    with pytest.raises(DataError, match=r"domains\[1\]"):
        sase_events(10, domains=(3, 0))


def test_attributes_are_independent_of_types() -> None:
    events = sase_events(50_000, types=2, domains=(2,), seed=9).events
    is_first = np.array(events["type"].to_pylist()) == "T0"
    attribute = events["attr1"].to_numpy()
    assert attribute[is_first].mean() == pytest.approx(attribute[~is_first].mean(), abs=0.02)
