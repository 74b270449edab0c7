"""Patterns built in Python are the same queries as their texts, and misuse is explained."""

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.build import (
    Expr,
    Pattern,
    any_of,
    attr,
    avg,
    call,
    col,
    count,
    equivalent,
    event,
    first,
    last,
    lit,
    max_,
    min_,
    only,
    param,
    seq,
    sum_,
    var,
)
from cepheid.language.check import check
from cepheid.language.expressions import node_of
from cepheid.language.sase.parse import parse
from queries.corpus import QUERIES


def same_as(text: str) -> s.QuerySyntax:
    return check(parse(text), text)


# --- the papers' queries --------------------------------------------------------------------------------------------


def _ayac_shoplifting() -> Pattern:
    x, y, z = event().as_("x"), event().as_("y"), event().as_("z")
    return (
        seq(x, ~y, z)
        .where(x["reader"] == "A", y["reader"] == "B", z["reader"] == "C")
        .where(x["id"].default(y["id"]) == y["id"], x["id"].default(z["id"]) == z["id"])
        .within(hours=12)
        .threshold(0.05)
    )


def _correlated(order: str) -> Pattern:
    stocks = {name: event("Stock").as_(name) for name in order}
    a, b, c = (stocks[name] for name in "abc")
    return (
        seq(*stocks.values())
        .where(a["ticker"].is_in(param("Finance")), b["ticker"].is_in(param("Hi-Tech")))
        .where(c["ticker"] == param("GOOG"))
        .where(call("Corr", a["history"], b["history"]) > param("T"))
        .where(call("Corr", b["history"], c["history"]) > param("T"))
        .within(param("h"))
    )


def _lazy_figure_1() -> Pattern:
    a, b, c = (event("E").as_(name) for name in "abc")
    return (
        seq(a, b, c)
        .where(a["ticker"] == param("MSFT"), b["ticker"] == param("GOOG"), c["ticker"] == param("AAPL"))
        .where(a["price"] < b["price"], b["price"] < c["price"])
        .within(timedelta(hours=4))
    )


def _sase_q2() -> Pattern:
    x, y, z = event("SHELF-READING").as_("x"), event("COUNTER-READING").as_("y"), event("EXIT-READING").as_("z")
    return seq(x, ~y, z).where((x["id"] == y["id"]) & (x["id"] == z["id"])).within(hours=12)


def _sase_misplaced() -> Pattern:
    x, y = event("SHELF-READING").as_("x"), event("SHELF-READING").as_("y")
    z = ~any_of("COUNTER-READING", "SHELF-READING").as_("z")
    return (
        seq(x, y, z)
        .where(equivalent("id"), x["shelf_id"] != y["shelf_id"], x["shelf_id"] == z["shelf_id"])
        .within(hours=1)
    )


def _sase_medicine() -> Pattern:
    x, y = event("MEDICINE-TAKEN").as_("x"), event("MEDICINE-TAKEN").as_("y")
    return (
        seq(x, y)
        .where(equivalent(name="John") & equivalent(medicine="Antibiotics") & (x["amount"] + y["amount"] > 1000))
        .within(hours=4)
    )


def _sase_q3() -> Pattern:
    x1, x2, x3, x4 = (event(kind).as_(f"x{sub}") for kind, sub in zip("ABCD", "₁₂₃₄", strict=True))
    return (
        seq(x1, x2, ~x3, x4)
        .where(equivalent("attr₁", "attr₂"), x1["attr₃"] == "1", x1["attr₄"] < x4["attr₄"])
        .within(param("T"))
    )


def _sase_parameterized() -> Pattern:
    x1, x2, x3 = (event(f"E{sub}").as_(f"x{sub}") for sub in "₁₂₃")
    return (
        seq(x1, x2, x3).where(equivalent("attr₁", "attr₂"), x1["attr₃"] == 5, x1["attr₄"] < x3["attr₄"]).within(10_000)
    )


def _synthetic(length: int, window: int, *tests: Expr) -> Pattern:
    return seq(*(event(f"E{sub}") for sub in "₁₂₃₄"[:length])).where(*tests).within(window)


