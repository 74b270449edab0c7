"""What a Flink pattern waits for, as states: written for the reference alone, after Flink's NFACompiler (version 2.3).

The compiler that the searches use is another one (`plan/flink_lowering.py`), and neither knows the other. Conditions
are functions of what a run took before and of the number of the event at hand. A part of the pattern is laid out with
the state behind it (its sink), so the last part comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from cepheid.language.durations import whole_steps
from cepheid.language.flink import pattern as f
from cepheid.language.flink.conditions import Atom, Steps, bind_condition, type_condition
from cepheid.language.schema import Schema

Taken: TypeAlias = dict[str, list[int]]  # step -> the numbers of its events
Holds: TypeAlias = Callable[[Taken, int], bool]
JudgeAtom: TypeAlias = Callable[[Atom, Taken, int], bool]


class Move(Enum):
    """What is done with the event at hand."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"  # to another state, with the same event


class Is(Enum):
    """What a state is."""

    WAITING = "waiting"
    COMPLETE = "complete"
    FORBIDDEN = "forbidden"  # the run is given up
    UNTIL_THE_WINDOW_ENDS = "until the window ends"  # complete then


@dataclass(eq=False)
class State:
    """A state; the order of its moves is Flink's."""

    step: str
    kind: Is = Is.WAITING
    gap: int = 0  # the longest time since the event before; 0: any
    moves: list[tuple[Move, State, Holds]] = field(default_factory=list)

    def add(self, move: Move, target: State, holds: Holds) -> None:
        """A further move."""
        self.moves.append((move, target, holds))


@dataclass(frozen=True)
class Around:
    """Where a part of a pattern stands."""

    group: f.Pattern | None = None  # the nearest group around it...
    first_round: bool = True  # ... and whether this is the first round of that
    following: f.Pattern | None = None  # the part behind it, or behind the groups that it ends


@dataclass(frozen=True)
class StatesOfPattern:
    """The first state of a pattern, its window, and all that its conditions test."""

    start: State
    window: int  # 0: none
    atoms: tuple[Atom, ...]


def states_of(
    pattern: f.Pattern, schema: Schema, parameters: Mapping[str, object], judge: JudgeAtom
) -> StatesOfPattern:
    """Lays a pattern out; `judge` says whether an atom of a condition holds."""
    layout = _Layout(pattern, schema, parameters, judge)
    start = layout.chain(pattern, State("$endState$", Is.COMPLETE), Around())
    return StatesOfPattern(start, layout.window, tuple(layout.atoms))


def both(left: Holds, right: Holds) -> Holds:
    """Both hold."""
    return lambda taken, number: left(taken, number) and right(taken, number)


def either(left: Holds, right: Holds) -> Holds:
    """At least one holds."""
    return lambda taken, number: left(taken, number) or right(taken, number)


def negated(holds: Holds) -> Holds:
    """It does not hold."""
    return lambda taken, number: not holds(taken, number)


def always(taken: Taken, number: int) -> bool:
    """Holds for every event."""
    return True


def optional_or_negated(part: f.Pattern) -> bool:
    """Can a run get past the part without an event for it?"""
    return part.quantifier.optional or part.contiguity is f.Contiguity.NOT_FOLLOW


