"""The diagnosis of a row pattern or a Flink pattern: what each step can take, how far the pattern gets, where it stops.

Both languages reach the next step in their own way, so the counts come from their own searches: over the pattern's
beginnings, and over the pattern without one of its conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cepheid.budget import checkpoint, within_budget
from cepheid.diagnose.diagnosis import ComponentCount, Count, Diagnosis, Hint, StepCount, Without
from cepheid.errors import LimitError

PATIENCE = 2.0  # seconds for each count but that of the matches
MOST_EVENTS = 2_000_000  # larger tables are thinned out unless told
MOST_MATCHES = 100_000  # counting stops here


@dataclass(frozen=True)
class Variant:
    """A changed pattern: what is changed, and how to count its matches."""

    kind: str
    text: str
    count: Callable[[], int]


class Subject(Protocol):
    """A pattern over a table, in the words of its language."""

    text: str
    events: int
    sample: str | None  # how the events were thinned out, if they were
    between: str  # how to allow other events between two steps

    def components(self) -> tuple[ComponentCount, ...]:
        """What each step can take."""
        ...

    def matches(self) -> int:
        """How many matches there are."""
        ...

    def beginnings(self) -> Sequence[Variant]:
        """The first step, the first two steps, and so on to the whole pattern."""
        ...

    def relaxed(self) -> Sequence[Variant]:
        """The pattern without one thing."""
        ...

    def loosened(self) -> Variant | None:
        """The pattern with other events allowed between any two steps, if it forbids them somewhere."""
        ...


def diagnose_pattern(subject: Subject) -> Diagnosis:
    """Counts everything, and names the likely causes where there is no match."""
    components = subject.components()
    found = Count(subject.matches())
    beginnings = [(variant, _counted(variant)) for variant in subject.beginnings()]
    steps = tuple(StepCount("join", variant.text, number) for variant, number in beginnings if number is not None)
    without = tuple(Without(variant.kind, variant.text, _counted(variant)) for variant in subject.relaxed())
    hints = tuple(_hints(subject, components, steps, without)) if found.number == 0 else ()
    return Diagnosis(
        subject.text, subject.events, subject.sample, (), found, components, steps, without, None, None, hints
    )


def _counted(variant: Variant) -> Count | None:
    """How many matches a variant has; None if that takes too long to find out."""
    try:
        with within_budget(PATIENCE, None):
            return Count(variant.count())
    except LimitError as error:
        checkpoint()  # the caller's own budget may be spent
        return Count(MOST_MATCHES, at_least=True) if "max_matches" in str(error) else None


def _hints(
    subject: Subject, components: Sequence[ComponentCount], steps: Sequence[StepCount], without: Sequence[Without]
) -> Iterator[Hint]:
    """Likely causes of an empty result, the most basic first."""
    if subject.events == 0:
        yield Hint("no-events", "the table is empty")
        return
    empty = [component for component in components if component.passed == 0 and not component.negative]
    for component in empty:
        conditions = " AND ".join(condition.text for condition in component.conditions)
        yield Hint("no-candidates", f"no event passes {component.variable}: {conditions}")
    if empty:
        return
    reached = [step for step in steps if step.count.number]
    stopped = next((step for step in steps if step.count.number == 0), None)
    if stopped is not None and reached:
        yield Hint("stops-here", f"{reached[-1].text} occurs, {stopped.text} does not")
    loosened = subject.loosened()
    number = None if loosened is None else _counted(loosened)
    if number is not None and number.number:
        yield Hint("events-between", f"with other events between the steps there would be {number}; {subject.between}")
    for item in without:
        if item.kind == "key" and item.matches is not None and item.matches.number:
            yield Hint("other-key", f"the steps occur in different partitions: without {item.text}, {item.matches}")
