"""get_json_object and json_value: a part of a text that holds JSON, found by a path, as Spark finds it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from cepheid.language.library.conversions import text_of_number

_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]{1,9})\]|\['([^']*)'\]")
_DEEPEST = 200  # levels of JSON; the parser of Python goes one call deeper for each


def _steps(path: str) -> tuple[str | int, ...] | None:
    """The names and places of a path; None if it is none, or has a `*`.

    >>> _steps("$.a.b[2]['c d']"), _steps("$"), _steps("a.b"), _steps("$.a[*]")
    (('a', 'b', 2, 'c d'), (), None, None)
    """
    if not path.startswith("$"):
        return None
    found: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or step[1] == "*":
            return None
        found.append(int(step[2]) if step[2] else step[1] if step[1] is not None else step[3])
        at = step.end()
    return tuple(found)


def wrong_path(constants: Sequence[object]) -> str | None:
    """What is wrong with the path, if anything is."""
    path = constants[0]
    if isinstance(path, str) and _steps(path) is not None:
        return None
    return f"{path!r} is not a path: write it like '$.name' or '$.list[0].name'"


def get_json_object(text: str, path: str) -> str | None:
    """What a path leads to, as a text; None where there is nothing, or no JSON.

    >>> get_json_object('{"a": [1, {"b": "x"}], "c": 1.50}', "$.a[1].b"), get_json_object('{"c": 1.50}', "$.c")
    ('x', '1.5')
    >>> get_json_object('{"a": [1, {"b": null}]}', "$.a"), get_json_object("no", "$.a")
    ('[1,{"b":null}]', None)
    """
    found = _found(text, path)
    return found if found is None or isinstance(found, str) else _written(found)


def json_value(text: str, path: str) -> str | None:
    """The same where it is a string, a number or a truth value; None where it is an object or an array.

    >>> json_value('{"a": [1, {"b": "x"}]}', "$.a[1].b"), json_value('{"a": [1, {"b": "x"}]}', "$.a")
    ('x', None)
    """
    return None if isinstance(_found(text, path), dict | list) else get_json_object(text, path)


def _found(text: str, path: str) -> Any:
    steps = _steps(path)
    if steps is None or (text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST):
        return None
    plain = text.lstrip(" \t\r\n")
    try:
        found, end = _DECODER.raw_decode(plain)
    except ValueError:
        return None
    if not isinstance(found, str | dict | list) and plain[end : end + 1].strip(" \t\r\n"):
        return None  # a number or a word that goes on as something else
    for step in steps:
        if isinstance(step, str) and isinstance(found, dict):
            found = found.get(step)
        elif isinstance(step, int) and isinstance(found, list) and step < len(found):
            found = found[step]
        else:
            return None
    return found


def _depth(text: str) -> int:
    """How deep brackets nest at most; those within strings count, too."""
    deepest = depth = 0
    for mark in re.findall(r"[\[\]{}]", text):
        depth += 1 if mark in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _written(value: object) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{_quoted(name)}:{_written(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case str():
            return _quoted(value)
        case float():  # one that is too large is written as a word in quotes
            return text_of_number(value) if math.isfinite(value) else _quoted(text_of_number(value))
    return json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    """The first value of each name that is not null, as Spark takes it."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if found.get(name) is None:
            found[name] = value
    return found


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refused, strict=False)
