"""Flink's patterns lowered to the automaton, built as its NFACompiler builds it: from the last step to the first.

A step becomes a state with edges that take an event, ignore one, or proceed to another state for the same event.
Loops get a second state that ignores, so that a way onwards is opened once for each event taken; groups are laid out
in place; a step that must not occur becomes edges into a stop state. Which edges there are and in which order decides
what Flink reports, so the order here is Flink's (version 2.3), also where another one would seem more natural.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from cepheid.budget import checkpoint
from cepheid.errors import QueryError
from cepheid.language.durations import whole_steps
from cepheid.language.flink import pattern as f
from cepheid.language.flink.conditions import Atom, Steps, bind_condition, type_condition
from cepheid.language.schema import Schema
from cepheid.plan import automaton as made
from cepheid.plan.automaton import Action, Kind
from cepheid.plan.flink_automaton import All, Always, FlinkAutomaton, Formula, Judged, Not, Some, step_of
from cepheid.plan.flink_limits import MOST_STATES


@dataclass(eq=False)
class FlinkState:
    """A state while the automaton is being built."""

    number: int
    name: str
    kind: Kind
    edges: list[FlinkEdge] = field(default_factory=list)
    start: bool = False
    window: int | None = None  # the longest time since the event before

    def add(self, action: Action, target: FlinkState, formula: Formula) -> None:
        """A further edge."""
        self.edges.append(FlinkEdge(action, target, formula))

    def finished(self) -> made.State[Formula]:
        """The state as searches see it; its edges take events for its step."""
        step = step_of(self.name)
        edges = [(each.action, each.target.number, each.formula) for each in self.edges]
        numbered = (made.Edge(*each, variable=step, rank=rank) for rank, each in enumerate(edges))
        return made.State(self.name, tuple(numbered), self.kind)


@dataclass(eq=False)
class FlinkEdge:
    """An edge while the automaton is being built."""

    action: Action
    target: FlinkState
    formula: Formula


def lower_flink(pattern: f.Pattern, schema: Schema, parameters: Mapping[str, object] | None = None) -> FlinkAutomaton:
    """The automaton of a pattern over events of a schema."""
    f.check_pattern(pattern)
    builder = _Builder(pattern, schema, parameters or {})
    try:
        builder.build()
        _check_no_circle(builder.states)
    except RecursionError:
        _fail("the pattern has too many optional steps", "make fewer of them optional")
    (start,) = (state.number for state in builder.states if state.start)
    return FlinkAutomaton(
        made.Automaton(tuple(state.finished() for state in builder.states), start),
        tuple(state.window or 0 for state in builder.states),
        tuple(builder.atoms),
        builder.window or 0,
        pattern.skip,
        f.is_list(pattern),
        schema,
        pattern,
        parameters or {},
    )


def _fail(message: str, hint: str | None = None) -> NoReturn:
    raise QueryError(message, hint=hint, code="flink-pattern")


def _check_no_circle(states: list[FlinkState]) -> None:
    """A group that may be empty, in a loop, would go round for ever without an event.

    Flink 2.3 compiles such a pattern and then never ends with its first event: `NFA.createDecisionGraph` follows edges
    that take no event without remembering where it was, and `begin(group(a.optional())).oneOrMore()` leads back to
    itself. There is no answer of Flink's to give. A number of rounds, `times(2)`, is no circle, and runs.
    """
    done: set[int] = set()

    def visit(state: FlinkState, path: frozenset[int]) -> None:
        checkpoint()
        if state.number in path:
            _fail("a repeated group that may be empty", "make a step of the group not optional")
        if state.number not in done:
            for edge in state.edges:
                if edge.action is Action.PROCEED:
                    visit(edge.target, path | {state.number})
            done.add(state.number)

    for state in states:
        visit(state, frozenset())


class _Builder:
    """Walks a pattern from its end and makes the states, as Flink's compiler does."""

    def __init__(self, pattern: f.Pattern, schema: Schema, parameters: Mapping[str, object]) -> None:
        self.pattern = pattern
        self.schema = schema
        self.parameters = parameters
        self.states: list[FlinkState] = []
        self.names: dict[str, int] = {}  # with how many further states have each
        self.atoms: list[Atom] = []
        self.formulas: dict[int, Formula] = {}
        self.stops: dict[str, FlinkState] = {}
        self.originals: dict[str, FlinkState] = {}  # greedy loops with until: sinks before they were made to wait
        self.first_rounds: dict[int, bool] = {}
        self.window: int | None = None
        self.current = pattern
        self.following: f.Pattern | None = None
        self.group: f.Pattern | None = None
        self.known_steps = frozenset(f.is_list(pattern))
        self.steps_before = f.steps_before(pattern)

    def build(self) -> None:
        """Makes all states; raises for what Flink finds malformed only now."""
        last = self.pattern
        end = self.create("$endState$", Kind.FINAL)
        self.window = self.steps(last.window)
        sink = self.middle_states(end)
        self.convert(sink).start = True
        gaps = [state.window for state in self.states if state.window is not None]
        if self.window is not None and any(gap > self.window for gap in gaps):
            _fail("the window between two events is longer than that of the whole match", "make it shorter")
        if last.contiguity is f.Contiguity.NOT_FOLLOW:
            own = any(state.name == last.name and state.window for state in self.states)
            if not own and not self.window:
                hint = "add within(...): the match is reported when the window closes"
                _fail("not_followed_by at the end needs a window", hint)

    def steps(self, length: object) -> int | None:
        """A length in steps of the time column."""
        return None if length is None else whole_steps(length, self.schema, "within")

    # --- conditions -------------------------------------------------------------------------------------------------

    def formula(self, part: f.Pattern) -> Formula:
        """A step's own condition."""
        if id(part) not in self.formulas:
            made: Formula = Always() if part.condition is None else self.judged(part.condition, part.name)
            self.formulas[id(part)] = made
        return self.formulas[id(part)]

    def until(self, part: f.Pattern) -> Formula | None:
        """What ends a loop."""
        if part.until_condition is None:
            return None
        return self.judged(part.until_condition, part.name)

    def judged(self, condition: f.Condition, own: str | None) -> Formula:
        match condition:
            case f.Test(text=text, is_type=True):
                return self.number(type_condition(text, self.schema))
            case f.Test(text=text):
                known = Steps(self.known_steps, self.steps_before.get(own or "", self.known_steps))
                atoms = bind_condition(text, own, known, self.schema, self.parameters)
                found: list[Formula] = [self.number(atom) for atom in atoms]
                while len(found) > 1:  # a tree as flat as can be, since what reads it recurses
                    rest = found[len(found) // 2 * 2 :]
                    found = [*map(All, found[::2], found[1::2]), *rest]
                return found[0]
            case f.Both(left=left, right=right):
                return All(self.judged(left, own), self.judged(right, own))
            case f.Either(left=left, right=right):
                return Some(self.judged(left, own), self.judged(right, own))

    def number(self, atom: Atom) -> Judged:
        if atom not in self.atoms:
            self.atoms.append(atom)
        return Judged(self.atoms.index(atom))

    def unless(self, formula: Formula | None, until: Formula | None, takes: bool) -> Formula | None:
        """A condition that ends where `until` holds."""
        if until is not None and formula is not None:
            return All(Not(until), formula)
        if until is not None and takes:
            return Not(until)
        return formula

    def unless_group_ends(self, formula: Formula | None, takes: bool) -> Formula | None:
        group_until = self.until(self.group) if self.group is not None else None
        return self.unless(formula, group_until, takes)

    def take_condition(self, part: f.Pattern) -> Formula:
        taken = self.unless_group_ends(self.formula(part), True)
        assert taken is not None
        return taken

    def true(self) -> Formula:
        found = self.unless_group_ends(Always(), True)
        assert found is not None
        return found

    def ignoring(self, part: f.Pattern, contiguity: f.Contiguity) -> Formula | None:
        """What may be ignored under a contiguity; None: nothing."""
        ignored: Formula | None = None
        if contiguity is f.Contiguity.RELAXED:
            ignored = Not(self.formula(part))
        elif contiguity is f.Contiguity.ANY:
            ignored = Always()
        return self.unless_group_ends(ignored, False)

    def ignore_condition(self, part: f.Pattern) -> Formula | None:
        """What may be ignored on the way to the first event of a step."""
        contiguity = part.contiguity
        if self.group is not None and part.previous is None:  # the head of a group is reached as the group is
            first = self.is_first_round()
            contiguity = self.group.contiguity if first else self.group.quantifier.inner
        return self.ignoring(part, contiguity)

    def inner_ignore_condition(self, part: f.Pattern) -> Formula | None:
        """What may be ignored between the rounds of a step."""
        contiguity = part.quantifier.inner
        if self.group is not None and part.previous is None:
            contiguity = self.group.quantifier.inner
        return self.ignoring(part, contiguity)

    # --- states -----------------------------------------------------------------------------------------------------

    def create(self, name: str, kind: Kind) -> FlinkState:
        """A state with a name of its own."""
        checkpoint()
        if len(self.states) >= MOST_STATES:
            _fail(f"the pattern has more than {MOST_STATES:,} states", "use fewer repetitions: each is a state")
        number = self.names[name] = self.names.get(name, -2) + 1
        unique = name if number < 0 else f"{name}:{number}"
        state = FlinkState(len(self.states), unique, kind)
        self.states.append(state)
        return state

    def create_here(self, kind: Kind, takes_part: bool) -> FlinkState:
        """A state of the current step, with the longest time since the event before it."""
        state = self.create(self.current.name or "GroupPattern", kind)
        if takes_part:
            if self.current.quantifier.rounds is f.Rounds.SINGLE:
                state.window = self.steps(self.current.gap_window)
            elif ":" in state.name:
                state.window = self.steps(self.current.quantifier.between)
        return state

    def stop_state(self, formula: Formula, name: str) -> FlinkState:
        if name not in self.stops:
            stop = self.create(name, Kind.STOP)
            stop.add(Action.TAKE, stop, formula)
            self.stops[name] = stop
        return self.stops[name]

    def middle_states(self, sink: FlinkState) -> FlinkState:
        """The states of all steps but the first, from the last one on."""
        while self.current.previous is not None:
            part = self.current
            if part.contiguity is f.Contiguity.NOT_FOLLOW:
                windowed = part.gap_window is not None or (self.window or 0) > 0
                if windowed and sink.kind is Kind.FINAL:
                    waiting = self.create_here(Kind.PENDING, True)
                    forbidden = self.take_condition(part)
                    assert part.name is not None
                    waiting.add(Action.PROCEED, self.stop_state(forbidden, part.name), forbidden)
                    waiting.add(Action.IGNORE, waiting, Not(forbidden))
                    sink = waiting
            elif part.contiguity is f.Contiguity.NOT_NEXT:
                not_next = self.create_here(Kind.NORMAL, True)
                forbidden = self.take_condition(part)
                assert part.name is not None
                stop = self.stop_state(forbidden, part.name)
                onwards = Action.IGNORE if sink.kind is Kind.FINAL else Action.PROCEED
                not_next.add(onwards, sink, Not(forbidden))
                not_next.add(Action.PROCEED, stop, forbidden)
                sink = not_next
            else:
                sink = self.convert(sink)
            self.following = part
            assert part.previous is not None
            self.current = part.previous
            shorter = self.steps(self.current.window)
            if shorter is not None and (self.window is None or shorter < self.window):
                self.window = shorter
        return sink

    def convert(self, sink: FlinkState) -> FlinkState:
        """The states of the current step or group; its first one."""
        rounds = self.current.quantifier.rounds
        if rounds is f.Rounds.LOOPING:
            self.set_first_round(False)
            looping = self.looping(self.without_past_negations(sink))
            self.set_first_round(True)
            first = self.times_states(looping, sink)
        elif rounds is f.Rounds.TIMES:
            first = self.times_states(sink, sink)
        else:
            part = self.current
            taken, ignored = self.take_condition(part), self.ignore_condition(part)
            first = self.singleton(sink, sink, taken, ignored, part.quantifier.optional)
        self.add_stops(first)
        return first

    def times_states(self, sink: FlinkState, onwards: FlinkState) -> FlinkState:
        """A state for each round that is counted."""
        part = self.current
        how = part.quantifier
        last = sink
        self.set_first_round(False)
        until = self.until(part)
        ignored = self.unless(self.inner_ignore_condition(part), until, False)
        taken = self.unless(self.take_condition(part), until, True)
        assert taken is not None
        if how.greedy and how.least != how.most:
            if until is not None:
                self.originals[sink.name] = self.copied(sink)
            self.wait_for(sink, taken)
        for _ in range(how.least, how.most):
            last = self.singleton(last, onwards, taken, ignored, True)
            self.add_following_stop(last)
        for _ in range(how.least - 1):
            last = self.singleton(last, None, taken, ignored, False)
            self.add_following_stop(last)
        self.set_first_round(True)
        return self.singleton(last, onwards, taken, self.ignore_condition(part), how.optional)

    def singleton(
        self, sink: FlinkState, onwards: FlinkState | None, taken: Formula, ignored: Formula | None, optional: bool
    ) -> FlinkState:
        """A state for one event. If it is optional, a second one ignores: it does not proceed again."""
        if self.current.group is not None:
            return self.group_states(sink, onwards, optional)
        part = self.current
        state = self.create_here(Kind.NORMAL, True)
        target = self.without_past_negations(sink)
        state.add(Action.TAKE, target, taken)
        if optional:
            assert onwards is not None
            until = self.until(part) if part.quantifier.greedy else None
            if until is not None:
                # Flink has no original where a negation was left behind, and fails there; the sink serves as well.
                original = self.originals.get(onwards.name, onwards)
                state.add(Action.PROCEED, original, All(self.true(), until))
                state.add(Action.PROCEED, onwards, All(self.true(), Not(until)))
            else:
                state.add(Action.PROCEED, onwards, self.true())
        if ignored is not None:
            waiting = state
            if optional or self.is_head_of_optional_group():
                waiting = self.create_here(Kind.NORMAL, False)
                waiting.add(Action.TAKE, target, taken)
                waiting.add(Action.IGNORE, waiting, ignored)
                self.add_stops(waiting)
            state.add(Action.IGNORE, waiting, ignored)
        return state

    def looping(self, sink: FlinkState) -> FlinkState:
        """A state that takes any number of events, and proceeds; a second one ignores and does not."""
        if self.current.group is not None:
            return self.looping_group(sink)
        part = self.current
        until = self.until(part)
        ignored = self.unless(self.inner_ignore_condition(part), until, False)
        taken = self.unless(self.take_condition(part), until, True)
        assert taken is not None
        loop = self.create_here(Kind.NORMAL, True)
        if part.quantifier.greedy:
            if until is not None:
                original = self.copied(sink)
                loop.add(Action.PROCEED, original, All(self.true(), until))
                self.originals[sink.name] = original
                loop.add(Action.PROCEED, sink, All(self.true(), Not(until)))
            else:
                loop.add(Action.PROCEED, sink, self.true())
            self.wait_for(sink, self.take_condition(part))
        else:
            loop.add(Action.PROCEED, sink, self.true())
        loop.add(Action.TAKE, loop, taken)
        self.add_following_stop(loop)
        if ignored is not None:
            waiting = self.create_here(Kind.NORMAL, False)
            waiting.add(Action.TAKE, loop, taken)
            waiting.add(Action.IGNORE, waiting, ignored)
            loop.add(Action.IGNORE, waiting, ignored)
            self.add_following_stop(waiting)
        return loop

    def group_states(self, sink: FlinkState, onwards: FlinkState | None, optional: bool) -> FlinkState:
        """The states of a group for one round."""
        proceeds = self.true()
        first = self.inside_group(lambda: self.convert(self.middle_states(sink)))
        if optional:
            assert onwards is not None
            first.add(Action.PROCEED, onwards, proceeds)
        return first

    def looping_group(self, sink: FlinkState) -> FlinkState:
        """The states of a group for any number of rounds."""
        proceeds = self.true()
        again = self.create_here(Kind.NORMAL, True)
        first = self.inside_group(lambda: self.convert(self.middle_states(again)))
        first.add(Action.PROCEED, sink, proceeds)
        again.add(Action.PROCEED, first, proceeds)
        return first

    def inside_group(self, make: Callable[[], FlinkState]) -> FlinkState:
        held = self.current, self.following, self.group
        self.group = self.current
        assert self.current.group is not None
        self.current = self.current.group
        first = make()
        self.current, self.following, self.group = held
        return first

    # --- groups, negations and greed --------------------------------------------------------------------------------

    def set_first_round(self, first: bool) -> None:
        if self.current.group is not None:
            self.first_rounds[id(self.current)] = first

    def is_first_round(self) -> bool:
        return self.first_rounds.get(id(self.group), True)

    def is_head_of_optional_group(self) -> bool:
        if self.group is None or self.current.previous is not None:
            return False
        return self.is_first_round() and self.group.quantifier.optional

    def past_negations(self) -> list[tuple[Formula, str]]:
        """The negated steps before the current one, as far as only optional parts lie between."""
        found = []
        at = self.current
        while at.previous is not None and (
            at.previous.quantifier.optional or at.previous.contiguity is f.Contiguity.NOT_FOLLOW
        ):
            at = at.previous
            if at.contiguity is f.Contiguity.NOT_FOLLOW:
                assert at.name is not None
                found.append((self.take_condition(at), at.name))
        return found

    def add_stops(self, state: FlinkState) -> None:
        for formula, name in self.past_negations():
            state.add(Action.PROCEED, self.stop_state(formula, name), formula)

    def add_following_stop(self, state: FlinkState) -> None:
        """A loop whose following step is negated is given up by its events, too."""
        following = self.following
        if following is not None and following.contiguity is f.Contiguity.NOT_FOLLOW:
            assert following.name is not None
            forbidden = self.take_condition(following)
            state.add(Action.PROCEED, self.stop_state(forbidden, following.name), forbidden)

    def without_past_negations(self, sink: FlinkState) -> FlinkState:
        """Once an optional step took an event, what was forbidden before it is so no longer."""
        past = self.past_negations()
        if not past or not self.current.quantifier.optional:
            return sink
        _check_no_circle([sink])
        copy = self.create(sink.name, sink.kind)
        names = {name for _, name in past}
        for edge in list(sink.edges):
            target = edge.target
            if edge.action is Action.PROCEED:
                if target.kind is Kind.STOP and target.name in names:
                    continue
                if target.kind is not Kind.STOP:
                    target = self.without_past_negations(target)
            elif target is sink:
                target = copy
            copy.add(edge.action, target, edge.formula)
        return copy

    def copied(self, state: FlinkState) -> FlinkState:
        copy = self.create(step_of(state.name), state.kind)
        for edge in state.edges:
            copy.add(edge.action, copy if edge.target is state else edge.target, edge.formula)
        return copy

    def wait_for(self, state: FlinkState, taken: Formula) -> None:
        """What follows a greedy loop waits as long as the loop could take the event."""
        for edge in state.edges:
            edge.formula = All(edge.formula, Not(taken))
