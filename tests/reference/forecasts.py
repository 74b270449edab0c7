"""What FORECAST means (docs/semantics.md, forecasts), as slow, plain Python: nothing here knows the engine.

A pattern is a nested tuple: ("one", name), ("not", name), ("many", name), ("maybe", part, ...), ("or", part, ...). The
events of a component have its name in capitals as their type, and all events of a match the same id. Histories are
followed forwards in time, on a fine grid of instants: what happens, when, and whether it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from cepheid.model import GapDistribution, Model

Part = tuple[Any, ...]
Event = dict[str, Any]
FINE = 8  # points in a step of time


@dataclass(frozen=True)
class Query:
    """A pattern with a window and conditions that compare `x` of two components."""

    parts: tuple[Part, ...]
    window: int
    above: tuple[tuple[str, str], ...] = ()  # (c, a): c.x >= a.x
    skips_to_next: bool = False

    def text(self, forecast: float | None = None) -> str:
        """The query as text."""
        where = ["[id]", *(f"{later}.x >= {earlier}.x" for later, earlier in self.above)]
        strategy = "skip_till_next_match { " if self.skips_to_next else ""
        ending = f" FORECAST {forecast:.0%}" if forecast is not None else ""
        body = ", ".join(map(_text, self.parts))
        return (
            f"PATTERN SEQ({body}) WHERE {strategy}{' AND '.join(where)}{' }' if strategy else ''} WITHIN {self.window}"
            + ending
        )


def _text(part: Part) -> str:
    kind, *inner = part
    match kind:
        case "one":
            return f"{inner[0].upper()} {inner[0]}"
        case "not":
            return f"!({inner[0].upper()} {inner[0]})"
        case "many":
            return f"{inner[0].upper()}+ {inner[0]}[]"
        case "maybe":
            return f"{_text(inner[0])[0]}? {inner[0][1]}" if len(inner) == 1 else f"({', '.join(map(_text, inner))})?"
    return f"({' | '.join(map(_text, inner))})"


# --- which partial matches are there? ---------------------------------------------------------------------------------


def linear(parts: Sequence[Part]) -> list[tuple[tuple[str, str], ...]]:
    """All sequences that a pattern stands for, as (kind, name)."""
    found: list[tuple[tuple[str, str], ...]] = [()]
    for kind, *inner in parts:
        if kind in ("one", "not", "many"):
            options: list[tuple[tuple[str, str], ...]] = [((kind, inner[0]),)]
        elif kind == "maybe":
            options = [(), *linear(inner)]
        else:
            options = [each for part in inner for each in linear([part])]
        found = [(*head, *tail) for head in found for tail in options]
    return found


def partial_matches(
    query: Query, events: Sequence[Event]
) -> Iterator[tuple[dict[str, tuple[int, ...]], tuple[Any, ...]]]:
    """All that hold the beginning of some sequences, with these sequences from there on."""
    sequences = linear(query.parts)
    beginnings: dict[tuple[str, ...], list[tuple[tuple[str, str], ...]]] = {}
    for each in sequences:
        places = [place for place, (kind, _) in enumerate(each) if kind != "not"]
        for place in places:
            names = tuple(name for kind, name in each[: place + 1] if kind != "not")
            beginnings.setdefault(names, []).append(each)
    for names, agreeing in beginnings.items():
        rests = []
        for each in agreeing:
            place = next(i for i, (_, name) in enumerate(each) if name == names[-1])
            rests.append(each[place + 1 :])
        if () in rests:
            continue  # it is a match
        kinds = {name: kind for each in agreeing for kind, name in each}
        for held in _assignments(query, events, names, kinds, agreeing[0]):
            yield held, tuple(rests)


def _assignments(
    query: Query, events: Sequence[Event], names: Sequence[str], kinds: dict[str, str], sequence: Any
) -> Iterator[dict[str, tuple[int, ...]]]:
    """All ways to give these components events, in order, within the window, with what must not happen absent."""

    def extend(held: dict[str, tuple[int, ...]], place: int) -> Iterator[dict[str, tuple[int, ...]]]:
        if place == len(names):
            yield held
            return
        name = names[place]
        for group in _groups(query, events, held, name, kinds[name] == "many"):
            grown = {**held, name: group}
            if place and _violated(query, events, held, grown, name, sequence):
                continue
            if place and query.skips_to_next:
                passed = _passed(query, events, held)
                if any(events[each]["ts"] < events[group[0]]["ts"] for each in passed):
                    continue
            yield from extend(grown, place + 1)

    yield from extend({}, 0)


def _last(held: dict[str, tuple[int, ...]]) -> int:
    return max(group[-1] for group in held.values())


def _first(held: dict[str, tuple[int, ...]]) -> int:
    return min(group[0] for group in held.values())


def can_take(query: Query, events: Sequence[Event], held: dict[str, tuple[int, ...]], name: str, row: int) -> bool:
    """Is an event one of a component, by all that is known?"""
    event = events[row]
    if event["type"] != name.upper():
        return False
    if held and event["id"] != events[_first(held)]["id"]:
        return False
    for later, earlier in query.above:
        if later == name and earlier in held and not event["x"] >= events[held[earlier][0]]["x"]:
            return False
    return True


def _groups(
    query: Query, events: Sequence[Event], held: dict[str, tuple[int, ...]], name: str, many: bool
) -> Iterator[tuple[int, ...]]:
    after = events[_last(held)]["ts"] if held else -1
    able = [
        row
        for row in range(len(events))
        if events[row]["ts"] > after
        and can_take(query, events, held, name, row)
        and (not held or events[row]["ts"] - events[_first(held)]["ts"] < query.window)
    ]
    if not many:
        yield from ((row,) for row in able)
        return
    for chosen in product((False, True), repeat=len(able)):
        rows = tuple(row for row, taken in zip(able, chosen, strict=True) if taken)
        times = [events[row]["ts"] for row in rows]
        if (
            rows
            and times == sorted(set(times))
            and times[-1] - (events[_first(held)]["ts"] if held else times[0]) < query.window
        ):
            yield rows


def _violated(query: Query, events: Sequence[Event], held: Any, grown: Any, name: str, sequence: Any) -> bool:
    """Did something happen between the last event held and the next that must not?"""
    names = [each for _, each in sequence]
    last_name = max(held, key=lambda each: held[each][-1])
    between = sequence[names.index(last_name) + 1 : names.index(name)]
    low, high = events[_last(held)]["ts"], events[grown[name][0]]["ts"]
    return any(
        kind == "not" and low < events[row]["ts"] < high and can_take(query, events, held, absent, row)
        for kind, absent in between
        for row in range(len(events))
    )


def _passed(query: Query, events: Sequence[Event], held: dict[str, tuple[int, ...]]) -> list[int]:
    """The events after the last one that some sequence that agrees with what is held could take next."""
    names = set()
    for each in linear(query.parts):
        positive = [one for kind, one in each if kind != "not"]
        if positive[: len(held)] == list(held) and len(positive) > len(held):
            names.add(positive[len(held)])
    low, start = events[_last(held)]["ts"], events[_first(held)]["ts"]
    return [
        row
        for row in range(len(events))
        if low < events[row]["ts"] < start + query.window
        and any(can_take(query, events, held, other, row) for other in names)
    ]


def ends(query: Query, events: Sequence[Event], held: dict[str, tuple[int, ...]], rests: Sequence[Any]) -> float:
    """When an event came that an awaited component could take, or that must not come before the next one."""
    needed = [_needed(rest, rests) for rest in rests]
    found = [np.inf]
    last, low = max(held, key=lambda each: held[each][-1]), events[_last(held)]["ts"]
    for rest in needed:
        positive = False
        for kind, name in rest:
            if kind == "not" and positive:
                continue
            positive |= kind != "not"
            found += [
                events[row]["ts"]
                for row in range(len(events))
                if events[row]["ts"] > low and can_take(query, events, held, name, row)
            ]
    if any(("many", last) in each for each in linear(query.parts)):  # an open group takes one more
        others = {name: group for name, group in held.items() if name != last}
        start = events[_first(held)]["ts"]
        found += [
            events[row]["ts"]
            for row in range(len(events))
            if low < events[row]["ts"] < start + query.window and can_take(query, events, others or held, last, row)
        ]
    return float(min(found))


def _needed(rest: Any, rests: Sequence[Any]) -> Any:
    """A sequence up to where it is complete: what is optional at the end is not awaited."""
    shorter = [each for each in rests if len(each) < len(rest) and rest[: len(each)] == each]
    return min(shorter, key=len, default=rest)


# --- how likely are they to complete? ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Awaited:
    """A component that is awaited, or must not happen: its loss, its gap, and the share of trips that go on to it."""

    name: str
    negative: bool
    loss: float
    gap: GapDistribution
    goes_on: float = 1.0


def ways(parts: Sequence[Part], model: Model) -> list[tuple[float, list[Awaited], bool]]:
    """How a partial match may go on: a share, the components, and whether it is a match with them."""
    found: list[tuple[float, list[Awaited], bool]] = [(1.0, [], True)]
    for kind, *inner in parts:
        options: list[tuple[float, list[Awaited], bool]]
        if kind in ("one", "not", "many"):
            name = inner[0]
            gap, loss = model.gap_of(name), model.loss_of(name)
            options = [(1.0, [Awaited(name, kind == "not", loss, gap, model.goes_on.get(name, 1.0))], True)]
        else:
            branches = [ways(inner, model)] if kind == "maybe" else [ways([part], model) for part in inner]
            options = []
            for share, items, complete in (each for branch in branches for each in branch):
                certain = replace(items[0], gap=replace(items[0].gap, happens=1.0))  # type: ignore[type-var]
                options.append((share * items[0].gap.happens, [certain, *items[1:]], complete))
            total = sum(share for share, _, _ in options)
            options = [(share / max(total, 1.0), items, complete) for share, items, complete in options]
            options.append((1.0 - sum(share for share, _, _ in options), [], kind == "maybe"))
        found = [
            (share * more, [*items, *others], complete and also)
            for share, items, complete in found
            for more, others, also in options
        ]
    return found


def rest_of(parts: Sequence[Part], taken: Sequence[str]) -> tuple[Part, ...]:
    """What a pattern awaits behind what was taken; optional parts at the end are not awaited."""
    rest = list(parts)
    for name in taken:
        while name not in _names(rest[0]):
            rest.pop(0)
        kind, *inner = rest.pop(0)
        if kind == "maybe":
            rest = [*rest_of(inner, [name]), *rest] if len(inner) > 1 else rest
        elif kind == "or":
            (branch,) = [each for each in inner if name in _names(each)]
            rest = [*rest_of([branch], [name]), *rest]
    while rest and rest[-1][0] == "maybe":
        rest.pop()
    return tuple(rest)


def _names(part: Part) -> list[str]:
    kind, *inner = part
    return [inner[0]] if kind in ("one", "not", "many") else [name for each in inner for name in _names(each)]


class Histories:
    """The weights of all histories of one way, from an event at 0 to the end of a window, on a grid."""

    def __init__(self, items: Sequence[Awaited], length: int) -> None:
        self.positives = [item for item in items if not item.negative]
        self.groups: list[list[Awaited]] = [[]]
        for item in items:
            if item.negative:
                self.groups[-1].append(item)
            else:
                self.groups.append([])
        self.size, self.step, self.length = length * FINE, 1.0 / FINE, length
        self.at = (np.arange(self.size) + 0.5) * self.step  # everything happens in the middle of a cell
        self.unseen = self._forward(bypass=True)
        self.own_unseen = self._forward(bypass=False)

    def masses(self, gap: GapDistribution) -> tuple[Any, Any]:
        """The chance of each cell from 0 on, and of so many cells after the middle of one."""
        edges = np.arange(self.size + 1) * self.step
        middles = np.maximum((np.arange(self.size) - 0.5) * self.step, 0.0)
        return np.diff(gap.cdf(edges)), gap.cdf((np.arange(self.size) + 0.5) * self.step) - gap.cdf(middles)

    def _forward(self, bypass: bool) -> list[Any]:
        """By component, the weight of its being the last that happened, unseen, in each cell.

        Without `bypass`, of the histories alone that are the beginning of a match.
        """
        states = [np.zeros(self.size) for _ in self.positives]
        for to, item in enumerate(self.positives):
            from_start, from_middle = self.masses(item.gap)
            for origin in range(-1, to):
                if origin < to - 1 and not bypass:
                    continue
                skipped = self.positives[origin + 1 : to]
                weight = item.goes_on * float(np.prod([each.goes_on * (1 - each.gap.happens) for each in skipped]))
                absent = [each for group in self.groups[origin + 1 : to + 1] for each in group]
                held = hidden if bypass else lasting
                if origin < 0:
                    states[to] += weight * item.loss * from_start * held(absent, self.at)
                else:
                    kernel = from_middle * held(absent, np.arange(self.size) * self.step)
                    states[to] += weight * item.loss * np.convolve(states[origin], kernel)[: self.size]
        return states

    def nothing_seen(self, u: int) -> float:
        """The weight of all histories in which nothing was seen until u."""
        total = 0.0
        for origin in range(-1, len(self.positives)):
            masses, waits = self._until(self.unseen, origin, u)
            left = np.zeros(len(waits))
            bypassed = 1.0
            for to in range(origin + 1, len(self.positives)):
                item = self.positives[to]
                absent = hidden([each for group in self.groups[origin + 1 : to + 1] for each in group], waits)
                later = np.maximum(item.gap.survival(waits) - (1 - item.gap.happens), 0.0)
                left += bypassed * absent * (item.goes_on * later + 1 - item.goes_on)
                bypassed *= item.goes_on * (1 - item.gap.happens)
            every = hidden([each for group in self.groups[origin + 1 :] for each in group], waits)
            total += float((masses * (left + bypassed * every)).sum())
        return total

    def completes(self, u: int) -> Any:
        """The weight of the histories that are matches, by the cell in which they complete."""
        size = self.size
        found = np.zeros(size + 1)
        number = len(self.positives)
        later = [np.zeros(size) for _ in self.positives]  # of those that happen after u
        for to in range(number):
            item = self.positives[to]
            from_start, from_middle = self.masses(item.gap)
            if to == 0:
                came = from_start * lasting(self.groups[0], self.at)
            else:
                before = np.where(np.arange(size) < u * FINE, self.own_unseen[to - 1], later[to - 1])
                kernel = from_middle * lasting(self.groups[to], np.arange(size) * self.step)
                came = np.convolve(before, kernel)[:size]
            later[to] = np.where(np.arange(size) >= u * FINE, item.goes_on * came, 0.0)
        if number == 0:
            found[-1] = lasting(self.groups[0], np.array([float(self.length)]))[0]
            return found
        done = later[-1] + np.where(np.arange(size) < u * FINE, self.own_unseen[-1], 0.0)
        if self.groups[-1]:
            found[-1] = float((done * lasting(self.groups[-1], self.length - self.at)).sum())
        else:
            found[:size] = done
        return found

    def _until(self, states: list[Any], origin: int, u: int) -> tuple[Any, Any]:
        if origin < 0:
            return np.ones(1), np.array([float(u)])
        past = u * FINE
        return states[origin][:past], u - self.at[:past]


def hidden(items: Sequence[Awaited], t: Any) -> Any:
    """The chance that nothing of some components was seen."""
    return np.prod([item.loss * item.gap.cdf(t) + item.gap.survival(t) for item in items], axis=0) * np.ones_like(t)


def lasting(items: Sequence[Awaited], t: Any) -> Any:
    """The chance that none of some components happened."""
    return np.prod([item.gap.survival(t) for item in items], axis=0) * np.ones_like(t)


@dataclass(frozen=True)
class Naive:
    """A partial match: its events, when it ended, and its forecast at any time while it is open."""

    held: dict[str, tuple[int, ...]]
    last: int
    remaining: int
    ended: float
    mixed: tuple[tuple[float, Histories, bool], ...]

    def forecast(self, at: int) -> tuple[float, Any]:
        """The probability that it completes, and by when with which share; not a number: that cannot be."""
        u = at - self.last
        below = sum(share * each.nothing_seen(u) for share, each, _ in self.mixed)
        by = sum(share * each.completes(u) for share, each, complete in self.mixed if complete)
        if below < 1e-9:
            return float("nan"), np.ones(1)
        return float(np.sum(by) / below), np.cumsum(by) / max(float(np.sum(by)), 1e-300)

    def is_open(self, at: int) -> bool:
        """Is it there at an instant?"""
        return self.last <= at < self.last + self.remaining and at < self.ended


def naive_partial_matches(query: Query, events: Sequence[Event], model: Model) -> list[Naive]:
    """All partial matches that there ever are; nothing between the events of one was missed."""
    found = []
    known: dict[Any, tuple[tuple[float, Histories, bool], ...]] = {}
    for held, rests in partial_matches(query, events):
        last, first = events[_last(held)]["ts"], events[_first(held)]["ts"]
        remaining = first + query.window - last
        key = tuple(held), remaining
        if key not in known:
            mixed = ways(rest_of(query.parts, list(held)), model)
            known[key] = tuple((share, Histories(items, remaining), complete) for share, items, complete in mixed)
        found.append(Naive(held, last, remaining, ends(query, events, held, rests), known[key]))
    return found
