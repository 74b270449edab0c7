"""QUERY on the command line: text, a file or standard input, and the values of its parameters."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import cepheid
from cepheid.api import sase_query
from cepheid.errors import CepheidError, QueryError, closest
from cepheid.files.input_files import SUFFIXES
from cepheid.files.roles import Roles
from cepheid.language.flink.pattern import Pattern
from cepheid.pattern_query import LanguageQuery
from cepheid.plan.options import options_from_text
from cepheid.runners.options import Options

OneQuery: TypeAlias = cepheid.Query | cepheid.RowQuery | cepheid.FlinkQuery
AnyQueries: TypeAlias = OneQuery | Mapping[str, OneQuery]

_SUFFIX = ".cepheid"
STANDARD_INPUT_READ = ContextVar("STANDARD_INPUT_READ", default=False)  # by a command, as events
READ_ONCE = "standard input can be read once"


def read_query(argument: str, parameters: Iterable[str], what: str) -> cepheid.Query:
    """The checked query, for what takes no MATCH_RECOGNIZE clause."""
    refusal = f"{what} takes a query with PATTERN, not {{}}"
    return sase_query(query_text(argument), parse_parameters(parameters), refusal)


def read_any_query(argument: str, parameters: Iterable[str] = ()) -> OneQuery:
    """The checked query, in whatever language."""
    values = parse_parameters(parameters)
    found: OneQuery = cepheid.query(query_object(argument), values)
    if isinstance(found, cepheid.RowQuery) and values:
        raise CepheidError("a MATCH_RECOGNIZE clause has no parameters", hint="write the values into it")
    return found


_USUAL = {**vars(Roles()), "engine": "auto", "scoring": "exact", "model": None}


def arguments_of(query: AnyQueries, roles: Roles, given: Mapping[str, object]) -> dict[str, Any]:
    """The roles and options that `match` takes of a query; a clause says itself which columns mean what.

    What its language does not have, and was not asked for, is left out, so that the rest is read, or refused by name.
    """
    queries = list(query.values()) if isinstance(query, Mapping) else [query]
    found = {}
    for name, value in {**roles.arguments(), **given}.items():
        if any(each.takes(name, value) for each in queries):
            found[name] = value
        elif name != "time" and (name not in _USUAL or value != _USUAL[name]):
            found[name] = value  # `time` also says which column of a file is read as times
    return found


def time_column(query: AnyQueries, roles: Roles) -> str:
    """The column that holds the time, as files are read: of a clause, where nothing else is said, what it orders by."""
    named = roles.lower or roles.time
    own = None if isinstance(query, Mapping) else query.time
    return own if own is not None and named == Roles().time else named


def read_queries(
    argument: str | None, named: Sequence[str] = (), parameters: Iterable[str] = ()
) -> OneQuery | dict[str, OneQuery]:
    """One query, or several by name: NAME=QUERY as often as one likes, or a directory of .cepheid files."""
    values = parse_parameters(parameters)
    if argument is not None and not named:
        if not _is_folder(argument):
            return read_any_query(argument, parameters)
        files = [Path(each) for each in query_arguments(argument)]
        return {path.stem: _named(path.stem, _contents(path), values) for path in files}
    if argument is not None:
        hint = f"name it, too: --query NAME={argument if existing_file(argument) else '...'}"
        raise CepheidError("QUERY and --query cannot be combined", hint=hint)
    if not named:
        raise CepheidError("there is no query", hint='give its text or a file, or several: --query NAME="PATTERN ..."')
    queries: dict[str, OneQuery] = {}
    for item in named:
        name, text = _split_name(item)
        if name in queries:
            raise CepheidError(f"two queries are called '{name}'", hint="give each a name of its own")
        queries[name] = _named(name, query_object(text), values)
    return queries


def query_arguments(argument: str) -> list[str]:
    """The argument itself, or all queries of a directory."""
    if not _is_folder(argument):
        return [argument]
    files = sorted(Path(argument).glob(f"*{_SUFFIX}"))
    if not files:
        raise CepheidError(f"the directory {argument} holds no queries", hint=f"their names end in {_SUFFIX}")
    return list(map(str, files))


def _is_folder(argument: str) -> bool:
    try:
        return "(" not in argument and Path(argument).is_dir()
    except OSError:  # too long for a name
        return False


def _split_name(item: str) -> tuple[str, str]:
    found = re.match(r"([\w.-]+)=(.*)", item, re.DOTALL)
    if found is not None:
        return found[1], found[2]
    path = existing_file(item)
    if path is not None:
        return path.stem, item
    raise CepheidError(f"--query {item}: the query has no name", hint='write --query NAME="PATTERN ..." or NAME=FILE')


def _named(name: str, text: Any, parameters: dict[str, Any]) -> OneQuery:
    """A query whose errors say which one it is."""
    try:
        found: OneQuery = cepheid.query(text, parameters)
        return found
    except QueryError as error:
        message = f"query '{name}': {error.message}"
        raise QueryError(
            message, text=error.text, start=error.start, end=error.end, hint=error.hint, code=error.code
        ) from None


def query_files(argument: str | None, named: Sequence[str] = ()) -> list[Path]:
    """The files that queries are read from, which no output may replace."""
    found = [argument or "", *(item.partition("=")[2] or item for item in named)]
    found = [re.sub(r"(\.py):\w+$", r"\1", item) for item in found]
    return [path for item in found if item and (path := existing_file(item)) is not None]


def load_functions(path: Path | None) -> None:
    """Runs a Python file that registers functions with `@cepheid.function`.

    The module is not importable by name, so its functions reach Spark's workers by value.
    """
    if path is not None:
        if not path.is_file():
            raise CepheidError(f"--functions {path}: there is no such file")
        _loaded(path, "cepheid_user_functions", f"--functions {path}")


def _loaded(path: Path, name: str, what: str) -> ModuleType:
    """The module that a Python file holds."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CepheidError(f"{what} is not a Python file", hint="its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except CepheidError:
        raise
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        message = str(error)
        if isinstance(error, SyntaxError):
            line, message = error.lineno, error.msg
        raise CepheidError(f"{what}, line {line}: {type(error).__name__}: {message}") from None
    return module