def _sase_plus_q1() -> Pattern:
    a, b, c = event("Shelf").as_("a"), ~event("Register").as_("b"), event("Exit").as_("c")
    return (
        seq(a, b, c)
        .skip_till_next_match()
        .where(a["tag_id"] == b["tag_id"], a["tag_id"] == c["tag_id"])
        .within(hours=12)
    )


def _sase_plus_q2() -> Pattern:
    a, b = event("Alert").as_("a"), event("Shipment").plus().as_("b")
    return (
        seq(a, b)
        .skip_till_any_match(a, b)
        .where(a["type"] == "contaminated", b.first["from"] == a["site"], b.current["from"] == b.previous["to"])
        .within(hours=3)
    )


def _sase_plus_q3(aggregate: Callable[[object], Expr]) -> Pattern:
    a, b = event("Stock").one_or_more().as_("a"), event("Stock").as_("b")
    return (
        seq(a, b)
        .skip_till_next_match("a", "b")
        .where(equivalent("symbol"), a.first["volume"] > 1000, a.current["price"] > aggregate(a.before["price"]))
        .where(b["volume"] < 0.8 * a.last["volume"])
        .within(hours=1)
    )


def _table_1(strategy: str, iterator: Expr, window: int = 500, star: bool = False) -> Pattern:
    a, b, c = event("STOCK").plus().as_("a"), event("STOCK").as_("b"), event("STOCK").as_("c")
    pattern = seq(a, b, c) if star else seq(a, b)
    pattern = pattern.skip_till_next_match() if strategy == "s3" else pattern.partition_contiguity()
    pattern = pattern.where(equivalent("symbol"), a.first["price"] % 500 == 0, iterator, b["volume"] < 150)
    if star:
        pattern = pattern.where(c["price"] > a.first["price"], c["price"] < a.last["price"])
    return pattern.within(events=window)


def _time_q1() -> Pattern:
    a, b, c, d = (
        event(kind).as_(name) for kind, name in zip(["TaskStart", "CPU", "TaskFinish", "CPU"], "abcd", strict=True)
    )
    return (
        seq(a, b, c, d)
        .where(a["taskId"] == c["taskId"], b["nodeId"] == a["nodeId"], d["nodeId"] == a["nodeId"])
        .where(b["value"] > 0.95, d["value"] <= 0.7)
        .skip_till_any_match()
        .within(seconds=15)
        .returning(a, b, c)
    )


def _time_synthetic(*divisors: int) -> Pattern:
    events = [event(f"E{sub}").as_(f"e{sub}") for sub in "₁₂₃₄"[: len(divisors)]]
    tests = [one["value"] % divisor == 0 for one, divisor in zip(events, divisors, strict=True)]
    return seq(*events).where(*tests).within(100)


