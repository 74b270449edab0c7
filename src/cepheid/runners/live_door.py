"""Single events that decide nothing wait, so that they cost some look-ups instead of a search.

A dict that is sent to a live query is looked at in plain Python: is it an event as the schema has it, does a query
mention its type, and does time pass an event that may be the last one of a match? Until it does, events wait. Then all
of them go to the search as one table. So no match is told later than it would be without waiting, and the search sees
the same events.

Whether an event may be the last one of a match is judged by types, key and window: for every key and component, the
latest first event of a chain that has come as far. Of expressions, only the first and the last components are looked
at. Conditions are left to the search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.pattern import edge, fewest, without
from cepheid.plan.physical import Plan
from cepheid.plan.python_calls import calls_user_functions
from cepheid.runners.composition import lateness
from cepheid.runners.events_of_each import types_of
from cepheid.runners.live_dicts import FAR, instant_of, kinds_of
from cepheid.runners.live_events import EventReader

MOST_WAITING = 1_000  # events go to the search in tables of this size, whether or not they decide anything
MANY_KEYS = 10_000  # of one component, before it is looked which of them the window has passed
_KEYS = (pa.int64(), pa.string(), pa.bool_())  # types whose values are equal in Python as they are in a search
Event: TypeAlias = dict[str, Any]


class Chain:
    """How far the events of each key have come: the latest first event of a chain, by component."""

    def __init__(self, length: int, keys: Sequence[str], window: int) -> None:
        self.length, self.window = length, window
        self.key = keys[0] if len(keys) == 1 else None
        self.keys = tuple(keys)
        self.latest: list[dict[Any, int]] = [{} for _ in range(length)]
        self.most = MANY_KEYS

    def ends(self, place: int, event: Event, time: int) -> bool:
        """Takes an event in at a component; may it be the last one of a match?"""
        key = event.get(self.key) if self.key is not None else tuple([event.get(name) for name in self.keys])
        first = time
        if place:
            found = self.latest[place - 1].get(key)
            if found is None or time - found > self.window:
                return False
            first = found
        if place + 1 == self.length:
            return True
        known = self.latest[place]
        known[key] = first
        if len(known) > self.most:
            self._forget(time - self.window)
        return False

    def _forget(self, oldest: int) -> None:
        """Leaves out what the window has passed."""
        self.latest = [{key: first for key, first in known.items() if first >= oldest} for known in self.latest]
        self.most = max(MANY_KEYS, 2 * max(map(len, self.latest)))


class Entry(NamedTuple):
    """What the queries do with events of a type."""

    chains: tuple[tuple[Chain, int], ...] = ()  # with the component, the last ones first
    last: bool = False  # is it the last component's of any query?
    ends: bool = False  # is it so of a query for which nothing more can be told?


class Mark(NamedTuple):
    """How many events of the door the search has seen: of those that waited, and of those that no query mentions."""

    waited: int = 0
    unmentioned: int = 0


class Door:
    """Looks at single events, and keeps those that wait."""

    def __init__(self, plans: Sequence[Plan], reader: EventReader, delay: int) -> None:
        schema = plans[0].bound.schema
        assert schema.type is not None
        self.time, self.type, self.delay = schema.time, schema.type, delay
        self.names = frozenset(reader.given.names)
        self.kinds = kinds_of(reader.given, self.time)
        kind = reader.given.field(self.time).type
        self.whole, self.zoned = pa.types.is_integer(kind), getattr(kind, "tz", None) is not None
        self.entries, self.others = _entries([plan.bound for plan in plans], reader.given)
        self.window = max(_window(plan.bound) for plan in plans)
        self.waiting: list[Event] = []
        self.first = 0  # how many waited before the first event in `waiting`
        self.passed = 0  # how many events no query mentions...
        self.latest: Event | None = None  # ...and the latest of them, as it tells the time
        self.newest = FAR  # closed
        self.finals: deque[int] = deque()  # times of events that may be the last ones of a match
        self.unknown_until = -FAR  # up to then, matches may hold events that did not come through here...
        self.undecided = -FAR  # ...and up to then they may end with one

    def waits(self, event: Event, until: int | None, seen: Mark) -> bool | None:
        """Takes an event in if it decides nothing; False if it does, None if it has to be read in another way."""
        given: Any = event.get(self.time)
        time: int = given if self.whole and type(given) is int else instant_of(given, self.whole, self.zoned)
        if not self.newest <= time < FAR or not self._fits(event):
            return None
        if seen.waited != self.first or self.finals:
            self._trim(until, seen)
        entry = self.entries.get(event.get(self.type), self.others)
        decides = bool(self.finals) and time > self.finals[0] + self.delay
        decides |= until is not None and until < self.undecided
        self.newest = time
        if entry is not None and self._may_end(entry, event, time):
            self.finals.append(time)
        if decides or len(self.waiting) >= MOST_WAITING:
            return False
        if entry is not None:
            self.waiting.append(event.copy())  # the caller may use it again
        else:
            self.latest = event.copy()
            self.passed += 1
        return True

    def _fits(self, event: Event) -> bool:
        """Is it an event of the schema that a table takes as it is?"""
        if not self.names >= event.keys():
            return False
        for name, kinds in self.kinds:
            value: Any = event.get(name)
            kind = type(value)
            if kind not in kinds or (kind is int and not -(2**63) <= value < 2**63):
                return False
        return True

    def _may_end(self, entry: Entry, event: Event, time: int) -> bool:
        found = entry.ends or (entry.last and time <= self.unknown_until)
        for chain, place in entry.chains:
            found |= chain.ends(place, event, time)
        return found

    def _trim(self, until: int | None, seen: Mark) -> None:
        """Leaves out what the search has seen, and what time has passed."""
        if seen.waited > self.first:
            del self.waiting[: seen.waited - self.first]
            self.first = seen.waited
        while self.finals and until is not None and self.finals[0] <= until:
            self.finals.popleft()

    # --- to the search ------------------------------------------------------------------------------------------------

    def unseen(self, seen: Mark) -> tuple[list[Event], int, Mark]:
        """The events that the search has not seen, how many more no query mentions, and the mark behind all of them."""
        events, passed = self.waiting[seen.waited - self.first :], self.passed - seen.unmentioned
        if passed and self.latest is not None:
            events, passed = [*events, self.latest], passed - 1
        return events, passed, Mark(self.first + len(self.waiting), self.passed)

    # --- events that come in another way ------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Have events come in another way since it was opened?"""
        return self.newest >= FAR

    def close(self) -> None:
        """Events come in another way: until it is opened, none may wait."""
        self.newest = FAR

    def open(self, newest: int | None, until: int | None) -> None:
        """Events may wait again. Those that came in another way are at most as new as `newest`."""
        known = [each for each in (newest, None if until is None else until + 1) if each is not None]
        self.newest = max(known, default=-FAR)
        self.unknown_until = self.newest + self.window if known else -FAR
        self.undecided = self.newest

    @property
    def place(self) -> tuple[int, int]:
        """How many events have come through."""
        return self.first + len(self.waiting), self.passed

    def go_back(self, place: tuple[int, int]) -> None:
        """Forgets the events that have come since then."""
        waited, self.passed = place
        del self.waiting[waited - self.first :]


