"""Options as types: which there are, what values each takes, and errors that name the right ones.

An option is a field of a frozen dataclass, made by `option(default, kind, help, ...)`, here or in runners/options.py.
That is its only declaration. From it come the checks of keywords, the typed signatures (runners/keywords.py), the
arguments of the SQL functions, the help of the command line and the tables of docs/api.md and docs/spark.md.
`python -m runners.option_pages`, with `src` and `tests` on the path, writes what is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from typing import Any, TypeVar, cast

from cepheid.budget import within_budget
from cepheid.errors import CepheidError, closest
from cepheid.plan.option_kinds import (
    Kind,
    engine_name,
    flag,
    length,
    model_or_path,
    number,
    one_of,
    text,
    variables,
    whole,
)

T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])

QUERY_TEXT, MATCH_RECOGNIZE, FLINK = "query text", "MATCH_RECOGNIZE", "Flink patterns"
TEXT_ALONE = (QUERY_TEXT,)
TEXT_AND_FLINK = (QUERY_TEXT, FLINK)
EVERY_LANGUAGE = (QUERY_TEXT, MATCH_RECOGNIZE, FLINK)


# --- declaring and reading ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """What is said of an option besides its name, its default and where it applies, which its class says."""

    kind: Kind
    help: str  # one sentence in Markdown, without its capital letter and its full stop
    languages: tuple[str, ...] = TEXT_ALONE
    example: str | None = None  # a value, as Python code
    shown: str | None = None  # the default as the documentation shows it, where it is not the value
    live: bool = False  # of an option of streams: has `cepheid.live` it, too?


def option(default: object, kind: Kind, help: str, **more: Any) -> Any:
    """A field of a class of options. `None` always stands for "not given", unless the kind says otherwise."""
    return field(default=default, metadata={"declared": Declared(kind, help, **more)})


_declared: dict[type, dict[str, tuple[Field[Any], Declared]]] = {}  # each call asks for them eight times


def declared(kind: type) -> dict[str, tuple[Field[object], Declared]]:
    """The options that a class declares or inherits, by name."""
    if kind not in _declared:
        own = [each for each in fields(kind) if "declared" in each.metadata]
        _declared[kind] = {each.name: (each, each.metadata["declared"]) for each in own}
    return _declared[kind]


def options_of(kind: type, language: str | None = None) -> tuple[str, ...]:
    """The names of the options that a class declares, those that it inherits included; those of a language, if given.

    >>> options_of(RunsOptions)
    ('merge',)
    >>> options_of(RunsOptions, FLINK)
    ()
    """
    return tuple(name for name, (_, said) in declared(kind).items() if language is None or language in said.languages)


def given_options(options: object) -> tuple[str, ...]:
    """The names of the options whose values are not the default."""
    return tuple(name for name, (each, _) in declared(type(options)).items() if getattr(options, name) != each.default)


def read_options(kind: type[T], keywords: Mapping[str, object], elsewhere: Mapping[str, type] | None = None) -> T:
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
    known = declared(kind)
    read: dict[str, Any] = {}
    for name, value in keywords.items():
        if name not in known:
            raise CepheidError(*_unknown(name, known, elsewhere or {}))
        each, said = known[name]
        if value is None and not said.kind.none:
            if each.default is None:
                read[name] = None
            continue
        wrong = said.kind(value)
        if wrong is not None:
            raise CepheidError(f"{name}={value!r} is not {wrong}")
        read[name] = said.kind.made(value)
    return kind(**read)


def options_from_text(keywords: Mapping[str, object], *kinds: type) -> dict[str, object]:
    """Options whose values were written in SQL or on the command line, as `match` takes them.

    >>> options_from_text({"order": "a, b", "merge": False}, ChainOptions, RunsOptions)
    {'order': ('a', 'b'), 'merge': False}
    """
    known = {name: said.kind for kind in kinds for name, (_, said) in declared(kind).items()}
    return {
        name: known[name].worded(value) if name in known and isinstance(value, str) else value
        for name, value in keywords.items()
    }


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

    pushdown: bool = option(True, flag, "`False`: SASE's basic plan, which tests all conditions at the end")


@dataclass(frozen=True)
class RunsOptions:
    """Of the engine that keeps runs."""

    merge: bool = option(True, flag, "merge runs that are equivalent from now on (`runs`)")


@dataclass(frozen=True)
class ChainOptions:
    """Of the lazy chain."""

    order: Sequence[str] | None = option(
        None,
        variables,
        "the variables in the order in which `lazy-chain` searches for them",
        example='["c", "a"]',
    )


@dataclass(frozen=True)
class TreeOptions:
    """Of the lazy tree."""

    learn: bool = option(
        True, flag, "choose evaluation orders by the selectivity of conditions, not by counts alone (`lazy-tree`)"
    )


@dataclass(frozen=True)
class MissingOptions:
    """Where events may be missing."""

    missing_last: bool = option(
        False, flag, "`True`: the last event may be missing, too; such matches are reported when the window closes"
    )


@dataclass(frozen=True)
class ForecastOptions:
    """Of the engine that forecasts."""

    forecast_at: int | None = option(
        None,
        number(-(2.0**62), 2.0**62, "int"),
        "for FORECAST: all partial matches that are open at this instant, in steps of the time column",
        example="1200",
    )


TOLERANCE = 1e-9  # by how much a confidence may be off that bounds give instead of a sum


@dataclass(frozen=True)
class ImpreciseOptions:
    """Where times are intervals."""

    confidence: float | None = option(
        None,
        number(0, 1),
        "the minimum confidence of a match under imprecise times, like CONFIDENCE in the query",
        example="0.9",
    )
    probabilities: str | None = option(
        None,
        text,
        "a column that lists the probability of each instant of an imprecise time, see "
        "[imprecise-time.md](imprecise-time.md)",
        example='"odds"',
    )
    unit: Any = option(
        None,
        length,
        "the length of one instant of an imprecise time, see [imprecise-time.md](imprecise-time.md)",
        example='"10 ms"',
    )
    max_width: int | None = option(
        None, number(1, typed="int"), "the maximum number of instants of an imprecise time", example="1000"
    )
    max_cost: float | None = option(
        None, number(1), "the maximum number of steps for the confidence of one match", example="1e7"
    )
    tolerance: float | None = option(
        None,
        number(0, 1),
        "the largest error of a confidence that is computed by bounds; `0`: always exact, see "
        "[imprecise-time.md](imprecise-time.md#how-it-is-computed)",
        shown="1e-9",
    )


@dataclass(frozen=True)
class MethodOptions:
    """How the engine that judges intervals searches."""

    method: str = option(
        "auto",
        one_of(*METHODS, typed="Method"),
        "search order at imprecise times (`intervals`): `query-order`, `any-state`, `sorted` or `selectivity`",
    )  # TIME section 4


@dataclass(frozen=True)
class IntervalOptions(MissingOptions, ImpreciseOptions, MethodOptions):
    """Of the engine that judges intervals."""


@dataclass(frozen=True)
class EngineOptions(SequenceOptions, RunsOptions, ChainOptions, TreeOptions, ForecastOptions, IntervalOptions):
    """All that engines read besides the plan. An engine reads its own part."""

    # Set by OUTPUT NON-OVERLAP, not by users: an engine may leave out what is sure to overlap.
    non_overlapping: bool = False
    may_begin: Any = None  # with it, by row of the events: can a reported match begin there? None: anywhere

    def get(self, name: str, default: object = None) -> Any:
        """An option by its name; the default where it was not given."""
        value = getattr(self, name, None)
        return default if value is None else value

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@dataclass(frozen=True)
class Limits:
    """How much a query may produce before it is stopped: skip_till_any with Kleene plus can be exponential."""

    max_matches: int = option(
        50_000_000, whole(1), "more matches raise a `LimitError`; see below", languages=EVERY_LANGUAGE
    )
    max_partial_matches: int = option(
        50_000_000, whole(1), "more partial matches at a time raise a `LimitError`; see below", languages=TEXT_AND_FLINK
    )
    timeout: float | None = option(
        None,
        number(0),
        "maximum seconds of the call; a longer one raises `TimeoutReached`; see below",
        languages=EVERY_LANGUAGE,
        example="30",
    )  # on Spark, those of each task
    max_bytes: int | None = option(
        None,
        whole(1),
        "maximum growth of the process's memory, as reported by the system; more raises a `LimitError`",
        languages=EVERY_LANGUAGE,
        example="2_000_000_000",
    )
    truncate: bool = option(
        False, flag, "`True`: at the limit of matches, return those found so far instead of an error; see below"
    )


def within_limits(keywords: Mapping[str, object]) -> AbstractContextManager[None]:
    """A block that holds to the `timeout` and `max_bytes` among the options of a call."""
    given = {name: keywords[name] for name in ("timeout", "max_bytes") if name in keywords}
    limits = read_options(Limits, given)
    return within_budget(limits.timeout, limits.max_bytes)


def bounded(call: Call) -> Call:
    """A public call that holds to its own `timeout` and `max_bytes` in all it does, not in searches alone."""

    @wraps(call)
    def held(*arguments: object, **options: object) -> Any:
        with within_limits(options):
            return call(*arguments, **options)

    return cast(Call, held)


@dataclass(frozen=True)
class ModelOptions:
    """What is known of events that are missing."""

    model: Any = option(None, model_or_path, "a `cepheid.Model`, fitted by `cepheid.fit` or built by hand")  # AYAC
    scoring: str = option(
        "exact",
        one_of(*SCORINGS, typed="Scoring"),
        "how missing events are scored: `exact`, `posterior` (the probability given what was seen) or `paper`, see "
        "[missing-events.md](missing-events.md)",
    )


@dataclass(frozen=True)
class ChoiceOptions:
    """Which way of several a plan takes."""

    engine: str = option(
        "auto",
        engine_name,
        "the engine; an engine that cannot run the query is an error; see below",
        languages=EVERY_LANGUAGE,
    )
    equivalence: str = option(
        "scan",
        one_of("scan", "construction"),
        "`construction`: compare all keys except the one with most values while building matches",
    )


@dataclass(frozen=True)
class PlanOptions(EngineOptions, Limits, ModelOptions, ChoiceOptions):
    """What a caller may say about the plan. Options that are not given leave the choice to the planner."""

    def part(self, kind: type[T]) -> T:
        """The options of one of the classes that this one is made of."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(kind)})  # type: ignore[arg-type]
