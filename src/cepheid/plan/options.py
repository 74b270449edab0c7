"""Options as types: which there are, what values each takes, and errors that name the right ones.

An option is a field of a frozen dataclass, made by `option(default, kind)`; its kind says of a value what it should
have been, or None if it will do. One option is declared in one place, whoever passes it: a call, Spark SQL or the
command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from cepheid.budget import within_budget
from cepheid.errors import CepheidError, closest

Kind = Callable[[object], str | None]
T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])


# --- kinds of values ------------------------------------------------------------------------------------------------


def one_of(*values: str) -> Kind:
    """One of some words.

    >>> one_of("scan", "construction")("scann")
    "'scan' or 'construction'; did you mean 'scan'?"
    """

    def wrong(value: object) -> str | None:
        if value in values:
            return None
        guess = closest(value, values) if isinstance(value, str) else None
        return either(map(repr, values)) + (f"; did you mean '{guess}'?" if guess else "")

    return wrong


def whole(least: int) -> Kind:
    """A whole number that is large enough, and fits 64 bits."""

    def wrong(value: object) -> str | None:
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
            return f"a whole number of at least {least}"
        return None if int(value) < 2**63 else "a whole number below 2^63"

    return wrong


def number(least: float, most: float | None = None) -> Kind:
    """A number in a range."""

    def wrong(value: object) -> str | None:
        fits = isinstance(value, Real) and not isinstance(value, bool)
        if fits and least <= float(value) and (most is None or float(value) <= most):  # type: ignore[arg-type]
            return None
        return f"a number {f'of at least {least:g}' if most is None else f'from {least:g} to {most:g}'}"

    return wrong


def flag(value: object) -> str | None:
    """True or False."""
    return None if isinstance(value, bool) else "True or False"


def text(value: object) -> str | None:
    """A name, of a column for example."""
    return None if isinstance(value, str) else "a name in quotes"


def names(value: object) -> str | None:
    """A name or several."""
    several = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return None if isinstance(value, str) or several else "a name in quotes, or a list of them"


def anything(value: object) -> str | None:
    """What is checked where it is used: lengths of time, models, keys."""
    return None


def either(words: Iterator[str] | Sequence[str]) -> str:
    """Words as a choice.

    >>> either(["a", "b", "c"])
    'a, b or c'
    """
    *some, last = words
    return f"{', '.join(some)} or {last}" if some else last


# --- declaring and reading ------------------------------------------------------------------------------------------


def takes(kind: Kind) -> dict[str, Kind]:
    """What makes a field of a dataclass an option: the kind of its values."""
    return {"kind": kind}


def option(default: Any, kind: Kind) -> Any:
    """A field of a class of options. `None` always stands for "not given"."""
    return field(default=default, metadata=takes(kind))


def options_of(kind: type) -> tuple[str, ...]:
    """The names of the options that a class declares, those that it inherits included.

    >>> options_of(RunsOptions)
    ('merge',)
    """
    return tuple(each.name for each in _declared(kind))


def given_options(options: object) -> tuple[str, ...]:
    """The names of the options whose values are not the default."""
    return tuple(each.name for each in _declared(type(options)) if getattr(options, each.name) != each.default)


def read_options(kind: type[T], keywords: Mapping[str, Any], elsewhere: Mapping[str, type] | None = None) -> T:
    """Options from keywords; an error for a name that is not known or a value that it cannot take.

    `elsewhere` are options that other calls take, by what these are for.

    >>> read_options(RunsOptions, {"merge": False})
    RunsOptions(merge=False)
    >>> read_options(RunsOptions, {"merge": "no"})
    Traceback (most recent call last):
    cepheid.errors.CepheidError: merge='no' is not True or False
    >>> read_options(RunsOptions, {"murge": True})
    Traceback (most recent call last):
    cepheid.errors.CepheidError: no option 'murge'; did you mean merge?
    """
    known = {each.name: each for each in _declared(kind)}
    for name, value in keywords.items():
        if name not in known:
            raise CepheidError(*_unknown(name, known, elsewhere or {}))
        _check(known[name], value)
    return kind(**{name: value for name, value in keywords.items() if value is not None or known[name].default is None})


def _declared(kind: type) -> tuple[Field[Any], ...]:
    return tuple(each for each in fields(kind) if "kind" in each.metadata)


def _check(declared: Field[Any], value: object) -> None:
    wrong = None if value is None else declared.metadata["kind"](value)
    if wrong is not None:
        raise CepheidError(f"{declared.name}={value!r} is not {wrong}")


def _unknown(name: str, known: Mapping[str, object], elsewhere: Mapping[str, type]) -> tuple[str]:
    for where, kind in elsewhere.items():
        if name in options_of(kind):
            return (f"{name} is an option of {where}; leave it out here",)
    guess = closest(name, known)
    return (f"no option '{name}'; {f'did you mean {guess}?' if guess else f'there are {_listed(known)}'}",)


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names))


# --- what engines read ----------------------------------------------------------------------------------------------


SCORINGS = ("exact", "paper", "posterior")
METHODS = ("auto", "query-order", "any-state", "sorted", "selectivity")


@dataclass(frozen=True)
class NoOptions:
    """Of an engine that has none of its own."""


@dataclass(frozen=True)
class SequenceOptions:
    """Of the sequence engine."""

    pushdown: bool = option(True, flag)  # False: SASE's basic plan, which tests everything at the end


@dataclass(frozen=True)
class RunsOptions:
    """Of the engine that keeps runs."""

    merge: bool = option(True, flag)  # merge runs that are equivalent from here on


@dataclass(frozen=True)
class ChainOptions:
    """Of the lazy chain."""

    order: Sequence[str] | None = option(None, names)  # the variables in the order in which they are looked for


@dataclass(frozen=True)
class TreeOptions:
    """Of the lazy tree."""

    learn: bool = option(True, flag)  # choose orders by what conditions let through, not by counts alone


@dataclass(frozen=True)
class MissingOptions:
    """Where events may be missing."""

    missing_last: bool = option(False, flag)  # may the last event be missing, too?


@dataclass(frozen=True)
class ForecastOptions:
    """Of the engine that forecasts."""

    forecast_at: int | None = option(None, number(-(2.0**62), 2.0**62))  # all that is open at this instant, in steps


TOLERANCE = 1e-9  # by how much a confidence may be off that bounds give instead of a sum


@dataclass(frozen=True)
class ImpreciseOptions:
    """Where times are intervals."""

    confidence: float | None = option(None, number(0, 1))  # the least of a match, as CONFIDENCE in the query
    probabilities: str | None = option(None, text)  # a column that lists the probability of each instant
    unit: Any = field(default=None, metadata=takes(anything))  # the length of one instant
    max_width: int | None = option(None, number(1))  # instants of an interval
    max_cost: float | None = option(None, number(1))  # steps for the confidence of one match
    tolerance: float | None = option(None, number(0, 1))  # by how much a confidence may be off


@dataclass(frozen=True)
class IntervalOptions(MissingOptions, ImpreciseOptions):
    """Of the engine that judges intervals."""

    method: str = option("auto", one_of(*METHODS))  # the order in which candidates are looked for (TIME section 4)


@dataclass(frozen=True)
class EngineOptions(SequenceOptions, RunsOptions, ChainOptions, TreeOptions, ForecastOptions, IntervalOptions):
    """All that engines read besides the plan. An engine reads its own part."""

    # Set by OUTPUT NON-OVERLAP, not by users: an engine may leave out what is sure to overlap.
    non_overlapping: bool = False
    may_begin: Any = None  # with it, by row of the events: can a reported match begin there? None: anywhere

    def get(self, name: str, default: Any = None) -> Any:
        """An option by its name; the default where it was not given."""
        value = getattr(self, name, None)
        return default if value is None else value

    def keys(self) -> list[str]:
        """The names, so that options can be copied as a mapping is."""
        return [each.name for each in fields(self)]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@dataclass(frozen=True)
class Limits:
    """How much a query may produce before it is stopped: skip_till_any with Kleene plus can be exponential."""

    max_matches: int = option(50_000_000, whole(1))
    max_partial_matches: int = option(50_000_000, whole(1))
    timeout: float | None = option(None, number(0))  # seconds that a call may take; on Spark, those of each task
    max_bytes: int | None = option(None, whole(1))  # memory that it may take
    truncate: bool = option(False, flag)  # True: return what was found so far and say so; False: an error


def within_limits(keywords: Mapping[str, Any]) -> AbstractContextManager[None]:
    """A block that holds to the `timeout` and `max_bytes` among the options of a call."""
    given = {name: keywords[name] for name in ("timeout", "max_bytes") if name in keywords}
    limits = read_options(Limits, given)
    return within_budget(limits.timeout, limits.max_bytes)


def bounded(call: Call) -> Call:
    """A public call that holds to its own `timeout` and `max_bytes` in all it does, not in searches alone."""

    @wraps(call)
    def held(*arguments: Any, **options: Any) -> Any:
        with within_limits(options):
            return call(*arguments, **options)

    return cast(Call, held)


@dataclass(frozen=True)
class PlanOptions(EngineOptions, Limits):
    """What a caller may say about the plan. Options that are not given leave the choice to the planner."""

    model: Any = field(default=None, metadata=takes(anything))  # loss and gap model (AYAC)
    scoring: str = option("exact", one_of(*SCORINGS))
    engine: str = option("auto", text)
    equivalence: str = option("scan", one_of("scan", "construction"))  # where equivalence tests are made

    def part(self, kind: type[T]) -> T:
        """The options of one of the classes that this one is made of."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(kind)})  # type: ignore[arg-type]
