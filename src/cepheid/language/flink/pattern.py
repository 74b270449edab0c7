"""Flink CEP's builder in Python's spelling. Patterns are frozen: every call returns a new one.

    Pattern.begin("start").where("name = 'a'").followed_by("end").where("price > start.price").within(9)

What Flink's Pattern refuses is refused here, with a QueryError where Flink throws a MalformedPatternException.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any, NoReturn

from cepheid.errors import QueryError
from cepheid.language.durations import parse_length
from cepheid.language.flink.skip import AfterMatchSkipStrategy, Skip

NO_SKIP = AfterMatchSkipStrategy()


class Contiguity(Enum):
    """How a step's event is reached from the one before it."""

    STRICT = "next"
    RELAXED = "followed_by"
    ANY = "followed_by_any"
    NOT_NEXT = "not_next"
    NOT_FOLLOW = "not_followed_by"


NEGATIVE = frozenset({Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOW})


@dataclass(frozen=True)
class Test:
    """What an event has to pass: a text, or the name of an event type."""

    text: str
    is_type: bool = False


@dataclass(frozen=True)
class Both:
    """Both conditions hold."""

    left: Condition
    right: Condition


@dataclass(frozen=True)
class Either:
    """At least one of two conditions holds."""

    left: Condition
    right: Condition


Condition = Test | Both | Either
MAX_NESTED = 50  # groups inside groups: many passes recurse, and Python's stack is finite
MAX_CONDITIONS = 200  # of one step, for the same reason


class Rounds(Enum):
    """How often a step or a group is taken."""

    SINGLE = "once"
    TIMES = "times"  # from `least` to `most` times
    LOOPING = "one_or_more"  # at least `least` times


