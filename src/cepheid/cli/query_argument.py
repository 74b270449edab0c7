"""QUERY on the command line: text, a file or standard input, and the values of its parameters."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cepheid
from cepheid.cli.event_files import SUFFIXES
from cepheid.errors import CepheidError, QueryError, closest

_SUFFIX = ".cepheid"


def read_query(argument: str, parameters: Iterable[str] = ()) -> cepheid.Query:
    """The checked query."""
    query = cepheid.query(query_text(argument), parse_parameters(parameters))
    if not isinstance(query, cepheid.Query):
        hint = "run it with `cepheid sql`"
        raise QueryError("a MATCH_RECOGNIZE clause is a part of a SELECT", hint=hint, code="row-pattern")
    return query


def query_text(argument: str) -> str:
    """The text that QUERY stands for: a word without spaces or parentheses can only be the name of a file."""
    if argument == "-":
        return sys.stdin.read()
    if any(mark in argument for mark in "(\n") or len(argument.split()) > 1:
        path = existing_file(argument)
        return argument if path is None else _contents(path)
    path = Path(argument)
    if not path.is_file():
        where = path.parent
        near = closest(path.name, [other.name for other in where.iterdir()]) if where.is_dir() else None
        hint = (
            f"did you mean {where / near}?" if near else 'give a file, or the text in quotes: "PATTERN SEQ(A a, B b)"'
        )
        what = "is a directory" if path.is_dir() else "there is no such file"
        raise CepheidError(f"the query '{argument}': {what}", hint=hint)
    return _contents(path)


def existing_file(argument: str) -> Path | None:
    """A file whose name has spaces or parentheses; texts can be longer than any name may be."""
    try:
        path = Path(argument)
        return path if path.is_file() else None
    except OSError:
        return None


def _contents(path: Path) -> str:
    if path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".txt":
        hint = f"pass it with --input {path}"
        raise CepheidError(f"the query '{path}' is a file of events, by its name", hint=hint)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CepheidError(f"the query file {path} is not text in UTF-8", hint="pass data with --input") from None
    except OSError as error:
        raise CepheidError(f"cannot read the query file {path}: {error.strerror}") from None


def parse_parameters(given: Iterable[str]) -> dict[str, Any]:
    """Values of parameters: numbers, true, false, null and lists as in JSON; anything else is text.

    >>> parse_parameters(["T=12 hours", "limit=3", 'Finance=["JPM", "C"]'])
    {'T': '12 hours', 'limit': 3, 'Finance': ['JPM', 'C']}
    """
    found: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise CepheidError(f"'{item}': a name and a value are needed", hint="for example -p T=3600")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found
