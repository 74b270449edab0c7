"""What the console works on: open tables with the roles of their columns, and the last results."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.console.completion import Names
from cepheid.diagnose.errors import types_in
from cepheid.errors import CepheidError, DataError
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files
from cepheid.files.roles import Roles
from cepheid.report.matches import Shown
from cepheid.runners.tables import as_local

_KEPT = 8  # results of which further matches can be asked for
_MOST_TYPES = 200


@dataclass(frozen=True)
class OpenTable:
    """A table by name, and which of its columns mean what."""

    name: str
    events: pa.Table
    roles: Roles
    folder: Path | None = None  # where more files may come

    def names(self) -> Names:
        """What can be completed from it."""
        known = types_in(self.events, self.roles.type) or frozenset()
        columns = {column.name: str(column.type) for column in self.events.schema}
        return Names(columns, tuple(sorted(known))[:_MOST_TYPES])

    def told(self) -> dict[str, Any]:
        """For the page."""
        names = self.names()
        columns = [{"name": name, "type": kind} for name, kind in names.columns.items()]
        roles: dict[str, Any] = {"time": self.roles.time, "type": self.roles.type, "time_unit": self.roles.time_unit}
        roles["tiebreak"] = self.roles.tiebreak[0] if self.roles.tiebreak else None
        reported = {"name": self.name, "rows": self.events.num_rows, "columns": columns, "types": list(names.types)}
        return {**reported, "roles": roles, "folder": self.folder is not None}


@dataclass
class Workspace:
    """Tables and results; requests come from several threads."""

    tables: dict[str, OpenTable] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)  # options of `match`: a model, how it scores
    results: OrderedDict[int, Shown] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, name: str, events: object, roles: Roles | None = None, folder: Path | None = None) -> OpenTable:
        """Makes a table known under a name; a table of the same name is replaced."""
        local = as_local(events)
        if local is None:
            raise CepheidError(f"the console takes pyarrow, pandas or polars tables, not {type(events).__name__}")
        table = OpenTable(name, local.arrow, guessed(local.arrow.schema, roles or Roles()), folder)
        with self.lock:
            self.tables[name] = table
        return table

    def open(
        self, path: str, roles: Roles | None = None, time_format: str | None = None, format: str | None = None
    ) -> OpenTable:
        """Reads files of events, as `--input` takes them; they are called like the path."""
        roles = roles or Roles()
        files = find_files([path], format)
        try:
            events = read_events(files, time=roles.time, time_format=time_format)
        except DataError:
            events = read_events(files, parse_times=False)
            if roles.time in events.column_names:
                raise
        folder = Path(path) if Path(path).is_dir() else None
        return self.add(path, events, roles, folder)

    def table(self, name: object) -> OpenTable:
        """The table of a name."""
        with self.lock:
            found = self.tables.get(name) if isinstance(name, str) else None
        if found is None:
            raise CepheidError(f"no table '{name}' is open", hint="open a file first")
        return found

    def with_roles(self, name: str, given: Mapping[str, object]) -> OpenTable:
        """The table with other roles of its columns."""
        table = self.table(name)
        roles = replace(
            table.roles,
            time=str(given.get("time") or table.roles.time),
            type=str(given["type"]) if given.get("type") else None,
            time_unit=str(given["time_unit"]) if given.get("time_unit") else None,
            tiebreak=(str(given["tiebreak"]),) if given.get("tiebreak") else (),
        )
        table = replace(table, roles=roles)
        with self.lock:
            self.tables[name] = table
        return table

    def keep(self, shown: Shown) -> int:
        """Keeps a result, so that its further matches can be asked for; old ones go."""
        with self.lock:
            number = next(self.numbers)
            self.results[number] = shown
            while len(self.results) > _KEPT:
                self.results.popitem(last=False)
        return number

    def result(self, number: int) -> Shown:
        """A result by its number."""
        with self.lock:
            found = self.results.get(number)
        if found is None:
            raise CepheidError("this result is gone", hint="run the query again")
        return found


def guessed(schema: pa.Schema, roles: Roles) -> Roles:
    """The roles, with the only column that can be the time where the given one is not there, and no type likewise."""
    if roles.time not in schema.names:
        times = [column.name for column in schema if pa.types.is_temporal(column.type)]
        roles = replace(roles, time=times[0]) if times else roles
    if roles.type is not None and roles.type not in schema.names:
        roles = replace(roles, type=None)
    return roles
