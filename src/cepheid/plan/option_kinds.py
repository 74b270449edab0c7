"""Kinds of values that options take: what a value should have been, and how signatures, SQL and commands write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from cepheid.errors import closest

Wrong = Callable[[object], str | None]


def _unchanged(value: object) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of values; called with a value it says what that should have been, or None if it will do."""

    wrong: Wrong
    typed: str  # in public signatures, without None
    made: Callable[[object], object] = _unchanged  # the value as options hold it
    worded: Callable[[str], object] = _unchanged  # the value behind a text, of SQL or of the command line
    none: bool = False  # is None a value, rather than "not given"?

    def __call__(self, value: object) -> str | None:
        return self.wrong(value)


def one_of(*values: str, typed: str | None = None) -> Kind:
    """One of some words.

    >>> one_of("scan", "construction")("scann")
    "'scan' or 'construction'; did you mean 'scan'?"
    """

    def wrong(value: object) -> str | None:
        if value in values:
            return None
        guess = closest(value, values) if isinstance(value, str) else None
        return either(map(repr, values)) + (f"; did you mean '{guess}'?" if guess else "")

    quoted = ", ".join(f'"{value}"' for value in values)
    return Kind(wrong, typed or f"Literal[{quoted}]")


def whole(least: int) -> Kind:
    """A whole number that is large enough, and fits 64 bits."""

    def wrong(value: object) -> str | None:
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
            return f"a whole number of at least {least}"
        return None if int(value) < 2**63 else "a whole number below 2^63"

    return Kind(wrong, "int")


def number(least: float, most: float | None = None, typed: str = "float") -> Kind:
    """A number in a range."""

    def wrong(value: object) -> str | None:
        fits = isinstance(value, Real) and not isinstance(value, bool)
        if fits and least <= float(value) and (most is None or float(value) <= most):  # type: ignore[arg-type]
            return None
        return f"a number {f'of at least {least:g}' if most is None else f'from {least:g} to {most:g}'}"

    return Kind(wrong, typed)


def anything(typed: str, worded: Callable[[str], object] = _unchanged) -> Kind:
    """What is checked where it is used: lengths of time, models, keys."""
    return Kind(lambda value: None, typed, worded=worded)


def _not_a_name(value: object) -> str | None:
    return None if isinstance(value, str) else "a name in quotes"


def _not_names(value: object) -> str | None:
    several = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return None if isinstance(value, str) or several else "a name in quotes, or a list of them"


def _type_or_none(value: object) -> str | None:
    return None if value is None or isinstance(value, str) else "a name in quotes, or None for events without types"


def _not_keys(value: object) -> str | None:
    listed = hasattr(value, "__iter__") and not isinstance(value, str)
    return None if value == "auto" or listed else "'auto' or a list of keys"


def _not_a_place(value: object) -> str | None:
    fits = isinstance(value, str | Path) or callable(value)
    return None if fits else "a path such as 'bad.parquet', or a function that takes a table"


def _not_a_mark(value: object) -> str | None:
    fits = isinstance(value, str) and len(value) == 1 and not value.isalnum()
    return None if fits else "a single character, such as ','"


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _loaded(path: str) -> Any:
    return import_module("cepheid.model").load_model(path)  # loaded by name: plans know no models


flag = Kind(lambda value: None if isinstance(value, bool) else "True or False", "bool")
text = Kind(_not_a_name, "str")
engine_name = Kind(_not_a_name, "EngineName")
names = Kind(_not_names, "str | Sequence[str]", _names, _listed)
variables = Kind(_not_names, "Sequence[str]", worded=_listed)  # "ab" is a and b
type_column = Kind(_type_or_none, "str | None", none=True)
keys = Kind(_not_keys, 'Literal["auto"] | Iterable[Any]')
place = Kind(_not_a_place, "str | Path | Callable[[Any], object]")
mark = Kind(_not_a_mark, "str")
length = anything("Length")
model_or_path = anything("Model", _loaded)


def either(words: Iterator[str] | Sequence[str]) -> str:
    """Words as a choice.

    >>> either(["a", "b", "c"])
    'a, b or c'
    """
    *some, last = words
    return f"{', '.join(some)} or {last}" if some else last
