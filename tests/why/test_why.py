"""`why` on small streams where the cause is known."""

import sys
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid import why
from cepheid.diagnose import Count, Diagnosis
from cepheid.diagnose.relax import Subject
from cepheid.errors import DataError


def stream(*rows: tuple[Any, ...], columns: str = "ts type id x") -> pa.Table:
    names = columns.split()
    return pa.table({name: [row[index] for row in rows] for index, name in enumerate(names)})


def diagnosed(events: Any, text: str, **options: Any) -> Diagnosis:
    return why(events, cepheid.query(text), **options)


def codes(diagnosis: Diagnosis) -> set[str]:
    return {hint.code for hint in diagnosis.hints}


def hint(diagnosis: Diagnosis, code: str) -> str:
    return next(hint.text for hint in diagnosis.hints if hint.code == code)


SHOP = stream(
    (1, "Shelf", "razor", 5),
    (2, "Shelf", "bread", 2),
    (3, "Register", "bread", 2),
    (4, "Exit", "bread", 2),
    (5, "Exit", "razor", 5),
)
THEFT = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [id] WITHIN 10"


def test_steps_of_a_query_that_finds_something() -> None:
    found = diagnosed(SHOP, THEFT)
    assert found.matches == Count(1)
    assert [(step.kind, step.count.number) for step in found.steps] == [
        ("events", 2),
        ("events", 2),
        ("join", 2),
        ("negation", 1),
    ]
    assert {item.text: item.matches for item in found.without} == {
        "[id]": Count(0),  # then the register between them kills both
        "!(Register b)": Count(2),
    }
    assert found.window is not None
    assert found.window.matches == Count(1)
    assert found.closest is None
    assert found.hints == ()


def test_events_per_component_and_condition() -> None:
    found = diagnosed(SHOP, "PATTERN SEQ(Shelf a, Exit c) WHERE [id] AND a.x > 2 AND a.x < 5 AND c.x = 5 WITHIN 10")
    shelf, leaving = found.components
    assert (shelf.of_type, shelf.passed, shelf.without_key) == (2, 0, 0)
    assert [(c.text, c.passed) for c in shelf.conditions] == [("a.x > 2", 1), ("a.x < 5", 1)]
    assert leaving.passed == 1
    assert "never-together" in codes(found)


def test_type_that_differs_in_case() -> None:
    found = diagnosed(SHOP, "PATTERN SEQ(shelf a, Exit c) WITHIN 10")
    assert hint(found, "unknown-type") == (
        "no event has the type 'shelf', but many are called 'Shelf': the case differs"
    )


def test_type_that_is_misspelt_and_type_that_is_not_there() -> None:
    assert "did you mean 'Shelf'?" in hint(diagnosed(SHOP, "PATTERN SEQ(Shelv a, Exit c) WITHIN 10"), "unknown-type")
    text = hint(diagnosed(SHOP, "PATTERN SEQ(Login a, Exit c) WITHIN 10"), "unknown-type")
    assert "column 'type' holds 'Exit', 'Shelf', 'Register'" in text


def test_condition_that_never_holds_names_what_is_there() -> None:
    number = diagnosed(SHOP, "PATTERN SEQ(Shelf a, Exit c) WHERE a.x > 100 WITHIN 10")
    assert hint(number, "never-true") == "a.x > 100 holds for none of the 2 events of Shelf a: x goes from 2 to 5"
    text = diagnosed(SHOP, "PATTERN SEQ(Shelf a, Exit c) WHERE a.id = 'Razor' WITHIN 10")
    assert hint(text, "never-true").endswith("did you mean 'razor'?")
    assert text.closest is not None
    assert text.closest.stopped_by == "a.id = 'Razor'"
    assert text.closest.detail == "a.id = 'razor'"
    null = diagnosed(stream((1, "A", 1, None), (2, "B", 1, 3)), "PATTERN SEQ(A a, B b) WHERE a.x > 0 WITHIN 10")
    assert hint(null, "never-true").endswith("x is NULL on all of them")


def test_fixed_equivalence_that_never_holds() -> None:
    found = diagnosed(SHOP, "PATTERN SEQ(Shelf a, Exit c) WHERE [id = 'knife'] WITHIN 10")
    assert "holds for none of the 2 events of Shelf a" in hint(found, "never-true")


def test_keys_that_are_never_equal() -> None:
    events = stream((1, "A", "k1", 0), (2, "B", "K1", 0), (3, "A", "k2", 0), (4, "B", "K2", 0))
    found = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
    assert hint(found, "key-never-equal").endswith("'k1' and 'K1' differ in case only")
    assert found.closest is not None
    assert (found.closest.stopped_by, found.closest.detail) == ("[id]", "a.id = 'k1', b.id = 'K1'")
    joined = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE a.id = b.id WITHIN 10")
    assert "key-never-equal" in codes(joined)
    assert joined.steps[-1].text == "a.id = b.id"


