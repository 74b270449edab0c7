"""FORECAST on drawn patterns, models and streams: batch = live = what the reference says, cut anywhere."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid import Exponential, Gamma, Model, Uniform, Weibull, forecast
from cepheid.model import GapDistribution
from reference.forecasts import Naive, Query, linear, naive_partial_matches, rest_of, ways

pytestmark = pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
CLOSE = 0.004  # the reference's grid is coarse, and gaps are short


def drawn_query(rng: random.Random) -> Query:
    names = iter("bcdefg")
    parts: list[Any] = [("one", "a")]
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["one", "one", "many", "maybe", "or", "not"])
        if kind == "or":
            parts.append(("or", ("one", next(names)), ("one", next(names))))
        elif kind == "maybe":
            parts.append(("maybe", ("one", next(names))))
        elif kind == "not" and parts[-1][0] not in ("maybe", "not"):
            parts.append(("not", next(names)))
        else:
            parts.append((kind if kind == "many" else "one", next(names)))
    if parts[-1][0] == "maybe" or (len(parts) == 2 and parts[1][0] == "maybe"):
        parts.append(("one", next(names)))
    plain = [part[1] for part in parts if part[0] == "one"]
    above = ((plain[-1], "a"),) if len(plain) > 1 and rng.random() < 0.5 else ()
    nexts = all(part[0] != "many" for part in parts) and rng.random() < 0.4
    return Query(tuple(parts), rng.randint(8, 16), above, nexts)


def drawn_gap(rng: random.Random) -> GapDistribution:
    share = rng.choice([1.0, 0.9, 0.6])
    mean = rng.uniform(2, 8)
    return rng.choice(
        [Exponential(mean, share), Gamma(2, mean / 2, share), Weibull(1.5, mean, share), Uniform(0.5, 2 * mean, share)]
    )


def drawn_model(rng: random.Random, query: Query) -> Model:
    """Losses are of what comes last: then nothing between two events that are held was missed."""
    sequences = linear(query.parts)
    last = {sequence[-1][1] for sequence in sequences if len(sequences) == 1}
    losses = {name: rng.choice([0.0, 0.2, 0.4]) if name in last else 0.0 for name in "abcdefg"}
    return Model(loss=losses, gaps={name: drawn_gap(rng) for name in "bcdefg"})


def drawn_events(rng: random.Random, query: Query, size: int = 14) -> pa.Table:
    types = sorted({name.upper() for sequence in linear(query.parts) for _, name in sequence})
    rows, at = [], 0
    for number in range(size):
        at += rng.choice([0, 1, 1, 2, 3])
        kind = "A" if rng.random() < 0.3 else rng.choice([*types, "Z"])
        rows.append({"ts": at, "type": kind, "id": rng.randint(1, 2), "x": rng.randint(0, 3), "n": number})
    return pa.Table.from_pylist(rows)


def key(held: dict[str, tuple[int, ...]], rows: list[dict[str, Any]]) -> str:
    return repr(sorted((name, sorted(map(repr, (rows[each] for each in group)))) for name, group in held.items()))


def key_of(row: dict[str, Any]) -> str:
    events = {name: value for name, value in row.items() if isinstance(value, dict | list) and value}
    groups = ((name, each if isinstance(each, list) else [each]) for name, each in events.items())
    return repr(sorted((name, sorted(map(repr, group))) for name, group in groups))


def compare(row: dict[str, Any], naive: Naive, at: int) -> None:
    probability, by = naive.forecast(at)
    if math.isnan(probability):
        return
    assert row["probability"] == pytest.approx(probability, abs=CLOSE)
    if probability < 0.01 or len(naive.mixed[0][1].groups[-1]):
        return
    for name, share in (("expected", 0.5), ("earliest", 0.05), ("latest", 0.95)):
        low, high = (np.searchsorted(by, share + off) / 8 for off in (-0.03, 0.03))
        assert low - 1.01 <= row[name] - naive.last <= high + 1.01, name
        assert row[name] - naive.last < naive.remaining, name


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(12))
def test_open_partial_matches_are_those_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    query = drawn_query(rng)
    model, events = drawn_model(rng, query), drawn_events(rng, query)
    rows = events.to_pylist()
    naive = naive_partial_matches(query, rows, model)
    newest = rows[-1]["ts"]
    for at in (newest // 2, newest, newest + 3):
        known = sum(row["ts"] <= at for row in rows)
        there = [each for each in naive if each.is_open(at) and max(map(max, each.held.values())) < known]
        expected = {key(each.held, rows): each for each in there}
        found = forecast(events, query.text(), model=model, at=at).to_pylist()
        assert sorted(key_of(row) for row in found) == sorted(expected), query.text()
        for row in found:
            compare(row, expected[key_of(row)], at)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(12))
def test_reports_are_those_of_the_reference(seed: int) -> None:
    """At the first instant at which the forecast reaches the threshold; in batches, and as events come in disorder."""
    rng = random.Random(100 + seed)
    query = drawn_query(rng)
    model, events = drawn_model(rng, query), drawn_events(rng, query)
    rows, asked = events.to_pylist(), rng.choice([0.3, 0.5, 0.7])
    text = query.text(asked)
    batch = cepheid.match(events, text, model=model).to_pylist()
    reported = {key_of(row): row for row in batch}
    assert len(reported) == len(batch)
    for each in naive_partial_matches(query, rows, model):
        moments = [at for at in range(each.last, each.last + each.remaining) if each.is_open(at)]
        chances = [(at, each.forecast(at)[0]) for at in moments]
        row = reported.pop(key(each.held, rows), None)
        surely = [at for at, chance in chances if chance >= asked + CLOSE]
        maybe = [at for at, chance in chances if chance >= asked - CLOSE]
        if row is None:
            assert not surely, (text, each.held)
            continue
        assert maybe, (text, each.held)
        assert maybe[0] <= row["forecast_at"] <= (surely[0] if surely else maybe[-1]), (text, each.held)
        compare(row, each, row["forecast_at"])
    assert not reported
    assert as_they_come(rng, events, text, model) == sorted(map(repr, batch))


def as_they_come(rng: random.Random, events: pa.Table, text: str, model: Model) -> list[str]:
    """The same from pieces, in disorder, restarted now and then."""
    delay, place, found = 4, 0, []
    order = events["ts"].to_numpy() + np.array([rng.randint(0, delay) for _ in range(len(events))])
    events = events.take(pa.array(order.argsort(kind="stable")))
    live = cepheid.live(text, events.schema, model=model, delay=delay)
    while place < len(events):
        size = rng.randint(1, 5)
        found += live.send(events.slice(place, size)).to_pylist()
        place += size
        if rng.random() < 0.4:
            live = cepheid.live(text, events.schema, model=model, delay=delay, state=live.save())
    found += live.finish().to_pylist()
    return sorted(map(repr, found))


def by_drawing(query: Query, model: Model, taken: list[str], elapsed: float, remaining: float) -> tuple[float, float]:
    """The share of drawn histories that complete, among those of which nothing was seen, and how far it may be off."""
    rng, size = np.random.default_rng(7), 60_000
    completing = unseen = 0.0
    for share, items, complete in ways(rest_of(query.parts, taken), model):
        last, fits, seen = np.zeros(size), np.full(size, complete), np.zeros(size, bool)
        absent: list[tuple[Any, Any]] = []
        for item in items:
            u = rng.random(size)
            grid = np.linspace(0, 4 * WINDOW, 4000)
            comes = last + np.where(u < item.gap.cdf(grid[-1]), np.interp(u, item.gap.cdf(grid), grid), np.inf)
            if item.negative:
                absent.append((comes, item))
                continue
            happens = np.isfinite(comes)
            seen |= happens & (comes <= elapsed) & (rng.random(size) >= item.loss)
            for at, each in absent:
                seen |= (at <= elapsed) & (at < comes) & (rng.random(size) >= each.loss)
                fits &= at >= comes
            absent, fits = [], fits & happens
            last = np.where(happens, comes, last)
        for at, each in absent:
            seen |= (at <= elapsed) & (rng.random(size) >= each.loss)
            fits &= at >= remaining
        completing += share * float((fits & (last <= remaining) & ~seen).sum())
        unseen += share * float((~seen).sum())
    return completing / max(unseen, 1.0), 0.005 + 2.0 / math.sqrt(max(unseen, 1.0))


WINDOW = 60


@pytest.mark.parametrize("seed", range(10))
def test_drawn_patterns_and_models_against_drawn_histories(seed: int) -> None:
    """What `forecast` says of a trip that has just begun, some time later."""
    rng = random.Random(200 + seed)
    query = replace(drawn_query(rng), window=WINDOW, above=(), skips_to_next=False)
    gaps = {name: replace(drawn_gap(rng), happens=rng.choice([1.0, 0.8, 0.5])) for name in "bcdefg"}  # type: ignore[type-var]
    simple = len(linear(query.parts)) == 1
    model = Model(loss={name: rng.choice([0.0, 0.3]) if simple else 0.0 for name in "abcdefg"}, gaps=gaps)
    for elapsed in (0, 7):
        table = pa.table({"ts": [100], "type": ["A"], "id": [1], "x": [0]})
        (row,) = forecast(table, query.text(), model=model, at=100 + elapsed).to_pylist()
        drawn, off = by_drawing(query, model, ["a"], elapsed, WINDOW)
        assert row["probability"] == pytest.approx(drawn, abs=off)
