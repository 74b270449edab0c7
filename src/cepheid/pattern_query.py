"""Queries in the other two languages as objects: a MATCH_RECOGNIZE clause, or a Flink pattern.

They do what a `Query` does: match, explain, why and live.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cepheid.budget import within_budget
from cepheid.language.flink.pattern import Pattern
from cepheid.language.match_recognize.parse import parse_clause
from cepheid.language.match_recognize.syntax import Clause
from cepheid.runners.options import FlinkOptions, RowOptions

if TYPE_CHECKING:
    from cepheid.diagnose.diagnosis import Diagnosis
    from cepheid.runners.live_face import LiveFace as Live


class PatternQuery(ABC):
    """A checked query in another language than query text; `str` gives its text."""

    @abstractmethod
    def takes(self, name: str, value: Any) -> bool:
        """Is there such an option, with such a value, in this language?"""

    @abstractmethod
    def timed(self) -> PatternQuery:
        """The same with `match_start` and `match_end` among the columns of its result."""

    @abstractmethod
    def match(self, events: Any, **options: Any) -> Any:
        """The matches in a table of events, as a table of the same kind; with `output="count"`, their number."""

    @abstractmethod
    def explain(self, events: Any = None, **options: Any) -> str:
        """How the query is run."""

    @abstractmethod
    def why(self, events: Any, *, most_events: int | None = None, **options: Any) -> Diagnosis:
        """How many events pass each condition, how far the pattern gets, and where it stops."""

    @abstractmethod
    def live(
        self, schema: Any, *, delay: Any = 0, state: bytes | None = None, max_ahead: Any = None, **options: Any
    ) -> Live:
        """The query over events as they come; see `cepheid.live`."""


@dataclass(frozen=True)
class RowQuery(PatternQuery):
    """A checked MATCH_RECOGNIZE clause."""

    clause: Clause

    def takes(self, name: str, value: Any) -> bool:
        """Is there such an option, with such a value, for a clause?"""
        return RowOptions.takes(name, value)

    def timed(self) -> RowQuery:
        """The clause with the times of a match's first and last row as measures."""
        from cepheid.runners.rows import with_times

        return RowQuery(with_times(self.clause))

    def match(self, events: Any, **options: Any) -> Any:
        """The rows that the clause makes of a table, as a table of the same kind."""
        from cepheid.runners.rows import match_clause

        return match_clause(events, self.clause, options)

    def explain(self, events: Any = None, **options: Any) -> str:
        """How the clause is run: which conditions are evaluated over whole columns, and which during the search."""
        from cepheid.runners.rows import explain_clause

        RowOptions.from_keywords(options)
        return explain_clause(self.clause, events)

    def why(self, events: Any, *, most_events: int | None = None, **options: Any) -> Diagnosis:
        """How many rows pass each definition, how far the pattern gets, and where it stops."""
        from cepheid.diagnose.patterns import diagnose_pattern
        from cepheid.diagnose.row_patterns import RowSubject
        from cepheid.runners.rows import bound_to
        from cepheid.runners.tables import in_memory

        table, limits = in_memory(events), RowOptions.from_keywords(options).limits
        with within_budget(limits.timeout, limits.max_bytes):
            bound = bound_to(self.clause, table.schema)
            return diagnose_pattern(RowSubject(self.clause, bound, table, limits, most_events))

    def live(
        self, schema: Any, *, delay: Any = 0, state: bytes | None = None, max_ahead: Any = None, **options: Any
    ) -> Live:
        """The clause over rows as they come; see `cepheid.live`."""
        from cepheid.runners.live_search import live_clause

        return live_clause(self.clause, schema, delay, state, max_ahead, options)

    def __str__(self) -> str:
        return self.clause.text.strip()


@dataclass(frozen=True)
class FlinkQuery(PatternQuery):
    """A pattern of `cepheid.flink`, with values for the words in its conditions."""

    pattern: Pattern
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def takes(self, name: str, value: Any) -> bool:
        """Is there such an option, with such a value, for a Flink pattern?"""
        return FlinkOptions.takes(name, value)

    def timed(self) -> FlinkQuery:
        """The pattern itself: its matches have times."""
        return self

    def match(self, events: Any, **options: Any) -> Any:
        """The matches of the pattern, as a table of the kind that came."""
        from cepheid.runners.flink import match_pattern

        return match_pattern(events, self.pattern, self._given(options))

    def explain(self, events: Any = None, **options: Any) -> str:
        """The automaton of the pattern; over a table, also what judges its conditions, and the engine."""
        from cepheid.runners.flink import explain_pattern

        if events is None:
            return f"Pattern\n  {self.pattern}\n\nPass events for the automaton, the conditions and the engine."
        return explain_pattern(self.pattern, events, self._given(options))

    def why(self, events: Any, *, most_events: int | None = None, **options: Any) -> Diagnosis:
        """How many events pass each condition, how far the pattern gets, and where it stops."""
        from cepheid.diagnose.flink_patterns import FlinkSubject
        from cepheid.diagnose.patterns import diagnose_pattern
        from cepheid.runners.tables import in_memory

        table = in_memory(events)
        asked = FlinkOptions.from_keywords(self._given(options)).as_they_come(table.schema).check_place()
        with within_budget(asked.limits.timeout, asked.limits.max_bytes):
            return diagnose_pattern(FlinkSubject(self.pattern, table, asked, most_events))

    def live(
        self, schema: Any, *, delay: Any = 0, state: bytes | None = None, max_ahead: Any = None, **options: Any
    ) -> Live:
        """The pattern over events as they come; see `cepheid.live`."""
        from cepheid.runners.live_search import live_pattern

        return live_pattern(self.pattern, schema, delay, state, max_ahead, self._given(options))

    def _given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {**options, "parameters": {**self.parameters, **(options.get("parameters") or {})}}

    def __str__(self) -> str:
        return str(self.pattern)


def row_query(text: str, dialect: str = "spark") -> RowQuery:
    """The query of a text that is a MATCH_RECOGNIZE clause."""
    return RowQuery(parse_clause(text, dialect))
