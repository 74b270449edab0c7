"""XES, the format of event logs in process mining (IEEE 1849): a row for each event, with the attributes of its case.

Attributes of the standard's extensions have short names (`SHORT`); those of a trace begin with `case:`, but for its
name, which is `case`. Attributes inside of attributes, lists and containers are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.files.rows import BadLine, Parsed, Rows
from cepheid.files.xml_events import read_elements

TYPES = {"ts": pa.timestamp("us", "UTC"), "type": pa.string(), "case": pa.string()}
SHORT = {
    "time:timestamp": "ts",
    "concept:name": "type",
    "lifecycle:transition": "lifecycle",
    "org:resource": "resource",
    "org:role": "role",
    "org:group": "group",
}
CASE_NAME = "concept:name"
_TRUE = {"true": True, "1": True, "false": False, "0": False}


def read_xes(path: Path, detail: str = "") -> Parsed:
    """The events of an XES file, in its order."""
    if detail:
        raise CepheidError(f"format 'xes:{detail}' takes no detail after xes", hint="leave it out")
    log = _Log()
    read_elements(path, log.begin, log.end)
    if log.root != "log":
        raise DataError(f"{path} is not a XES file: it begins with <{log.root}>, not <log>")
    return Parsed(log.rows.table(), log.bad)


class _Log:
    """The elements of a log as they come: where the parser is, and the attributes around it."""

    def __init__(self) -> None:
        self.rows, self.bad = Rows(TYPES), list[BadLine]()
        self.root: str | None = None
        self._path: list[str] = []
        self._case: dict[str, Any] = {}
        self._event: dict[str, Any] = {}
        self._line = 0
        self._wrong: str | None = None

    def begin(self, name: str, given: Mapping[str, str], line: int) -> None:
        self.root = self.root or name
        inside = self._path[-1] if self._path else ""
        self._path.append(name)
        match name:
            case "trace":
                self._case = {}
            case "event":
                self._event, self._line, self._wrong = {}, line, None
            case "string" | "date" | "int" | "float" | "boolean" | "id" if inside in ("trace", "event"):
                self._take(name, given, line, inside)

    def _take(self, kind: str, given: Mapping[str, str], line: int, inside: str) -> None:
        key, text = given.get("key"), given.get("value")
        wrong = f"has a {kind} without a key or a value"
        if key is not None and text is not None:
            try:
                (self._event if inside == "event" else self._case)[key] = _value(kind, text)
                return
            except ValueError:
                wrong = f"has {key} = {text!r}, which is not of type {kind}"
        if inside == "event":
            self._wrong = wrong
        else:
            self.bad.append(BadLine(line, f"{wrong}, of a trace", ""))

    def end(self, name: str) -> None:
        self._path.pop()
        if name != "event":
            return
        if self._wrong is None and not isinstance(self._event.get("time:timestamp"), datetime):
            self._wrong = "has no time:timestamp"
        if self._wrong is not None:
            message = ", ".join(f"{key}={value}" for key, value in self._event.items())
            self.bad.append(BadLine(self._line, f"begins an event that {self._wrong}", message))
            return
        named = {SHORT.get(key, _own(key)): value for key, value in self._event.items()}
        case = {f"case:{key}": value for key, value in self._case.items() if key != CASE_NAME}
        kind, about = named.get("type"), self._case.get(CASE_NAME)
        texts = {"type": None if kind is None else str(kind), "case": None if about is None else str(about)}
        self.rows.add({**named, **texts, **case})


def _own(key: str) -> str:
    """The column of an attribute that is not of the standard's; one that has the name of ours is set apart."""
    return f"event:{key}" if key in TYPES or key in SHORT.values() else key


def _value(kind: str, text: str) -> Any:
    match kind:
        case "date":
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "boolean":
            if text.strip().lower() not in _TRUE:
                raise ValueError(text)
            return _TRUE[text.strip().lower()]
    return text
