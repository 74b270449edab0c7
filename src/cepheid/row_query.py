"""Row patterns as objects: a checked MATCH_RECOGNIZE clause, to be run over any kind of table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cepheid.language.match_recognize.parse import parse_clause
from cepheid.language.match_recognize.syntax import Clause


@dataclass(frozen=True)
class RowQuery:
    """A checked MATCH_RECOGNIZE clause; `str` gives its text."""

    clause: Clause

    def match(self, events: Any, **options: Any) -> Any:
        """The rows that the clause makes of a table, as a table of the same kind."""
        from cepheid.runners.rows import match_clause

        return match_clause(events, self.clause, options)

    def explain(self, events: Any = None) -> str:
        """How the clause is run: which conditions are judged over whole columns, and which on the way."""
        from cepheid.runners.rows import explain_clause

        return explain_clause(self.clause, events)

    def __str__(self) -> str:
        return self.clause.text.strip()


def row_query(text: str, dialect: str = "spark") -> RowQuery:
    """The query of a text that is a MATCH_RECOGNIZE clause."""
    return RowQuery(parse_clause(text, dialect))
