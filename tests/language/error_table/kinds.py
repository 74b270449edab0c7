"""What an entry of the error table is, and how its example is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from cepheid.errors import QueryError
from cepheid.language import build
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.match_recognize.parse import parse_clause
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema
from cepheid.runners.options import RowOptions
from cepheid.runners.rows import RowLanguage

COLUMNS = {
    "ts": DataType.TIME,
    "type": DataType.STRING,
    "id": DataType.INT,
    "name": DataType.STRING,
    "price": DataType.FLOAT,
    "volume": DataType.INT,
    "flag": DataType.BOOL,
    "history": DataType.LIST,
}
TYPES = frozenset({"Login", "Payment", "Stock"})
_HEADS = ("PATTERN", "SEQUENCE")
ROW_PATTERN = "MATCH_RECOGNIZE"
_ARROW = {
    DataType.TIME: pa.timestamp("us"),
    DataType.STRING: pa.string(),
    DataType.INT: pa.int64(),
    DataType.FLOAT: pa.float64(),
    DataType.BOOL: pa.bool_(),
    DataType.LIST: pa.list_(pa.float64()),
}
_PYTHON = {name: getattr(build, name) for name in build.__all__} | {"timedelta": timedelta}


@dataclass(frozen=True)
class Example:
    """A query text or a Python expression, and the error that it gives, line by line.

    `carets` is the last line of an error that points into the text; the line between is the text itself, or `line`
    where the error shows only a part of it. `shown` stands for a text too long for the documentation.
    """

    source: str
    message: str
    carets: str | None = None
    line: str | None = None
    shown: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rendered(self) -> str:
        """The whole error as it is printed."""
        return self.message if self.carets is None else f"{self.message}\n{self.line or self.source}\n{self.carets}"

    @property
    def is_python(self) -> bool:
        """Is it a Python expression rather than a query text?"""
        return bool(self.source.strip()) and not self.source.startswith((*_HEADS, ROW_PATTERN, "SELECT"))

    def run(self) -> QueryError | None:
        """The error that the example gives, or None."""
        try:
            if self.source.startswith(ROW_PATTERN):
                schema = pa.schema({name: _ARROW[kind] for name, kind in COLUMNS.items()})
                clause = parse_clause(self.source, self.options.get("dialect", "spark"))
                RowLanguage(clause).bind(schema, RowOptions()).run(schema.empty_table())
            elif self.is_python:
                built = eval(self.source, dict(_PYTHON))
                if isinstance(built, build.Pattern):
                    built.to_syntax()
            else:
                query = check(parse(self.source), self.source)
                bind(query, self._schema(), self.options.get("parameters"), self.source)
        except QueryError as error:
            return error
        return None

    def _schema(self) -> Schema:
        clock = DataType.INT if self.options.get("clock") == "integer" else DataType.TIME
        unit = "microseconds" if clock is DataType.TIME else None
        if self.options.get("type", "type") is None:
            columns = {name: kind for name, kind in COLUMNS.items() if name != "type"}
            return Schema(tuple(columns.items()), "ts", None, unit)
        return Schema(tuple({**COLUMNS, "ts": clock}.items()), "ts", "type", unit, TYPES)


@dataclass(frozen=True)
class Kind:
    """One kind of error: its code, when it is raised, and examples."""

    code: str
    why: str
    examples: tuple[Example, ...]

    def __init__(self, code: str, why: str, *examples: Example) -> None:
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "why", why)
        object.__setattr__(self, "examples", examples)


@dataclass(frozen=True)
class Section:
    """Kinds of errors that belong together."""

    title: str
    kinds: tuple[Kind, ...]