@dataclass(frozen=True)
class Quantifier:
    """How often a step or a group is taken, and how the events of its rounds follow each other."""

    rounds: Rounds = Rounds.SINGLE
    least: int = 1
    most: int = 1
    inner: Contiguity = Contiguity.RELAXED
    optional: bool = False
    greedy: bool = False
    between: Any = None  # the longest time from one round to the next


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern, known by its last step or group; `previous` is all that comes before it.

    >>> pattern = Pattern.begin("start").where("name = 'a'").followed_by("end").where("price > start.price").within(9)
    >>> print(pattern)
    Pattern.begin('start').where("name = 'a'").followed_by('end').where('price > start.price').within(9)
    """

    name: str | None = None  # None: a group
    group: Pattern | None = None
    previous: Pattern | None = None
    contiguity: Contiguity = Contiguity.STRICT
    condition: Condition | None = None
    until_condition: Test | None = None
    quantifier: Quantifier = Quantifier()
    window: Any = None
    gap_window: object = None  # between two events
    skip: AfterMatchSkipStrategy = NO_SKIP

    # --- steps and groups -------------------------------------------------------------------------------------------

    @classmethod
    def begin(cls, first: str | Pattern, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
        """The first step, or a group of steps."""
        if skip is not None and not isinstance(skip, AfterMatchSkipStrategy):
            _fail(f"skip={skip!r} is not a strategy", "use AfterMatchSkipStrategy.skip_past_last_event(), for example")
        name, group = _step_or_group(first)
        return cls(name, group, skip=skip or NO_SKIP)

    def next(self, step: str | Pattern) -> Pattern:
        """The step's event comes directly after the one before it."""
        return self._then(step, Contiguity.STRICT)

    def followed_by(self, step: str | Pattern) -> Pattern:
        """The next event that passes the step's conditions; others are passed over."""
        return self._then(step, Contiguity.RELAXED)

    def followed_by_any(self, step: str | Pattern) -> Pattern:
        """Any later event that passes the step's conditions, each in a match of its own."""
        return self._then(step, Contiguity.ANY)

    def not_next(self, step: str) -> Pattern:
        """The next event does not pass the step's conditions."""
        return self._negated(step, Contiguity.NOT_NEXT)

    def not_followed_by(self, step: str) -> Pattern:
        """No event up to the next step passes the conditions; at the end of a pattern, none within the window."""
        return self._negated(step, Contiguity.NOT_FOLLOW)

    def _then(self, step: str | Pattern, contiguity: Contiguity) -> Pattern:
        name, group = _step_or_group(step)
        return Pattern(name, group, self, contiguity, skip=self.skip)

    def _negated(self, step: str, contiguity: Contiguity) -> Pattern:
        if not isinstance(step, str):
            _fail("a group cannot be negated", f"negate one step: {contiguity.value}('name')")
        if self.quantifier.optional:
            hint = "write two patterns, one with the optional part and one without"
            _fail(f"{contiguity.value} after an optional part", hint)
        return self._then(step, contiguity)

    # --- conditions -------------------------------------------------------------------------------------------------

    def where(self, condition: str) -> Pattern:
        """The event passes this condition, and those given before."""
        self._no_group("where")
        test = Test(_text(condition, "where"))
        return replace(self, condition=_joined(Both, self.condition, test))

    def or_(self, condition: str) -> Pattern:
        """The event passes this condition, or all that was given before."""
        self._no_group("or_")
        test = Test(_text(condition, "or_"))
        return replace(self, condition=_joined(Either, self.condition, test))

    def subtype(self, type: str) -> Pattern:
        """The event is of a type, and passes what was given before."""
        self._no_group("subtype")
        test = Test(_text(type, "subtype"), is_type=True)
        return replace(self, condition=_joined(Both, self.condition, test))

    def until(self, condition: str) -> Pattern:
        """A loop takes no event from the first one on that passes this."""
        if self.until_condition is not None:
            _fail("a loop has one until", "join the conditions with OR")
        if self.quantifier.rounds is not Rounds.LOOPING:
            _fail("until ends a loop", "write one_or_more() or times_or_more(n) before it")
        return replace(self, until_condition=Test(_text(condition, "until")))

    # --- how often --------------------------------------------------------------------------------------------------

    def optional(self) -> Pattern:
        """The step or group may be left out."""
        if self.previous is not None and self.previous.quantifier.greedy:
            _fail("an optional part after a greedy one", "leave greedy() or optional() out")
        if self.quantifier.optional:
            _fail("optional is given twice")
        if self.contiguity in NEGATIVE:
            _fail("a negated step cannot be optional")
        return self._with(optional=True)

    def one_or_more(self, within: object = None) -> Pattern:
        """At least one event; `within` is the longest time from the event before to the first one."""
        return self._looping("one_or_more", 1, within)

    def times_or_more(self, least: int, within: object = None) -> Pattern:
        """At least so many events; `within` is the longest time from one to the next, up to that number."""
        return self._looping("times_or_more", least, within)

    def _looping(self, method: str, least: int, within: object) -> Pattern:
        self._no_rounds(method)
        _count(least, 1)
        return self._with(
            rounds=Rounds.LOOPING, least=least, most=least, between=_length(within, method), optional=False
        )

    def times(self, least: int, most: int | str | timedelta | None = None, within: object = None) -> Pattern:
        """Exactly so many events, or from so many to so many.

        `within` is the longest time from one to the next but, as in Flink 2.3, not to the last one. As in Flink, too,
        `times(3, timedelta(seconds=2))` is `times(3, within=timedelta(seconds=2))`.
        """
        self._no_rounds("times")
        if within is None and isinstance(most, str | timedelta) and parse_length(most, "within")[1] is not None:
            most, within = None, most
        _count(least, 1 if most is None else 0)
        if most is not None:
            _count(most, max(least, 1))
        return self._with(
            rounds=Rounds.TIMES,
            least=max(least, 1),
            most=most if most is not None else least,
            between=_length(within, "times"),
            optional=least == 0,
        )

    def greedy(self) -> Pattern:
        """A loop takes as many events as it can before the next step begins."""
        self._no_negation("greedy")
        if self.group is not None:
            _fail("greedy is for one step, not for a group")
        if self.quantifier.inner is Contiguity.ANY:
            _fail("greedy cannot be combined with allow_combinations")
        if self.quantifier.rounds is Rounds.SINGLE:
            _fail("greedy is for a step that is taken several times", "write one_or_more() or times(2, 4) before it")
        return self._with(greedy=True)

    def allow_combinations(self) -> Pattern:
        """A loop may pass over events that it could take."""
        if self.quantifier.rounds is Rounds.SINGLE:
            _fail("allow_combinations is for a part that is taken several times", "write one_or_more() before it")
        self._one_inner(Contiguity.ANY)
        return self._with(inner=Contiguity.ANY)

    def consecutive(self) -> Pattern:
        """The events of a loop follow each other directly."""
        if self.quantifier.rounds is Rounds.SINGLE:
            _fail("consecutive is for a part that is taken several times", "write one_or_more() before it")
        self._one_inner(Contiguity.STRICT)
        return self._with(inner=Contiguity.STRICT)

    # --- time -------------------------------------------------------------------------------------------------------

    def within(self, length: object, between_events: bool = False) -> Pattern:
        """The whole match is shorter than this or, with `between_events`, the time from the event before this step."""
        if not isinstance(between_events, bool):
            _fail(
                f"between_events={between_events!r} is neither True nor False",
                "between_events=True is Flink's PREVIOUS_AND_CURRENT; without it the window covers the whole match",
            )
        if parse_length(length, "within")[0] <= 0:
            _fail("a window must be longer than zero", "for example within(9) or within('10 minutes')")
        return replace(self, gap_window=length) if between_events else replace(self, window=length)

    # --- looking at it ----------------------------------------------------------------------------------------------

    def chain(self) -> tuple[Pattern, ...]:
        """The steps and groups in order, this one last."""
        found: list[Pattern] = []
        at: Pattern | None = self
        while at is not None:
            found.append(at)
            at = at.previous
        return tuple(reversed(found))

    def steps(self) -> Iterator[Pattern]:
        """All steps in order, those of groups in their place."""
        for part in self.chain():
            if part.group is not None:
                yield from part.group.steps()
            else:
                yield part

    def __str__(self) -> str:
        return "".join(part_text(part) for part in self.chain())

    __repr__ = __str__

    # --- what Flink refuses -----------------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> Pattern:
        return replace(self, quantifier=replace(self.quantifier, **changes))

    def _no_group(self, method: str) -> None:
        if self.group is not None:
            _fail(f"{method} is for one step, not for a group", "give the conditions inside the group")

    def _no_negation(self, method: str) -> None:
        if self.contiguity in NEGATIVE:
            _fail(f"{method} is not for a negated step")

    def _no_rounds(self, method: str) -> None:
        self._no_negation(method)
        if self.quantifier.rounds is not Rounds.SINGLE:
            _fail(f"{method} after {self.quantifier.rounds.value}: a step has one quantifier")

    def _one_inner(self, wanted: Contiguity) -> None:
        known = self.quantifier.inner
        if known is wanted:
            _fail(f"{'consecutive' if wanted is Contiguity.STRICT else 'allow_combinations'} is given twice")
        if known is not Contiguity.RELAXED:
            _fail("consecutive cannot be combined with allow_combinations")