A = var("a")
TWINS: dict[str, Pattern] = {
    "ayac-shoplifting": _ayac_shoplifting(),
    "lazy-correlated-stocks": _correlated("abc"),
    "lazy-correlated-stocks-rarest-first": _correlated("cba"),
    "lazy-correlated-stocks-rarest-middle": _correlated("acb"),
    "lazy-figure-1": _lazy_figure_1(),
    "sase-any-in-sequence": seq(event("A₁"), event("A₂₁", "A₂₂"), event("A₃")),
    "sase-medicine-overdose": _sase_medicine(),
    "sase-misplaced-inventory": _sase_misplaced(),
    "sase-negation-at-the-end": seq(event("A"), ~event("B")).within(param("T")),
    "sase-negation-at-the-start": seq(~event("A"), event("B")).within(param("T")),
    "sase-negation-in-the-middle": seq(event("A"), ~event("B"), event("C")).within(param("T")),
    "sase-plus-p1-s2": _table_1("s2", lit(True)),
    "sase-plus-p1-s3": _table_1("s3", lit(True)),
    "sase-plus-p2-s2": _table_1("s2", A.current.price > A.previous.price),
    "sase-plus-p2-s3": _table_1("s3", A.current.price > A.previous.price, 2000),
    "sase-plus-p3-avg-s3": _table_1("s3", A.current.price > avg(A.before.price)),
    "sase-plus-p3-max-s2": _table_1("s2", A.current.price > max_(A.before.price)),
    "sase-plus-p3-min-s3": _table_1("s3", A.current.price > min_(A.before.price)),
    "sase-plus-p3-star-s2": _table_1("s2", A.current.price > min_(A.before.price), star=True),
    "sase-plus-p3-star-s3": _table_1("s3", A.current.price > min_(A.before.price), star=True),
    "sase-plus-q1-shoplifting": _sase_plus_q1(),
    "sase-plus-q2-contamination": _sase_plus_q2(),
    "sase-plus-q3-stock-trend": _sase_plus_q3(avg),
    "sase-plus-q3-stock-trend-max": _sase_plus_q3(max_),
    "sase-predicates-simple-and-parameterized": _sase_parameterized(),
    "sase-predicates-two-equivalence-tests": _synthetic(3, 10_000, equivalent("attr₁"), equivalent("attr₂")),
    "sase-q1-shelf-readings": only(event("SHELF-READING")).where(
        col("category") == "food", col("manufacturer_id") == "1"
    ),
    "sase-q2-shoplifting": _sase_q2(),
    "sase-q2-shoplifting-equivalence": seq(
        event("SHELF-READING").as_("x"), ~event("COUNTER-READING").as_("y"), event("EXIT-READING").as_("z")
    )
    .where(equivalent("id"))
    .within(hours=12),
    "sase-q3-query-plan": _sase_q3(),
    "sase-sequence-construction": _synthetic(3, 10_000, equivalent("attr₁")),
    "sase-sequence-construction-long-window": _synthetic(3, 100_000, equivalent("attr₁")),
    "sase-telegraphcq": _synthetic(3, 10_000, equivalent("attr₁")),
    "sase-telegraphcq-two-attributes": _synthetic(4, 10_000, equivalent("attr₁", "attr₂")),
    "time-q1-cluster-monitoring": _time_q1(),
    "time-synthetic": _time_synthetic(2, 3, 5),
    "time-synthetic-next-match": _time_synthetic(2, 2, 3, 3).skip_till_next_match(),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_printed_query_and_its_twin_are_equal(name: str) -> None:
    written, built = same_as(QUERIES[name].text), TWINS[name].to_syntax()
    assert built == written
    assert repr(built) == repr(written)


@pytest.mark.parametrize("name", QUERIES)
def test_a_built_pattern_prints_a_text_that_reads_back(name: str) -> None:
    assert same_as(str(TWINS[name])) == TWINS[name].to_syntax()


# --- each feature ---------------------------------------------------------------------------------------------------

a = event("A").as_("a")
b = event("B").as_("b")
group = event("G").one_or_more().as_("g")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (a["x"] + 1 - a["y"] * 2 / 3 > a["x"] % 2, "a.x + 1 - a.y * 2 / 3 > a.x % 2"),
        (1 + a["x"] - (2 - a["y"]) > 3 / a["x"], "1 + a.x - (2 - a.y) > 3 / a.x"),
        (2 * a["x"] >= 7 % a["y"], "2 * a.x >= 7 % a.y"),
        (-a["x"] <= +a["y"], "-a.x <= a.y"),
        (a["x"] == -lit(3), "a.x = -3"),
        (abs(a["x"]) != 3, "abs(a.x) != 3"),
        (a["x"] > 3, "a.x > 3"),
        (a["x"].is_in([1, 2]), "a.x IN (1, 2)"),
        (a["x"].is_in({2, 1, 3}), "a.x IN (1, 2, 3)"),
        (a["x"].is_in(range(3)), "a.x IN (0, 1, 2)"),
        (a["x"].is_not_in((1, b["x"])), "a.x NOT IN (1, b.x)"),
        (a["x"].is_not_in(param("Hi-Tech")), "a.x NOT IN Hi-Tech"),
        (a["x"].between(1, b["x"]), "a.x BETWEEN 1 AND b.x"),
        (a["x"].not_between(1, 2), "a.x NOT BETWEEN 1 AND 2"),
        (a["x"].is_null() | a["y"].is_not_null(), "a.x IS NULL OR a.y IS NOT NULL"),
        (~(a["x"] > 1) & ~a["flag"], "NOT a.x > 1 AND NOT a.flag"),
        ((a["x"] > 1) | (a["x"] > 2) | (a["x"] > 3), "a.x > 1 OR a.x > 2 OR a.x > 3"),
        (lit(True) & (a["x"] > 1), "TRUE AND a.x > 1"),
        (lit(False) | (a["x"] > 1), "FALSE OR a.x > 1"),
        (((a["x"] > 1) | (a["x"] > 2)) & (b["x"] > 3), "(a.x > 1 OR a.x > 2) AND b.x > 3"),
        (a["flag"] == True, "a.flag = TRUE"),  # noqa: E712
        (a["s"] == "it's", "a.s = 'it''s'"),
        (a["day"] == date(2026, 1, 31), "a.day = '2026-01-31'"),
        (a["ts"] > datetime(2026, 1, 31, 12, tzinfo=UTC), "a.ts > '2026-01-31T12:00:00+00:00'"),
        (a["x"] > np.int32(3), "a.x > 3"),
        (a["unit price"] > a["in"], "a.`unit price` > a.`in`"),
        (attr("a", "x") > var("b").x, "a.x > b.x"),
        (var("b").all_of_it > var("b")["first"], "b.all_of_it > b.`first`"),
        (var("b").node == var("b").name, "b.node = b.name"),
        (call("coalesce", a["x"], 0) > call("greatest", 1, 2), "coalesce(a.x, 0) > greatest(1, 2)"),
        (equivalent("id", "x", s="v", n=param("N")), "[id, x, s = 'v', n = N]"),
        (group["x"] > 1, "g.x > 1"),
        (group.first["x"] < group.last["x"], "g[1].x < g[g.LEN].x"),
        (group.current["x"] < group.previous["x"], "g[i].x < g[i-1].x"),
        (sum_(group.all["x"]) > avg(group.before["x"]), "sum(g[].x) > avg(g[..i-1].x)"),
        (first(group.all["x"]) > last(group["x"] + 1), "first(g[].x) > last(g.x + 1)"),
        (count(group) > count(group.all), "count(g) > count(g[])"),
        (group.length > 2, "g.LEN > 2"),
        (var("g").length > min_(var("g").all.x), "g.LEN > min(g[].x)"),
    ],
)
def test_conditions(condition: Expr, text: str) -> None:
    built = seq(a, group, b).where(condition).to_syntax()
    written = same_as(f"PATTERN SEQ(A a, G+ g[], B b) WHERE {text}")
    assert built == written
    assert repr(built) == repr(written)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (seq(a, b), "PATTERN SEQ(A a, B b)"),
        (seq(a), "PATTERN SEQ(A a)"),
        (only(a), "PATTERN A a"),
        (seq(event("A"), ~event("B", "C"), event("D")), "PATTERN SEQ(A, !(ANY(B, C)), D)"),
        (seq((~event("B")).as_("b"), a).within(3), "PATTERN SEQ(!(B b), A a) WITHIN 3"),
        (seq(~~a, b), "PATTERN SEQ(A a, B b)"),
        (seq(event().as_("x"), event().plus().as_("y")), "PATTERN SEQ(* x, *+ y[])"),
        (seq(any_of("A", "B").one_or_more().as_("x"), b), "PATTERN SEQ(ANY(A, B)+ x[], B b)"),
        (seq(seq(a).one_or_more(), b), "PATTERN SEQ(A+ a[], B b)"),
        (seq(event("in").as_("where"), b), "PATTERN SEQ(`in` `where`, B b)"),
        (seq(a, b).within(1.5), "PATTERN SEQ(A a, B b) WITHIN 1.5"),
        (seq(a, b).within(weeks=2), "PATTERN SEQ(A a, B b) WITHIN 2 weeks"),
        (seq(a, b).within(milliseconds=2), "PATTERN SEQ(A a, B b) WITHIN 2 ms"),
        (seq(a, b).within(timedelta(days=14)), "PATTERN SEQ(A a, B b) WITHIN 2 weeks"),
        (seq(a, b).within(timedelta(seconds=1.5)), "PATTERN SEQ(A a, B b) WITHIN 1500 milliseconds"),
        (seq(a, b).within(timedelta(microseconds=7)), "PATTERN SEQ(A a, B b) WITHIN 7 microseconds"),
        (seq(a, b).within(events=param("W")), "PATTERN SEQ(A a, B b) WITHIN W EVENTS"),
        (seq(a, b).within(np.int64(3)), "PATTERN SEQ(A a, B b) WITHIN 3"),
        (seq(a, b).within(3).within(4), "PATTERN SEQ(A a, B b) WITHIN 4"),
        (seq(a, b).strict_contiguity(), "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { }"),
        (seq(a, b).skip_till_next_match(a), "PATTERN SEQ(A a, B b) WHERE { } AND skip_till_next_match(a)"),
        (seq(a, b).confidence(1), "PATTERN SEQ(A a, B b) CONFIDENCE 100%"),
        (seq(a, b).non_overlap(), "PATTERN SEQ(A a, B b) OUTPUT NON-OVERLAP"),
        (seq(a, b).maximal(), "PATTERN SEQ(A a, B b) OUTPUT MAXIMAL"),
        (seq(a, b).top(5), "PATTERN SEQ(A a, B b) OUTPUT TOP 5 BY CONFIDENCE"),
        (seq(a, b).top(5).all_matches(), "PATTERN SEQ(A a, B b)"),
        (seq(a, b).where(), "PATTERN SEQ(A a, B b)"),
        (seq(a, b).where(lit(True)), "PATTERN SEQ(A a, B b) WHERE TRUE"),
        (
            seq(a, group).returning(a, group, a["x"].alias("in"), group.all["x"].alias("xs"), n=count(group)),
            "PATTERN SEQ(A a, G+ g[]) RETURN a, g, a.x AS `in`, g[].x AS xs, count(g) AS n",
        ),
        (seq(a, group).returning(group.first, end=group.last), "PATTERN SEQ(A a, G+ g[]) RETURN g[1], g[g.LEN] AS end"),
    ],
)
def test_patterns(pattern: Pattern, text: str) -> None:
    assert pattern.to_syntax() == same_as(text)
    assert same_as(str(pattern)) == same_as(text)


