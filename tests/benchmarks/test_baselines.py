"""The algorithms written for comparison find what the reference finds."""

import pytest

import cepheid
from bench.baselines.backtrack import P1, P2, P3, Template, non_overlapping
from bench.baselines.stacks import AIS, MULTI_PAIS, NO_STACKS, Technique, result_digest_table, scan_and_construct
from bench.experiments.sase import NAMES, pattern
from bench.experiments.sase_plus import text
from bench.harness.calls import match_digest
from bench.rivals.by_hand import any_match_pandas, next_match_pandas
from cepheid.simulate import sase_events, stock_ticks

TECHNIQUES = (
    Technique(),
    Technique(stacks=NO_STACKS),
    Technique(stacks=AIS),
    Technique(stacks=MULTI_PAIS, second_early=False),
    Technique(second_early=False, simple_early=False, inequality_early=False, negation_early=False),
    Technique(window_in_scan=False, window_in_construction=False),
)


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_every_technique_finds_the_matches(technique: Technique) -> None:
    table = sase_events(150, types=4, domains=(3, 2, 10, 100, 10), seed=3).events
    where = "[attr1, attr2] AND e1.attr3 < e3.attr3 AND e1.attr4 < 80 AND e2.attr4 < 80 AND e3.attr4 < 80"
    wanted = cepheid.match(table, pattern(3, where, 60), engine="reference")
    simple = table["attr4"].to_numpy() < 80
    query = {"second": "attr2", "inequality": "attr3", "simple": simple}
    found = scan_and_construct(table, ("T0", "T1", "T2"), 60, technique, **query)
    assert wanted.num_rows > 0
    assert match_digest(result_digest_table(found, table, NAMES[:3])) == match_digest(wanted)


@pytest.mark.parametrize("early", [True, False])
def test_negation_early_and_late(early: bool) -> None:
    table = sase_events(150, types=4, domains=(3, 2, 10, 100, 10), seed=4).events
    wanted = cepheid.match(table, pattern(3, "[attr1]", 60, "!(T3 n)"), engine="reference")
    technique = Technique(negation_early=early)
    found = scan_and_construct(table, ("T0", "T1", "T2"), 60, technique, negative=("T3", 1))
    assert wanted.num_rows > 0
    assert match_digest(result_digest_table(found, table, NAMES[:3])) == match_digest(wanted)


@pytest.mark.some(3)
@pytest.mark.parametrize("third", [False, True])
@pytest.mark.parametrize("strategy", ["s2", "s3"])
@pytest.mark.parametrize(("name", "iterator"), [("p1", P1), ("p2", P2), ("p3", P3)])
def test_backtracking_that_stops_early(name: str, iterator: int, strategy: str, third: bool) -> None:
    table = stock_ticks(400, highest_price=1_000, step=40, up=0.5, seed=2).events
    wanted = cepheid.match(table, text(f"{name} {strategy}", 60, third, " OUTPUT NON-OVERLAP"), engine="reference")
    found = non_overlapping(table, Template(iterator, strategy == "s2", third, 60))
    assert match_digest(found) == match_digest(wanted)


def test_pandas_by_hand() -> None:
    table = sase_events(150, types=4, domains=(3, 2, 10, 100, 10), seed=5).events
    types = ("T0", "T1", "T2")
    for strategy, call in (("any", any_match_pandas), ("next", next_match_pandas)):
        where = f"[attr1] AND skip_till_{strategy}_match(e1, e2, e3)"
        wanted = cepheid.match(table, pattern(3, where, 60), engine="reference")
        assert wanted.num_rows > 0
        assert match_digest(call(table, types, "attr1", 60)) == match_digest(wanted)