def check_pattern(pattern: Pattern) -> None:
    """What Flink checks when it compiles a pattern: names are not given twice, and strategies name a step."""
    seen: set[str] = set()
    for step in pattern.steps():
        assert step.name is not None
        if step.name in seen:
            _fail(f"two steps are called '{step.name}'", "give one of them another name")
        seen.add(step.name)
    skip = pattern.skip
    if skip.step is not None and skip.step not in {part.name for part in pattern.chain()}:
        known = ", ".join(part.name for part in pattern.chain() if part.name is not None)
        _fail(f"{skip.skip.value} names '{skip.step}', which is not a step outside groups", f"there are {known}")


def is_list(pattern: Pattern) -> dict[str, bool]:
    """For each step that is not negated: may it hold several events?"""
    found: dict[str, bool] = {}

    def visit(inner: Pattern, repeated: bool) -> None:
        for part in inner.chain():
            many = repeated or part.quantifier.rounds is not Rounds.SINGLE
            if part.group is not None:
                visit(part.group, many)
            elif part.contiguity not in NEGATIVE:
                assert part.name is not None
                found[part.name] = many

    visit(pattern, False)
    return found


def steps_before(pattern: Pattern) -> dict[str, frozenset[str]]:
    """For each step: which steps may hold events when it is judged; in repeated groups, those behind it, too.

    >>> pair = Pattern.begin("x").next("y")
    >>> found = steps_before(Pattern.begin("a").next(pair).times(2).next("b"))
    >>> sorted(found["x"]), sorted(found["b"])
    (['a', 'x', 'y'], ['a', 'b', 'x', 'y'])
    """
    found: dict[str, frozenset[str]] = {}

    def visit(inner: Pattern, before: frozenset[str]) -> None:
        for part in inner.chain():
            if part.group is not None:
                inside = frozenset(is_list(part.group))
                visit(part.group, before | inside if part.quantifier.rounds is not Rounds.SINGLE else before)
                before |= inside
            elif part.name is not None:
                found[part.name] = before | {part.name}
                before |= {part.name} if part.contiguity not in NEGATIVE else frozenset()

    visit(pattern, frozenset())
    return found


