"""What happens to other matches once one is found: Flink's strategies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from cepheid.errors import QueryError


class Skip(Enum):
    """Which matches are dropped after one that was found."""

    NO_SKIP = "no_skip"
    TO_NEXT = "skip_to_next"  # those that begin with the same event
    PAST_LAST_EVENT = "skip_past_last_event"  # those that began before it ended
    TO_FIRST = "skip_to_first"  # those that began before the first event of a step
    TO_LAST = "skip_to_last"  # those that began before its last event


@dataclass(frozen=True)
class AfterMatchSkipStrategy:
    """What happens to other matches once one is found; `Pattern.begin(name, skip=...)` takes it.

    >>> AfterMatchSkipStrategy.skip_to_first("b")
    AfterMatchSkipStrategy.skip_to_first('b')
    """

    skip: Skip = Skip.NO_SKIP
    step: str | None = None
    strict: bool = False

    @classmethod
    def no_skip(cls) -> AfterMatchSkipStrategy:
        """Every match is reported."""
        return cls()

    @classmethod
    def skip_to_next(cls) -> AfterMatchSkipStrategy:
        """Drops the other matches that begin with the same event."""
        return cls(Skip.TO_NEXT)

    @classmethod
    def skip_past_last_event(cls) -> AfterMatchSkipStrategy:
        """Drops all matches that began before this one ended."""
        return cls(Skip.PAST_LAST_EVENT)

    @classmethod
    def skip_to_first(cls, step: str) -> AfterMatchSkipStrategy:
        """Drops all matches that began before the first event of a step."""
        return cls(Skip.TO_FIRST, _named(step))

    @classmethod
    def skip_to_last(cls, step: str) -> AfterMatchSkipStrategy:
        """Drops all matches that began before the last event of a step."""
        return cls(Skip.TO_LAST, _named(step))

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """An error where a match has no event of the step, or begins with it; else nothing is dropped then."""
        if self.step is None:
            raise QueryError(f"{self.skip.value} names no step", hint="it takes no step", code="flink-skip")
        return replace(self, strict=True)

    def __repr__(self) -> str:
        shown = "" if self.step is None else repr(self.step)
        strict = ".throw_exception_on_miss()" if self.strict else ""
        return f"AfterMatchSkipStrategy.{self.skip.value}({shown}){strict}"


def _named(step: object) -> str:
    if not isinstance(step, str):
        hint = "name a step: AfterMatchSkipStrategy.skip_to_first('b')"
        raise QueryError(f"the name of a step is a string, not {step!r}", hint=hint, code="flink-skip")
    return step
