"""What a diagnosis says, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cepheid.diagnose.story import diagnosis_html, diagnosis_text


@dataclass(frozen=True)
class Count:
    """A number of events or matches; `at_least` where counting stopped at a limit.

    >>> str(Count(1200)), str(Count(100000, at_least=True))
    ('1,200', 'at least 100,000')
    """

    number: int
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'at least ' if self.at_least else ''}{self.number:,}"


@dataclass(frozen=True)
class ConditionCount:
    """A condition on one event, and how many events of the component's type pass it alone."""

    text: str
    passed: int


@dataclass(frozen=True)
class ComponentCount:
    """A place of the pattern, and how many events can fill it."""

    variable: str
    text: str  # as in the pattern
    negative: bool
    of_type: int
    conditions: tuple[ConditionCount, ...]
    without_key: int  # events of the type with a NULL in an equivalence attribute: they never match
    passed: int  # all of the above together


@dataclass(frozen=True)
class StepCount:
    """One stage of the way from events to matches: what is asked in addition, and how many survive it."""

    kind: str  # "events", "join", "condition", "negation"
    text: str
    count: Count


@dataclass(frozen=True)
class Without:
    """How many matches there would be if one thing were not asked; None: too many combinations to tell."""

    kind: str  # "condition", "key", "until", "negation", "strategy", "output", "ties"
    text: str
    matches: Count | None


@dataclass(frozen=True)
class WindowNeeded:
    """The window as written, and the shortest that gives a match (None: no window does)."""

    text: str
    length: int
    needed: int | None
    needed_text: str | None
    matches: Count | None  # in a window of `tried`
    tried: int | None


@dataclass(frozen=True)
class Closest:
    """Events that came closest to a match, and what stopped them."""

    events: tuple[tuple[str, dict[str, Any]], ...]  # variable and event
    stopped_by: str
    detail: str


@dataclass(frozen=True)
class Hint:
    """A likely cause with a remedy; `code` names its kind."""

    code: str
    text: str


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The whole story of a query over a table. Printed it is a page of text; a notebook shows it as tables."""

    query: str
    events: int
    sample: str | None  # how the events were thinned out before counting, if they were
    types: tuple[tuple[str, int], ...]  # the most frequent event types
    matches: Count
    components: tuple[ComponentCount, ...]
    steps: tuple[StepCount, ...]
    without: tuple[Without, ...]
    window: WindowNeeded | None
    closest: Closest | None
    hints: tuple[Hint, ...]

    def to_dict(self) -> dict[str, Any]:
        """As nested dictionaries and lists, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return diagnosis_text(self)

    def __repr__(self) -> str:
        return diagnosis_text(self)

    def _repr_html_(self) -> str:
        return diagnosis_html(self)