def query_object(argument: str) -> Any:
    """What QUERY stands for: a text, or of FILE.py:NAME the query or pattern of that name in a Python file."""
    found = re.fullmatch(r"(.+\.py):(\w+)", argument)
    if found is None or existing_file(found[1]) is None:
        return query_text(argument)
    module = _loaded(Path(found[1]), "cepheid_user_queries", f"the query file {found[1]}")
    if not hasattr(module, found[2]):
        names = [name for name, each in vars(module).items() if isinstance(each, str | LanguageQuery | Pattern)]
        guess = closest(found[2], names)
        raise CepheidError(f"{found[1]} has no '{found[2]}'", hint=f"did you mean {guess}?" if guess else None)
    return getattr(module, found[2])


def query_text(argument: str) -> str:
    """The text that QUERY stands for: a word without spaces or parentheses can only be the name of a file."""
    if argument == "-":
        if STANDARD_INPUT_READ.get():
            raise CepheidError(READ_ONCE, hint="give the query or the events as a file")
        return sys.stdin.read()
    if any(mark in argument for mark in "(\n") or len(argument.split()) > 1:
        path = existing_file(argument)
        return argument if path is None else _contents(path)
    path = Path(argument)
    if path.is_dir():
        hint = f"name one of its queries, such as {query_arguments(argument)[0]}"
        raise CepheidError(f"the query '{argument}' is a directory", hint=hint)
    if not path.is_file():
        where = path.parent
        near = closest(path.name, [other.name for other in where.iterdir()]) if where.is_dir() else None
        hint = (
            f"did you mean {where / near}?" if near else 'give a file, or the text in quotes: "PATTERN SEQ(A a, B b)"'
        )
        raise CepheidError(f"the query '{argument}': there is no such file", hint=hint)
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
        raise CepheidError(f"the query '{path}' looks like a file of events", hint=hint)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CepheidError(f"the query file {path} is not text in UTF-8", hint="pass data with --input") from None
    except OSError as error:
        raise CepheidError(f"cannot read the query file {path}: {error.strerror}") from None


def parse_options(given: Iterable[str]) -> dict[str, object]:
    """Values of options: as those of parameters, and a list of columns may be written with commas.

    >>> parse_options(["slices=3", "order=b, a"])
    {'slices': 3, 'order': ('b', 'a')}
    """
    return options_from_text(parse_parameters(given), Options)


def parse_parameters(given: Iterable[str]) -> dict[str, object]:
    """Values of parameters: numbers, true, false, null and lists as in JSON; anything else is text.

    >>> parse_parameters(["T=12 hours", "limit=3", 'Finance=["JPM", "C"]'])
    {'T': '12 hours', 'limit': 3, 'Finance': ['JPM', 'C']}
    """
    found: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise CepheidError(f"'{item}': expected a name and a value", hint="for example -p T=3600")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found