def _fail(message: str, hint: str | None = None, code: str = "flink-pattern") -> NoReturn:
    raise QueryError(message, hint=hint, code=code)


def _step_or_group(given: object) -> tuple[str | None, Pattern | None]:
    if isinstance(given, Pattern):
        if _depth(given) >= MAX_NESTED:
            _fail(
                f"groups nested more than {MAX_NESTED} deep", "write the steps of an inner group one by one", "too-deep"
            )
        return None, given
    if not isinstance(given, str) or not given:
        _fail(f"the name of a step is a string, not {given!r}", "for example begin('start')")
    if ":" in given:
        _fail(f"the name of a step cannot contain a colon: '{given}'")
    return given, None


def _depth(pattern: Pattern) -> int:
    """How many groups lie inside each other, the pattern itself included; it was checked when it was built."""
    return 1 + max((_depth(part.group) for part in pattern.chain() if part.group is not None), default=0)


def _text(given: object, method: str) -> str:
    if not isinstance(given, str):
        _fail(f"{method} takes a text, not {given!r}", f"for example {method}(\"name = 'a'\")")
    return given


def _joined(kind: type[Both] | type[Either], known: Condition | None, test: Test) -> Condition:
    """What was given before, and one condition more."""
    if known is None:
        return test
    depth, at = 1, known
    while not isinstance(at, Test):
        depth, at = depth + 1, at.left
    if depth >= MAX_CONDITIONS:
        hint = "join them with AND or OR in one condition"
        _fail(f"more than {MAX_CONDITIONS} conditions of one step", hint, "too-deep")
    return kind(known, test)


def _length(given: object, method: str) -> Any:
    """The longest time from one round to the next, if there is one."""
    if given is not None and parse_length(given, "within")[0] <= 0:
        _fail("a window must be longer than zero", f"for example {method}(..., within='10 seconds')")
    return given


def _count(given: object, least: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        _fail(f"{given!r} is not a valid number of events here", f"give a whole number of at least {least}")


def part_text(part: Pattern) -> str:
    what = repr(part.name) if part.group is None else str(part.group)
    if part.previous is None:
        skipped = f", skip={part.skip!r}" if part.skip.skip is not Skip.NO_SKIP else ""
        text = f"Pattern.begin({what}{skipped})"
    else:
        text = f".{part.contiguity.value}({what})"
    text += condition_text(part.condition) if part.condition is not None else ""
    how = part.quantifier
    between = f", within={how.between!r}" if how.between is not None else ""
    zero = how.optional and how.rounds is Rounds.TIMES and how.least == 1
    match how.rounds:
        case Rounds.TIMES:
            least = 0 if zero else how.least
            text += f".times({least}{f', {how.most}' if how.most != least else ''}{between})"
        case Rounds.LOOPING:
            text += f".times_or_more({how.least}{between})" if how.least > 1 else f".one_or_more({between[2:]})"
    inner = {Contiguity.STRICT: ".consecutive()", Contiguity.ANY: ".allow_combinations()"}
    text += inner.get(how.inner, "") + (".greedy()" if how.greedy else "")
    text += ".optional()" if how.optional and not zero else ""
    text += f".until({part.until_condition.text!r})" if part.until_condition is not None else ""
    text += f".within({part.window!r})" if part.window is not None else ""
    return text + (f".within({part.gap_window!r}, between_events=True)" if part.gap_window is not None else "")


def condition_text(condition: Condition) -> str:
    match condition:
        case Test(text=text, is_type=is_type):
            return f".{'subtype' if is_type else 'where'}({text!r})"
        case Both(left=left, right=right):
            return condition_text(left) + condition_text(right)
        case Either(left=left, right=right):
            return condition_text(left) + condition_text(right).replace(".where(", ".or_(", 1)
