"""A checked query: syntax that has passed every test there is without data. What layers below the public face know."""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.check import check
from cepheid.language.functions import registrations
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.remembered import Remembered

# With the syntax, which is known by its identity. What is kept with a bound query serves further calls, too.
_bound = Remembered[tuple[s.QuerySyntax, BoundQuery]](most=256)


class CheckedQuery:
    """Equal queries have equal syntax; `str` gives the canonical text."""

    def __init__(
        self, syntax: s.QuerySyntax, text: str | None = None, parameters: Mapping[str, object] | None = None
    ) -> None:
        self.syntax = syntax
        self.text = text
        self.parameters = dict(parameters or {})

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the queries whose matches it reads; none: it reads the events themselves."""
        return self.syntax.sources

    def bind(self, schema: Schema, parameters: Mapping[str, object] | None = None) -> BoundQuery:
        """The query over events of a schema; errors point into the text it was written as."""
        values = {**self.parameters, **(parameters or {})}
        if values:
            return bind(self.syntax, schema, values, self.text)
        key = (id(self.syntax), self.text, schema, registrations())
        return _bound.get(key, lambda: (self.syntax, bind(self.syntax, schema, {}, self.text)))[1]

    def __str__(self) -> str:
        return to_text(self.syntax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedQuery) and (self.syntax, self.parameters) == (other.syntax, other.parameters)

    def __hash__(self) -> int:
        return hash(self.syntax)


def checked_query(text: str) -> CheckedQuery:
    """The query of a text; a QueryError points at what is wrong."""
    return CheckedQuery(check(parse(text), text), text)
