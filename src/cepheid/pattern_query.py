"""A checked query as an object, in whatever language: what one can do with it.

Query text is in api.py; here are a MATCH_RECOGNIZE clause and a Flink pattern.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cepheid.errors import CepheidError
from cepheid.language.flink.pattern import Pattern
from cepheid.language.match_recognize.parse import parse_clause
from cepheid.language.match_recognize.syntax import Clause, Rows
from cepheid.plan.drawing import clause_svg, flink_svg, html_of
from cepheid.plan.options import bounded
from cepheid.runners.options import FlinkOptions, PatternOptions, RowOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.diagnose.diagnosis import Diagnosis
    from cepheid.diagnose.patterns import Subject
    from cepheid.runners.languages import Language
    from cepheid.runners.live_face import LiveFace as Live

_log = logging.getLogger("cepheid")


class LanguageQuery(ABC):
    """A checked query; `str` gives its text."""

    @property
    @abstractmethod
    def language(self) -> Language:
        """What runs it."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """What a row of its result is: a match, a total (SUMMARISE), or a row of one (ALL ROWS PER MATCH)."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that partition the events, as far as the query itself names them."""
        return ()

    @property
    def time(self) -> str | None:
        """The time column, if the query itself names it; None: the option `time` does."""
        return None

    def takes(self, name: str, value: Any) -> bool:
        """Is there such an option, with such a value, in its language?"""
        return self.language.takes(name, value)

    def with_parameters(self, parameters: Mapping[str, Any] | None) -> Self:
        """The same with values for words in its text, in a language that has such words."""
        return self

    @bounded
    def match(self, events: Any, **options: Any) -> Any:
        """The matches in a table of events, as a table of the same kind; with `output="count"`, their number."""
        from cepheid.runners.languages import match_events

        begin = time.perf_counter()
        asked = self.with_parameters(options.pop("parameters", None))
        result = match_events(asked.language, events, options)
        log_match(result, time.perf_counter() - begin)
        return result

    @bounded
    def explain(self, events: Any = None, *, analyze: bool = False, **options: Any) -> str:
        """How the query is run: its automaton or its search, over a table also what judges its conditions."""
        asked = self.with_parameters(options.pop("parameters", None))
        return asked.language.explain(events, options, analyze)

    @abstractmethod
    def svg(self, events: Any = None) -> str:
        """The automaton as a drawing, in the colours of where it is shown; that of a Flink pattern needs events."""

    @abstractmethod
    def why(self, events: Any, *, most_events: int | None = None, **options: object) -> Diagnosis:
        """How many events pass each condition, how far the pattern gets, and where it stops."""

    def live(
        self, schema: Any, *, delay: object = 0, state: bytes | None = None, max_ahead: object = None, **options: Any
    ) -> Live:
        """The query over events as they come; see `cepheid.live`."""
        from cepheid.runners.languages import LiveStart

        asked = self.with_parameters(options.pop("parameters", None))
        return asked.language.live(schema, LiveStart(delay, state, max_ahead), options)


def log_match(result: Any, seconds: float) -> None:
    """Says how much was found, and how long that took."""
    if _log.isEnabledFor(logging.INFO):
        size = f"{len(result):,} rows" if hasattr(result, "__len__") else type(result).__name__
        _log.info("match: %s in %.3f s", size, seconds)


class PatternQuery(LanguageQuery):
    """A checked query in another language than query text."""

    options: ClassVar[type[PatternOptions]]

    @bounded
    def why(self, events: Any, *, most_events: int | None = None, **options: Any) -> Diagnosis:
        """How many events pass each condition, how far the pattern gets, and where it stops."""
        from cepheid.diagnose.patterns import diagnose_pattern
        from cepheid.runners.tables import in_memory

        query, table = self.with_parameters(options.pop("parameters", None)), in_memory(events)
        asked = query.options.from_keywords(options).in_memory(table.schema).check_place()
        return diagnose_pattern(query._subject(table, asked, most_events))

    @abstractmethod
    def _subject(self, table: pa.Table, options: Any, most_events: int | None) -> Subject:
        """What is diagnosed."""


@dataclass(frozen=True)
class RowQuery(PatternQuery):
    """A checked MATCH_RECOGNIZE clause."""

    clause: Clause
    options = RowOptions

    @property
    def unit(self) -> str:
        """What a row of its result is."""
        return "match" if self.clause.rows is Rows.ONE else "row"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of PARTITION BY."""
        return tuple(key.name for key in self.clause.partition_by)

    @property
    def time(self) -> str | None:
        """The first column of ORDER BY."""
        return self.clause.order_by[0].column.name if self.clause.order_by else None

    @property
    def language(self) -> Language:
        """What runs it."""
        from cepheid.runners.rows import RowLanguage

        return RowLanguage(self.clause)

    def svg(self, events: Any = None) -> str:
        """The automaton as a drawing."""
        return clause_svg(self.clause)

    def _repr_html_(self) -> str:
        return html_of(str(self), self.svg())

    def _subject(self, table: pa.Table, options: RowOptions, most_events: int | None) -> Subject:
        from cepheid.diagnose.row_patterns import RowSubject
        from cepheid.runners.rows import bound_to

        return RowSubject(self.clause, bound_to(self.clause, table.schema, options.tz), table, options, most_events)

    def __str__(self) -> str:
        return self.clause.text.strip()


@dataclass(frozen=True)
class FlinkQuery(PatternQuery):
    """A pattern of `cepheid.flink`, with values for the words in its conditions."""

    pattern: Pattern
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options = FlinkOptions
    unit = "match"

    @property
    def language(self) -> Language:
        """What runs it."""
        from cepheid.runners.flink import FlinkLanguage

        return FlinkLanguage(self.pattern, self.parameters)

    def with_parameters(self, parameters: Mapping[str, Any] | None) -> FlinkQuery:
        """The same with more values."""
        return FlinkQuery(self.pattern, {**self.parameters, **(parameters or {})})

    def svg(self, events: Any = None) -> str:
        """The automaton as a drawing; conditions are bound to the columns of the events."""
        from cepheid.runners.flink import automaton_for
        from cepheid.runners.tables import columns_of

        if events is None:
            raise CepheidError("the automaton of a Flink pattern needs columns", hint="pass events: query.svg(events)")
        columns = columns_of(events)
        asked = FlinkOptions.from_keywords({"parameters": self.parameters or None}).in_memory(columns)
        return flink_svg(self.pattern, automaton_for(self.pattern, columns, asked))

    def _subject(self, table: pa.Table, options: FlinkOptions, most_events: int | None) -> Subject:
        from cepheid.diagnose.flink_patterns import FlinkSubject

        return FlinkSubject(self.pattern, table, replace(options, parameters=self.parameters), most_events)

    def __str__(self) -> str:
        return str(self.pattern)


@lru_cache(maxsize=256)
def row_query(text: str, dialect: str = "spark") -> RowQuery:
    """The query of a text that is a MATCH_RECOGNIZE clause. It is kept, as it never changes."""
    return RowQuery(parse_clause(text, dialect))