@pytest.mark.parametrize(("left", "right", "difference"), [("7", "007", "leading zeros"), ("a", "a ", "spaces around")])
def test_keys_that_are_written_in_two_ways(left: str, right: str, difference: str) -> None:
    events = stream((1, "A", left, 0), (2, "B", right, 0))
    assert difference in hint(diagnosed(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"), "key-never-equal")


def test_null_keys() -> None:
    events = stream((1, "A", None, 0), (2, "B", "k", 0), (3, "B", "k", 0))
    found = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
    assert found.components[0].without_key == 1
    assert hint(found, "null-key") == "id is NULL on all 1 event of A a: these never match"
    both = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE [id, x] WITHIN 10")
    assert hint(both, "null-key") == "id is NULL on all 1 event of A a: these never match"


def test_window_too_short() -> None:
    events = stream((1, "A", 1, 0), (100, "B", 1, 0), (200, "A", 2, 0), (250, "B", 2, 0))
    found = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
    assert found.window is not None
    assert (found.window.needed, found.window.matches) == (51, Count(2))
    assert hint(found, "window-too-short") == "WITHIN 10 is too short: the closest needs 51"
    assert found.closest is not None
    assert found.closest.stopped_by == "WITHIN 10"
    assert [event["ts"] for _, event in found.closest.events] == [200, 250]
    assert len(cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 51")) == 1
    assert len(cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 50")) == 0


def test_window_without_a_key_grows_until_it_holds_a_match() -> None:
    rows = [(t, "A", 0, 0) for t in range(100)] + [(150, "B", 0, 0)]
    found = diagnosed(stream(*rows), "PATTERN SEQ(A a, B b) WITHIN 5")
    assert found.window is not None
    assert found.window.needed == 52


def test_event_window_too_short() -> None:
    rows = [(0, "A", 0, 0), *((t, "C", 0, 0) for t in range(1, 20)), (20, "B", 0, 0)]
    found = diagnosed(stream(*rows), "PATTERN SEQ(A a, B b) WITHIN 5 EVENTS")
    assert "window-too-short" in codes(found)
    assert "time-unit" not in codes(found)


def test_time_unit_by_the_size_of_the_times() -> None:
    start = 1_700_000_000_000  # milliseconds
    events = stream((start, "A", 1, 0), (start + 30_000, "B", 1, 0))
    told = diagnosed(events, "PATTERN SEQ(A a, B b) WITHIN 60 seconds", time_unit="s")
    assert "looks like milliseconds since 1970, not seconds" in hint(told, "time-unit")
    untold = diagnosed(events, "PATTERN SEQ(A a, B b) WITHIN 60")
    assert "so WITHIN 60 is 60 milliseconds" in hint(untold, "time-unit")


def test_time_unit_by_the_window_that_is_needed() -> None:
    events = stream((0, "A", 1, 0), (30_000, "B", 1, 0))
    assert "factor of 1,000?" in hint(diagnosed(events, "PATTERN SEQ(A a, B b) WITHIN 40"), "time-unit")


def test_condition_between_events_and_the_closest() -> None:
    events = stream((1, "A", 1, 10), (2, "B", 1, 3), (3, "A", 2, 10), (4, "B", 2, 9))
    found = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x WITHIN 10")
    assert found.steps[-1].text == "a.x < b.x"
    assert found.closest is not None
    assert (found.closest.stopped_by, found.closest.detail) == ("a.x < b.x", "a.x = 10, b.x = 9")
    assert hint(found, "only-this-blocks") == "without a.x < b.x there would be 2 matches"


def test_condition_on_an_attribute_that_is_null() -> None:
    events = stream((1, "A", 1, 10), (2, "B", 1, None), (3, "C", 1, 4))
    found = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10")
    assert hint(found, "null-attribute") == "b.x is NULL on all events of B b"


def test_negation_that_kills_all() -> None:
    events = stream((1, "A", 1, 0), (2, "N", 7, 0), (3, "B", 1, 0))
    found = diagnosed(events, "PATTERN SEQ(A a, !(N n), B b) WHERE a.id = b.id WITHIN 10")
    assert "no condition relates n to the other events" in hint(found, "negation-kills-all")
    assert found.closest is not None
    assert found.closest.stopped_by == "!(N n)"
    assert [(name, event["ts"]) for name, event in found.closest.events] == [("a", 1), ("n", 2), ("b", 3)]


@pytest.mark.parametrize(
    "pattern", ["PATTERN SEQ(!(N n), A a, B b) WITHIN 10", "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10"]
)
def test_negation_at_the_edges(pattern: str) -> None:
    events = stream((1, "N", 1, 0), (2, "A", 1, 0), (3, "B", 1, 0), (4, "N", 1, 0))
    found = diagnosed(events, pattern)
    assert found.steps[-1].kind == "negation"
    assert found.closest is not None
    assert found.closest.stopped_by == "!(N n)"


def test_wrong_order_and_same_time() -> None:
    found = diagnosed(stream((1, "B", 1, 0), (2, "A", 1, 0)), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
    assert "is the pattern in the right order?" in hint(found, "wrong-order")
    together = diagnosed(stream((1, "B", 1, 0), (1, "A", 1, 0)), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
    assert "tiebreak" in hint(together, "same-time")


def test_strategy_that_blocks() -> None:
    events = stream((1, "A", 1, 0), (2, "C", 1, 0), (3, "B", 1, 0))
    found = diagnosed(events, "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { } WITHIN 10")
    assert {item.kind: item.matches for item in found.without} == {"strategy": Count(1)}
    assert found.closest is not None
    assert found.closest.stopped_by == "strict_contiguity"


def test_a_third_component_that_never_comes() -> None:
    found = diagnosed(SHOP, "PATTERN SEQ(Shelf a, Exit b, Register c) WHERE [id] WITHIN 10")
    assert found.steps[-1].text == "c after b, same id, within 10"
    assert found.closest is not None


def test_kleene_group() -> None:
    events = stream((1, "A", 1, 1), (2, "A", 1, 2), (3, "A", 1, 3), (4, "B", 1, 0))
    conditions = "[id] AND a[i].x < a[i-1].x AND a.LEN > 1"
    query = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) {{ {conditions} }} WITHIN 10"
    found = diagnosed(events, query)
    assert found.matches == Count(0)
    assert found.steps[-1].kind == "condition"
    assert found.closest is not None


def test_empty_table_and_wrong_kind() -> None:
    assert codes(diagnosed(SHOP.slice(0, 0), THEFT)) == {"no-events"}
    with pytest.raises(DataError, match="not list"):
        diagnosed([1], THEFT)


def test_large_tables_are_thinned_out_by_whole_keys() -> None:
    rows = [(t, "A" if t % 2 == 0 else "B", t // 4, 0) for t in range(4000)]
    found = diagnosed(stream(*rows), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10", most_events=400)
    assert found.events == 4000
    assert found.sample is not None
    assert "of 100 of 1,000 keys" in found.sample
    assert found.matches == Count(300)  # three of every key
    first = diagnosed(stream(*rows), "PATTERN SEQ(A a, B b) WITHIN 2", most_events=400)
    assert first.sample == "the first 400 of 4,000 events"
    assert first.matches == Count(200)


def test_counting_stops_at_a_limit() -> None:
    rows = [(t, "A", 0, 0) for t in range(400)] + [(t, "B", 0, 0) for t in range(400, 800)]
    found = diagnosed(stream(*rows), "PATTERN SEQ(A a, B b) WITHIN 1000")
    assert found.matches == Count(100_000, at_least=True)
    assert str(found.matches) == "at least 100,000"


def test_pandas_and_json() -> None:
    import json

    found = diagnosed(SHOP.to_pandas(), THEFT)
    assert json.loads(json.dumps(found.to_dict()))["matches"] == {"number": 1, "at_least": False}


def test_an_event_that_comes_too_late_is_not_said_to_come_before() -> None:
    events = stream((98, "D", 1, 0), (100, "C", 1, 0), (120, "D", 1, 0))
    found = diagnosed(events, "PATTERN SEQ(C c, D d) WITHIN 5")
    assert "wrong-order" not in codes(found)
    assert hint(found, "too-late").startswith("D d comes after C c, but at least 20 later")
    assert hint(found, "window-too-short").endswith("the closest needs 21")
    # On another key it does not come at all: then the order is what is wrong.
    other = stream((98, "D", 1, 0), (100, "C", 1, 0), (120, "D", 2, 0))
    assert "wrong-order" in codes(diagnosed(other, "PATTERN SEQ(C c, D d) WHERE [id] WITHIN 5"))


def test_why_in_python_takes_a_text_and_tells_the_story() -> None:
    found = cepheid.why(
        SHOP, "PATTERN SEQ(Shelf a, Exit c) WHERE [id] AND a.x > Least WITHIN 10", parameters={"Least": 7}
    )
    same = cepheid.query("PATTERN SEQ(Shelf a, Exit c) WHERE [id] AND a.x > 7 WITHIN 10").why(SHOP)
    assert same.steps[0].count == found.steps[0].count
    text = str(found)
    assert text == repr(found)
    assert "0 matches in 5 events" in text
    assert "Likely causes\n  • a.x > 7 holds for none of the 2 events" in text
    with pytest.raises(cepheid.DataError, match="not list"):
        cepheid.why([1], THEFT)


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { a.x = c.x AND avg(b[].x) < 0 } WITHIN 5",
        "PATTERN SEQ(A a, B b, C c) WHERE a.x + b.x + c.x > 99 WITHIN 5",
    ],
)
def test_windows_that_are_tried_take_bounded_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["cepheid.diagnose.diagnose"], "MOST_TRIED", 20_000)
    work: list[int] = []
    plain = Subject.matches

    def counted(*given: Any) -> Any:
        found = plain(*given)
        work.append(found.counters["evaluations"])
        return found

    monkeypatch.setattr(Subject, "matches", counted)
    table = pa.table({"ts": range(900), "type": list("ABC") * 300, "x": [number * 7 % 30 for number in range(900)]})
    cepheid.why(table, text)
    assert max(work) <= 20_000
