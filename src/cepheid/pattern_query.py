"""Queries in the other two languages as objects: a MATCH_RECOGNIZE clause, or a Flink pattern.

They do what a `Query` does: match, explain, why and live.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cepheid.budget import within_budget
from cepheid.language.flink.pattern import Pattern
from cepheid.language.match_recognize.parse import parse_clause
from cepheid.language.match_recognize.syntax import Clause
from cepheid.runners.options import FlinkOptions, PatternOptions, RowOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.diagnose.diagnosis import Diagnosis
    from cepheid.diagnose.patterns import Subject
    from cepheid.runners.languages import Language
    from cepheid.runners.live_face import LiveFace as Live


class PatternQuery(ABC):
    """A checked query in another language than query text; `str` gives its text."""

    options: ClassVar[type[PatternOptions]]

    def takes(self, name: str, value: Any) -> bool:
        """Is there such an option, with such a value, in this language?"""
        return self.options.takes(name, value)

    @abstractmethod
    def timed(self) -> PatternQuery:
        """The same with `match_start` and `match_end` among the columns of its result."""

    def match(self, events: Any, **options: Any) -> Any:
        """The matches in a table of events, as a table of the same kind; with `output="count"`, their number."""
        from cepheid.engine.search.row_pattern.parallel import available_threads
        from cepheid.runners.languages import match_table

        return match_table(self._language(), events, self._given(options), available_threads())

    def explain(self, events: Any = None, **options: Any) -> str:
        """How the query is run: its automaton or its search, over a table also what judges its conditions."""
        from cepheid.runners.languages import explain_query

        return explain_query(self._language(), events, self._given(options))

    def why(self, events: Any, *, most_events: int | None = None, **options: Any) -> Diagnosis:
        """How many events pass each condition, how far the pattern gets, and where it stops."""
        from cepheid.diagnose.patterns import diagnose_pattern
        from cepheid.runners.tables import in_memory

        table = in_memory(events)
        asked = self.options.from_keywords(self._given(options)).in_memory(table.schema).check_place()
        with within_budget(asked.timeout, asked.max_bytes):
            return diagnose_pattern(self._subject(table, asked, most_events))

    def live(
        self, schema: Any, *, delay: Any = 0, state: bytes | None = None, max_ahead: Any = None, **options: Any
    ) -> Live:
        """The query over events as they come; see `cepheid.live`."""
        from cepheid.runners.live_search import live_language

        return live_language(self._language(), schema, delay, state, max_ahead, self._given(options))

    @abstractmethod
    def _language(self) -> Language:
        """What runs it."""

    @abstractmethod
    def _subject(self, table: pa.Table, options: Any, most_events: int | None) -> Subject:
        """What is diagnosed."""

    def _given(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return options


@dataclass(frozen=True)
class RowQuery(PatternQuery):
    """A checked MATCH_RECOGNIZE clause."""

    clause: Clause
    options = RowOptions

    def timed(self) -> RowQuery:
        """The clause with the times of a match's first and last row as measures."""
        from cepheid.runners.rows import with_times

        return RowQuery(with_times(self.clause))

    def _language(self) -> Language:
        from cepheid.runners.rows import RowLanguage

        return RowLanguage(self.clause)

    def _subject(self, table: pa.Table, options: RowOptions, most_events: int | None) -> Subject:
        from cepheid.diagnose.row_patterns import RowSubject
        from cepheid.runners.rows import bound_to

        return RowSubject(
            self.clause, bound_to(self.clause, table.schema, options.tz), table, options.limits, most_events
        )

    def __str__(self) -> str:
        return self.clause.text.strip()


@dataclass(frozen=True)
class FlinkQuery(PatternQuery):
    """A pattern of `cepheid.flink`, with values for the words in its conditions."""

    pattern: Pattern
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options = FlinkOptions

    def timed(self) -> FlinkQuery:
        """The pattern itself: its matches have times."""
        return self

    def _language(self) -> Language:
        from cepheid.runners.flink import FlinkLanguage

        return FlinkLanguage(self.pattern)

    def _subject(self, table: pa.Table, options: FlinkOptions, most_events: int | None) -> Subject:
        from cepheid.diagnose.flink_patterns import FlinkSubject

        return FlinkSubject(self.pattern, table, options, most_events)

    def _given(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**options, "parameters": {**self.parameters, **(options.get("parameters") or {})}}

    def __str__(self) -> str:
        return str(self.pattern)


def row_query(text: str, dialect: str = "spark") -> RowQuery:
    """The query of a text that is a MATCH_RECOGNIZE clause."""
    return RowQuery(parse_clause(text, dialect))