class _Layout:
    """Makes the states of a pattern."""

    def __init__(self, pattern: f.Pattern, schema: Schema, parameters: Mapping[str, object], judge: JudgeAtom) -> None:
        self.schema, self.parameters, self.judge = schema, parameters, judge
        self.holding = frozenset(f.is_list(pattern))
        self.before = f.steps_before(pattern)
        self.window = self.length(pattern.window)
        self.atoms: list[Atom] = []
        self.bound: dict[int, Holds] = {}  # conditions by their identity
        self.stops: dict[str, State] = {}
        self.met: set[str] = set()  # the steps that have a state
        self.unwaiting: dict[State, State] = {}  # what follows a greedy loop, as it was before it had to wait

    # --- time -------------------------------------------------------------------------------------------------------

    def length(self, given: object) -> int:
        """A length in steps of the time column; 0: none."""
        return 0 if given is None else whole_steps(given, self.schema, "within")

    # --- conditions -------------------------------------------------------------------------------------------------

    def condition(self, given: f.Condition, own: str | None) -> Holds:
        """A condition of a step."""
        if id(given) not in self.bound:
            self.bound[id(given)] = self.bind(given, own)
        return self.bound[id(given)]

    def bind(self, given: f.Condition, own: str | None) -> Holds:
        """The same for the first time."""
        if isinstance(given, f.Both):
            return both(self.condition(given.left, own), self.condition(given.right, own))
        if isinstance(given, f.Either):
            return either(self.condition(given.left, own), self.condition(given.right, own))
        if given.is_type:
            atoms: tuple[Atom, ...] = (type_condition(given.text, self.schema),)
        else:
            known = Steps(self.holding, self.before.get(own or "", self.holding))
            atoms = bind_condition(given.text, own, known, self.schema, self.parameters)
        self.atoms += atoms
        return lambda taken, number: all(self.judge(atom, taken, number) for atom in atoms)

    def fits(self, part: f.Pattern) -> Holds:
        """Does the event pass the conditions of a step?"""
        return always if part.condition is None else self.condition(part.condition, part.name)

    def ends(self, part: f.Pattern | None) -> Holds | None:
        """Does the event end a loop (until)?"""
        if part is None or part.until_condition is None:
            return None
        return self.condition(part.until_condition, part.name)

    def unless_ended(self, holds: Holds, loop: f.Pattern | None) -> Holds:
        """The same until the loop ends."""
        ended = self.ends(loop)
        return holds if ended is None else both(negated(ended), holds)

    def takes(self, part: f.Pattern, around: Around) -> Holds:
        """Can the step take the event?"""
        return self.unless_ended(self.fits(part), around.group)

    def passes(self, around: Around) -> Holds:
        """Can a run go past a part?"""
        return self.unless_ended(always, around.group)

    def ignores(self, part: f.Pattern, around: Around, between_rounds: bool) -> Holds | None:
        """Can the event be ignored on the way to the step, or between its rounds? None: no event can."""
        how = part.quantifier.inner if between_rounds else part.contiguity
        if around.group is not None and part.previous is None:  # the head of a group is reached as the group is
            again = between_rounds or not around.first_round
            how = around.group.quantifier.inner if again else around.group.contiguity
        if how is f.Contiguity.RELAXED:
            return self.unless_ended(negated(self.fits(part)), around.group)
        return self.unless_ended(always, around.group) if how is f.Contiguity.ANY else None

    # --- states -----------------------------------------------------------------------------------------------------

    def state(self, part: f.Pattern, kind: Is = Is.WAITING) -> State:
        """A state that waits for an event of a part, which must not come too late.

        The time between rounds is not limited for the state of a step that Flink makes first.
        """
        step, single = part.name or "GroupPattern", part.quantifier.rounds is f.Rounds.SINGLE
        limit = part.gap_window if single else part.quantifier.between if step in self.met else None
        self.met.add(step)
        return State(step, kind, self.length(limit))

    def stop(self, part: f.Pattern, forbidden: Holds) -> State:
        """Where a run ends that meets an event of a negated step."""
        step = part.name or ""
        if step not in self.stops:
            self.met.add(step)
            self.stops[step] = State(step, Is.FORBIDDEN)
            self.stops[step].add(Move.TAKE, self.stops[step], forbidden)
        return self.stops[step]

    def chain(self, last: f.Pattern, sink: State, around: Around) -> State:
        """The first state of a chain of parts that ends with `last`."""
        behind = around.following
        for part in reversed(last.chain()):
            here = replace(around, following=behind)
            if part is not last and part.window is not None:  # that of the last part of a group does not count
                self.window = min(self.length(part.window), self.window or self.length(part.window))
            if part.contiguity is f.Contiguity.NOT_FOLLOW:
                sink = self.not_followed_by(part, sink, here)
            elif part.contiguity is f.Contiguity.NOT_NEXT:
                sink = self.not_next(part, sink, here)
            else:
                sink = self.part(part, sink, here)
            behind = part
        return sink

    def not_followed_by(self, part: f.Pattern, sink: State, around: Around) -> State:
        """At the end of a pattern a state that waits for the end of the window; else the parts behind it look out."""
        windowed = part.gap_window is not None or self.window > 0
        if sink.kind is not Is.COMPLETE or not windowed:
            return sink
        waiting, forbidden = self.state(part, Is.UNTIL_THE_WINDOW_ENDS), self.takes(part, around)
        waiting.add(Move.PROCEED, self.stop(part, forbidden), forbidden)
        waiting.add(Move.IGNORE, waiting, negated(forbidden))
        return waiting

    def not_next(self, part: f.Pattern, sink: State, around: Around) -> State:
        """A state for one event that must be another; at the end of the pattern it is ignored."""
        state, forbidden = self.state(part), self.takes(part, around)
        onwards = Move.IGNORE if sink.kind is Is.COMPLETE else Move.PROCEED
        state.add(onwards, sink, negated(forbidden))
        state.add(Move.PROCEED, self.stop(part, forbidden), forbidden)
        return state

    def part(self, part: f.Pattern, sink: State, around: Around) -> State:
        """The first state of a step or a group, in all its rounds."""
        if part.quantifier.rounds is f.Rounds.SINGLE:
            ignored = self.ignores(part, around, False)
            optional = part.quantifier.optional
            first = self.round(part, sink, sink, self.takes(part, around), ignored, optional, True, around)
        elif part.quantifier.rounds is f.Rounds.TIMES:
            first = self.rounds(part, sink, sink, around)
        else:
            first = self.rounds(part, self.loop(part, self.past(part, sink, around), around), sink, around)
        self.look_out(part, first, around)
        return first

    def rounds(self, part: f.Pattern, sink: State, onwards: State, around: Around) -> State:
        """The first state of the rounds that are counted; those that may be left out come last."""
        how, optional = part.quantifier, part.quantifier.most - part.quantifier.least
        ignored = self.ignores(part, around, True)
        ignored = None if ignored is None else self.unless_ended(ignored, part)
        taken = self.unless_ended(self.takes(part, around), part)
        if how.greedy and optional:
            self.make_wait(part, sink, taken)
        last = sink
        for number in range(how.most - 1):
            last = self.round(part, last, onwards, taken, ignored, number < optional, False, around)
            self.look_ahead(last, around)
        return self.round(part, last, onwards, taken, self.ignores(part, around, False), how.optional, True, around)

    def round(
        self,
        part: f.Pattern,
        sink: State,
        onwards: State,
        taken: Holds,
        ignored: Holds | None,
        optional: bool,
        first: bool,
        around: Around,
    ) -> State:
        """One round of a step or a group: an optional one may proceed onwards, but only before it has ignored."""
        if part.group is not None:
            state = self.chain(part.group, sink, Around(part, first, around.following))
            if optional:
                state.add(Move.PROCEED, onwards, self.passes(around))
            return state
        state, target = self.state(part), self.past(part, sink, around)
        state.add(Move.TAKE, target, taken)
        if optional:
            self.leave(part, state, onwards, part.quantifier.greedy, around)
        if ignored is None:
            return state
        waiting = state
        heads = around.group is not None and around.first_round and part.previous is None
        if optional or (heads and around.group is not None and around.group.quantifier.optional):
            waiting = State(part.name or "")
            waiting.add(Move.TAKE, target, taken)
            waiting.add(Move.IGNORE, waiting, ignored)
            self.look_out(part, waiting, around)
        state.add(Move.IGNORE, waiting, ignored)
        return state

    def leave(self, part: f.Pattern, state: State, onwards: State, greedy: bool, around: Around) -> None:
        """Proceeds past a part; what follows a greedy loop need not wait any more once the loop has ended."""
        passes, ended = self.passes(around), self.ends(part) if greedy else None
        if ended is None:
            state.add(Move.PROCEED, onwards, passes)
            return
        state.add(Move.PROCEED, self.unwaiting.get(onwards, onwards), both(passes, ended))
        state.add(Move.PROCEED, onwards, both(passes, negated(ended)))

    def loop(self, part: f.Pattern, sink: State, around: Around) -> State:
        """A state that takes any number of events; a second one ignores, and does not proceed."""
        if part.group is not None:
            again, passes = self.state(part), self.passes(around)
            first = self.chain(part.group, again, Around(part, False, around.following))
            first.add(Move.PROCEED, sink, passes)
            again.add(Move.PROCEED, first, passes)
            return first
        loop, ignored = self.state(part), self.ignores(part, around, True)
        taken = self.unless_ended(self.takes(part, around), part)
        if part.quantifier.greedy:
            self.make_wait(part, sink, self.takes(part, around))
        self.leave(part, loop, sink, part.quantifier.greedy, around)
        loop.add(Move.TAKE, loop, taken)
        self.look_ahead(loop, around)
        if ignored is not None:
            ignored, waiting = self.unless_ended(ignored, part), State(part.name or "")
            waiting.add(Move.TAKE, loop, taken)
            waiting.add(Move.IGNORE, waiting, ignored)
            loop.add(Move.IGNORE, waiting, ignored)
            self.look_ahead(waiting, around)
        return loop

    # --- greed and negation -----------------------------------------------------------------------------------------

    def make_wait(self, part: f.Pattern, sink: State, taken: Holds) -> None:
        """What follows a greedy loop waits as long as the loop could take the event."""
        if part.until_condition is not None:
            copy = self.unwaiting[sink] = State(sink.step, sink.kind)
            for move, target, holds in sink.moves:
                copy.add(move, copy if target is sink else target, holds)
        sink.moves = [(move, target, both(holds, negated(taken))) for move, target, holds in sink.moves]

    def forbidden_before(self, part: f.Pattern, around: Around) -> list[tuple[f.Pattern, Holds]]:
        """The negated steps before a part, the nearest first, as far as a run can get there without an event."""
        found, at = [], part.previous
        while at is not None and optional_or_negated(at):
            if at.contiguity is f.Contiguity.NOT_FOLLOW:
                found.append((at, self.takes(at, around)))
            at = at.previous
        return found

    def look_out(self, part: f.Pattern, state: State, around: Around) -> None:
        """A run that waits for the part is given up by what is negated before it."""
        for negation, forbidden in self.forbidden_before(part, around):
            state.add(Move.PROCEED, self.stop(negation, forbidden), forbidden)

    def look_ahead(self, state: State, around: Around) -> None:
        """A run between two rounds is given up by what is negated behind them."""
        behind = around.following
        if behind is not None and behind.contiguity is f.Contiguity.NOT_FOLLOW:
            forbidden = self.takes(behind, around)
            state.add(Move.PROCEED, self.stop(behind, forbidden), forbidden)

    def past(self, part: f.Pattern, sink: State, around: Around) -> State:
        """What comes behind an optional part that took an event: what was negated before it is so no longer."""
        steps = {negation.name for negation, _ in self.forbidden_before(part, around)}
        if not steps or not part.quantifier.optional:
            return sink
        copy = State(sink.step, sink.kind)
        for move, target, holds in list(sink.moves):
            if move is Move.PROCEED and target.kind is Is.FORBIDDEN:
                if target.step not in steps:
                    copy.add(move, target, holds)
            elif move is Move.PROCEED:
                copy.add(move, self.past(part, target, around), holds)
            else:
                copy.add(move, copy if target is sink else target, holds)
        return copy