def test_every_method_returns_a_new_pattern() -> None:
    pattern = seq(a, b)
    before = str(pattern)
    pattern.where(a["x"] > 1).within(3).threshold(0.5).confidence(0.5).returning(a).top(3).skip_till_next_match()
    a.one_or_more().as_("other")
    assert str(pattern) == before
    assert repr(a) == "<Event A a>"


def test_a_condition_can_be_shared_and_reused() -> None:
    condition = a["x"] > 1
    assert str(seq(a, b).where(condition, condition)).count("a.x > 1") == 2
    assert node_of(condition) == node_of(a["x"] > 1)


def test_to_syntax_checks_like_the_text() -> None:
    with pytest.raises(QueryError, match="no variable 'c'") as raised:
        seq(a, b).where(var("c").x > 1).to_syntax()
    assert raised.value.code == "unknown-variable"


def test_expressions_too_deep_for_python_are_refused() -> None:
    total = a["x"]
    for _ in range(10_000):
        total = total + 1
    with pytest.raises(QueryError, match="nested more than 100 levels deep"):
        seq(a, b).where(total > 1).to_syntax()


def test_everything_survives_copying_and_pickling() -> None:
    pattern = seq(a, group).where(group.first["x"] > var("a").y)
    for other in (copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern))):
        assert other == pattern
    for thing in (a, group, a["x"] > 1, var("a"), group.first):
        assert repr(pickle.loads(pickle.dumps(thing))) == repr(thing)


