"""Options that belong together: a parameter of a command that is one of these groups stands for all its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import update_wrapper
from typing import Any, get_type_hints

import pyarrow as pa

import cepheid
from cepheid.cli import options as o
from cepheid.cli.query_argument import OneQuery, load_functions, parse_options, read_any_query
from cepheid.files.event_files import UNIX, read_events
from cepheid.files.input_files import EventFiles, find_files
from cepheid.files.roles import Roles


@dataclass(frozen=True)
class Columns:
    """Which columns mean what."""

    time: o.Time = "ts"
    type: o.Type = "type"
    untyped: o.Untyped = False
    ignore_case: o.IgnoreCase = False
    time_unit: o.TimeUnit = None
    tiebreak: o.Tiebreak = None
    lower: o.Lower = None
    upper: o.Upper = None
    existence: o.Existence = None

    def roles(self) -> Roles:
        """As arguments of `match`."""
        given = {name: value for name, value in vars(self).items() if name != "untyped"}
        return Roles(**{**given, "type": None if self.untyped else self.type, "tiebreak": tuple(self.tiebreak or ())})


@dataclass(frozen=True)
class Reading:
    """How files of events are read."""

    format: o.InputFormat = None
    null: o.NullTexts = None
    time_format: o.TimeFormat = None

    def files(self, inputs: Sequence[str]) -> EventFiles:
        """The files that are meant."""
        return find_files(inputs, self.format, self.null or ())

    def events(self, files: EventFiles, time: str, *, parse_times: bool | None = None) -> pa.Table:
        """The events in them."""
        parsing = {} if parse_times is None else {"parse_times": parse_times}
        return read_events(files, time=time, time_format=self.time_format, **parsing)


@dataclass(frozen=True)
class Records:
    """What happens to bad records, and to those that come twice."""

    bad_records: o.BadRecords = None
    aside: o.Aside = None
    dedupe: o.Dedupe = None
    decimal: o.Decimal = None
    thousands: o.Thousands = None

    def options(self, time_format: str | None) -> dict[str, Any]:
        """As `match` takes them."""
        policy = "set aside" if self.aside is not None and self.bad_records is None else self.bad_records
        given = {name: value for name, value in {**vars(self), "bad_records": policy}.items() if value is not None}
        if policy is not None and time_format not in (None, UNIX):
            given["time_format"] = time_format  # which rows are not written like this, `match` has to know
        return given

    @property
    def parse_times(self) -> bool:
        """Are times in text read with the file? With a policy for bad records the query reads them itself."""
        return self.bad_records is None and self.aside is None


@dataclass(frozen=True)
class QuerySettings:
    """What a query refers to."""

    parameter: o.Parameters = None
    functions: o.FunctionsPath = None

    def read(self, query: str) -> OneQuery:
        """The checked query, after the user's functions are known."""
        load_functions(self.functions)
        return read_any_query(query, self.parameter or ())


@dataclass(frozen=True)
class Search:
    """How matches are searched and scored."""

    model: o.ModelPath = None
    scoring: o.Scoring = "exact"
    option: o.MatchOptions = None

    def given(self) -> dict[str, Any]:
        """As `match` takes it."""
        loaded = cepheid.load_model(self.model) if self.model is not None else None
        return {"model": loaded, "scoring": self.scoring, **parse_options(self.option or ())}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: with an option for each field of its groups."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: dict[str, inspect.Parameter] = {}
    for each in inspect.signature(command).parameters.values():
        given = [(each.name, each.default, hints[each.name])]
        if each.name in groups:
            inner = get_type_hints(groups[each.name], include_extras=True)
            given = [(part.name, part.default, inner[part.name]) for part in fields(groups[each.name])]
        for name, default, hint in given:
            parameters[name] = inspect.Parameter(name, each.KEYWORD_ONLY, default=default, annotation=hint)

    def called(**given: object) -> None:
        made = {
            name: group(**{part.name: given.pop(part.name) for part in fields(group)}) for name, group in groups.items()
        }
        command(**given, **made)

    update_wrapper(called, command)
    del called.__wrapped__  # type: ignore[attr-defined]
    called.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    called.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return called