def door_for(plans: Sequence[Plan], reader: EventReader, delay: int) -> Door | None:
    """The door of a live query; None where every event may decide something, or has to be read with care."""
    options, schema = reader.options, plans[0].bound.schema
    special = options.bad_records or options.dedupe or options.row_column or options.ignore_case
    if special or reader.most_ahead is not None or schema.type is None or not schema.is_timed_exactly:
        return None
    if not all(_waits(plan) for plan in plans):
        return None
    if any(calls_user_functions(plan.bound) for plan in plans):  # an event that raises an error must not wait
        return None
    kind = reader.given.field(schema.time).type
    plain = kind == pa.int64() or (pa.types.is_timestamp(kind) and kind.unit == "us")
    typed = reader.given.field(schema.type).type == pa.string()
    return Door(plans, reader, delay) if plain and typed else None


def _waits(plan: Plan) -> bool:
    """Are matches known as soon as time has passed their last event?"""
    return lateness(plan) == 0 and plan.bound.summary is None and not plan.is_lossy


def _window(bound: BoundQuery) -> int:
    """How long a match can last; a window that counts events may last for ever."""
    return FAR // 4 if bound.window is None or bound.window.events else bound.window.length


def _entries(queries: Sequence[BoundQuery], columns: pa.Schema) -> tuple[dict[Any, Entry], Entry | None]:
    """What is done with the events of each type that a query mentions, and with all others; None: nothing."""
    kinds = {name for query in queries for part in query.components for name in part.types or ()}
    every = any(types_of(query) is None for query in queries)
    chains = [_chain(query, columns) for query in queries]
    entries = {kind: _entry(kind, zip(queries, chains, strict=True)) for kind in kinds}
    others = _entry(None, zip(queries, chains, strict=True)) if every else None
    return entries, others


def _entry(kind: str | None, queries: Iterable[tuple[BoundQuery, Chain | None]]) -> Entry:
    chains: list[tuple[Chain, int]] = []
    last = ends = False
    for query, chain in queries:
        stages = _stages(query)
        places = [place for place, parts in enumerate(stages) if any(_takes(part, kind) for part in parts)]
        final = len(stages) - 1 in places
        last |= final
        if chain is None:
            ends |= final
        else:
            chains += [(chain, place) for place in reversed(places)]
    return Entry(tuple(chains), last, ends)


def _takes(component: s.Component, kind: str | None) -> bool:
    return component.types is None or (kind or "") in component.types


def _stages(query: BoundQuery) -> list[tuple[s.Component, ...]]:
    """The components that an event has to fill one after the other: of an expression, the first and the last ones."""
    if query.is_linear:
        return [(component,) for component in query.positives]
    absent = frozenset(negation.component.variable for negation in query.negations)
    pattern = without(query.pattern, absent)
    ends = [edge(pattern, last=last) for last in (False, True)]
    return [tuple(part for part in query.positives if part.variable in labels) for labels in ends]


def _chain(query: BoundQuery, columns: pa.Schema) -> Chain | None:
    """What tells how far the events of a key have come; None where one event may be a match."""
    stages = _stages(query)
    if not query.is_linear:
        absent = frozenset(negation.component.variable for negation in query.negations)
        if fewest(without(query.pattern, absent)) < 2:
            return None
    plain = [each.name for each in columns if each.type in _KEYS]
    keys = [name for name in query.equivalence if name in plain] if not query.strict else []
    return Chain(len(stages), keys, _window(query))