def test_reprs_show_the_text() -> None:
    assert repr(seq(a, b).within(3)) == "<Pattern PATTERN SEQ(A a, B b) WITHIN 3>"
    assert repr(a["x"].alias("in")) == "<Aliased a.x AS `in`>"
    assert repr(~event()) == "<Event !(*)>"


def test_an_event_says_how_its_attributes_are_written() -> None:
    with pytest.raises(AttributeError, match=r"write \['price'\] for the attribute 'price'"):
        a.price  # noqa: B018


# --- misuse (the texts of the errors are in test_errors.py) -----------------------------------------------------------


@pytest.mark.parametrize(
    ("misuse", "code"),
    [
        (lambda: a["x"] > 1 and b["x"] > 1, "python-boolean"),
        (lambda: not a["x"], "python-boolean"),
        (lambda: 1 < a["x"] < 3, "python-boolean"),
        (lambda: a["x"] in [b["x"]], "python-boolean"),
        (lambda: (a["x"] > 1) & b["x"] > 1 & a["y"], "python-precedence"),
        (lambda: a["x"] == None, "compared-with-none"),  # noqa: E711
        (lambda: a["x"] > [1], "bad-value"),
        (lambda: a["x"] > float("nan"), "bad-value"),
        (lambda: a["x"] > a["y"].alias("y"), "bad-value"),
        (lambda: a["x"] > 10**38, "bad-number"),
        (lambda: a["x"].is_in([]), "bad-value"),
        (lambda: a["x"].is_in("abc"), "bad-value"),
        (lambda: a["x"].is_in(3), "bad-value"),
        (lambda: equivalent(x=a["x"]), "bad-value"),
        (lambda: equivalent(), "bad-name"),
        (lambda: a[0], "bad-name"),
        (lambda: list(var("a")), "bad-name"),
        (lambda: event(""), "bad-name"),
        (lambda: event("A").as_(""), "bad-name"),
        (lambda: call("a b", 1), "bad-name"),
        (lambda: (a["x"] + 1).default(3), "bad-default"),
        (lambda: a["x"].default(1).default(2), "bad-default"),
        (lambda: event("A")["x"], "unnamed-event"),
        (lambda: seq(event("A").plus(), b), "missing-variable"),
        (lambda: seq(event(), b), "missing-variable"),
        (lambda: seq("A", "B"), "bad-pattern"),  # type: ignore[arg-type]
        (lambda: seq(), "bad-pattern"),
        (lambda: any_of(), "bad-pattern"),
        (lambda: only([a]), "bad-pattern"),  # type: ignore[arg-type]
        (lambda: seq(a, b).where("a.x > 1"), "bad-condition"),  # type: ignore[arg-type]
        (lambda: seq(a, b).where(a == b), "bad-condition"),  # type: ignore[arg-type]
        (lambda: seq(a, b).where(var("a").default == 3), "bad-condition"),  # type: ignore[comparison-overlap]
        (lambda: (a["x"] > 1) & True, "python-precedence"),
        (lambda: seq(a, b).within(), "bad-window"),
        (lambda: seq(a, b).within(3, hours=4), "bad-window"),
        (lambda: seq(a, b).within(hours=1, minutes=30), "bad-window"),
        (lambda: seq(a, b).within(0), "bad-window"),
        (lambda: seq(a, b).within(True), "bad-window"),
        (lambda: seq(a, b).within(a["x"]), "bad-window"),
        (lambda: seq(a, b).within(timedelta(0)), "bad-window"),
        (lambda: seq(a, b).within(fortnights=2), "unknown-unit"),
        (lambda: seq(a, b).threshold(5), "bad-probability"),
        (lambda: seq(a, b).confidence(float("nan")), "bad-probability"),
        (lambda: seq(a, b).top(0), "bad-output"),
        (lambda: seq(a, b).top(2.5), "bad-output"),  # type: ignore[arg-type]
        (lambda: seq(a, b).returning(), "bad-return"),
    ],
)
def test_misuse(misuse: Callable[[], object], code: str) -> None:
    with pytest.raises(QueryError) as raised:
        misuse()
    assert raised.value.code == code


def test_an_event_is_not_compared_by_accident() -> None:
    query = seq(a, b).where(a["value"] > b).to_syntax()
    with pytest.raises(QueryError, match=r"an event is not a value; name an attribute, such as b\.x"):
        bind(query, QUERIES["time-synthetic"].schema)
