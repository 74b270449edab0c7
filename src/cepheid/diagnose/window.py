"""How long the window would have to be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cepheid.diagnose.diagnosis import Count, WindowNeeded
from cepheid.diagnose.relax import Subject
from cepheid.diagnose.stages import count
from cepheid.engine.data.matches import Matches
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.printing import window_text
from cepheid.language.units import UNITS, convert

_FACTOR = 8
_ENOUGH = 10_000  # matches among which the shortest is looked for

Build = Callable[[s.Window], BoundQuery]
Affordable = Callable[[BoundQuery], bool]


def needed_window(subject: Subject, affordable: Affordable, matches: Count) -> WindowNeeded | None:
    """The window as written; without matches, the shortest that gives one; with some, what twice as long gives."""
    written, window = subject.bound.within, subject.bound.window
    if written is None or window is None:
        return None
    text = window_text(written)

    def build(longer: s.Window) -> BoundQuery:
        return subject.relaxed(window=longer)

    if matches.number > 0:
        query = build(window_of(subject, 2 * window.length))
        if not affordable(query):
            return WindowNeeded(text, window.length, None, None, None, None)
        twice = count(subject.matches(query))
        return WindowNeeded(text, window.length, None, None, twice, 2 * window.length)
    found = longer_window(subject, build, affordable)
    if found is None:
        return WindowNeeded(text, window.length, None, None, None, None)
    tried, longer = found
    shortest = None if window.events else int(spans(subject, longer).min()) + 1
    needed_text = f"{tried} EVENTS" if shortest is None else span_text(subject, shortest)
    return WindowNeeded(text, window.length, shortest or tried, needed_text, count(longer), tried)


def window_of(subject: Subject, length: int) -> s.Window:
    """A window of so many steps of the time column, or events, as the query's own."""
    own = subject.bound.window
    return s.Window(length, "events" if own is not None and own.events else subject.bound.schema.time_unit)


def longer_window(subject: Subject, build: Build, affordable: Affordable) -> tuple[int, Matches] | None:
    """The first of ever longer windows in which there is a match, and the matches; None: not in any."""
    window = subject.bound.window
    assert window is not None
    longest = (len(subject.events) if window.events else subject.span) + 1
    whole = build(window_of(subject, longest))
    if affordable(whole):
        found = subject.matches(whole, _ENOUGH)
        if not len(found):
            return None
        if not found.truncated:
            return longest, found
    length = window.length
    while length < longest:
        length = min(length * _FACTOR, longest)
        query = build(window_of(subject, length))
        if not affordable(query):
            return None
        found = subject.matches(query, _ENOUGH)
        if len(found):
            return length, found
    return None


def spans(subject: Subject, matches: Matches) -> np.ndarray:
    """From the first event of each match to its last."""
    times = subject.events.time
    return np.asarray(times[matches.chosen[-1].last()] - times[matches.chosen[0].first()])


def span_text(subject: Subject, length: int) -> str:
    """A length of time in words, as far as the unit is known.

    With whole-number times of unknown unit it is a plain number.
    """
    unit = subject.bound.schema.time_unit
    if unit is None:
        return f"{length:,}"
    for name in ("days", "hours", "minutes", "seconds", "milliseconds"):
        if name in UNITS and convert(length, unit, name) >= 2:
            return f"{convert(length, unit, name):.3g} {name}"
    return f"{length:,} {unit}"
