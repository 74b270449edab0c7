"""A Flink pattern over a table: events in order, and the walk."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import fill_with_absent
from cepheid.engine.data.flink_runs import NOBODY, Arranged, Reported, matches_of
from cepheid.engine.data.matches import Matches
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.program.compile import CompiledProgram
from cepheid.engine.search.flink import machine as m
from cepheid.engine.search.flink.conditions import compile_conditions
from cepheid.engine.search.flink.kernel import walk
from cepheid.engine.search.flink.kinds import kinds_of_events
from cepheid.engine.search.flink.moves import Moves
from cepheid.engine.search.flink.reports import MISSED, TOO_MANY_MATCHES, TOO_MANY_RUNS
from cepheid.engine.values.python_first import as_python_first, is_python_first
from cepheid.errors import DataError
from cepheid.language.flink.skip import Skip
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS, limit_reached
from cepheid.plan.options import Limits
from cepheid.remembered import Remembered

_SKIPS = {
    Skip.NO_SKIP: m.NO_SKIP,
    Skip.TO_NEXT: m.TO_NEXT,
    Skip.PAST_LAST_EVENT: m.PAST_LAST,
    Skip.TO_FIRST: m.TO_FIRST,
    Skip.TO_LAST: m.TO_LAST,
}


class Search:
    """What the walk needs of a pattern, made once: its moves, and its conditions as kernels call them."""

    def __init__(self, automaton: FlinkAutomaton) -> None:
        self.automaton = automaton
        self.moves = Moves(automaton)
        self.compiled: dict[tuple[bool, bool], CompiledProgram] = {}  # by how conditions run
        self.unread: m.Conditions | None = None  # where no condition looks back: nobody reads them
        in_result = list(automaton.lists)
        self.step_of = np.array([*(in_result.index(step) for step in self.moves.steps), -1], np.int64)  # by place
        self.place_of = np.array([*(self.moves.steps[step] for step in in_result), -1], np.int64)

    def conditions(self) -> CompiledProgram:
        """The conditions that look back."""
        asked = is_interpreted(), is_python_first()
        if asked not in self.compiled or self.compiled[asked].predicate.exhausted:
            self.compiled[asked] = compile_conditions(self.automaton)
        return self.compiled[asked]

    def over(self, table: pa.Table) -> tuple[m.Conditions, CompiledProgram]:
        """The same over the events of a table."""
        compiled = self.conditions()
        if self.unread is not None:
            return self.unread, compiled
        columns = fill_with_absent(compiled.layout, table, self.automaton.schema)
        scratch = new_scratch(compiled.slots, compiled.whole, compiled.number, 0)
        found = m.Conditions(compiled.program, columns, scratch, compiled.slots - 1, table.num_rows)
        self.unread = None if compiled.program.places else found
        return found, compiled

    def machine(self, truths: npt.NDArray[np.uint8], partial: bool) -> m.Machine:
        """The automaton as arrays, for events of some kinds."""
        automaton, table = self.automaton, self.moves.table(truths)
        gap = np.array(automaton.gaps, np.int64)
        skip = automaton.skip
        return m.Machine(
            table.decision,
            table.choice,
            table.first_move,
            table.move,
            table.active,
            np.array([state.kind.value for state in automaton.states], np.int64),
            gap,
            automaton.start,
            automaton.window,
            int(gap.any()),
            table.fan,
            _SKIPS[skip.skip],
            self.moves.steps.get(skip.step or "", -1),
            int(skip.strict),
            int(partial),
        )


_searches = Remembered[Search](most=64)


def find(automaton: FlinkAutomaton, events: Arranged, partial: bool, limits: Limits = LIMITS) -> Matches:
    """The matches of a pattern in events that are all there, and if asked for the runs that were given up."""
    search = _searches.of(automaton, lambda: Search(automaton))
    return matches_of(find_matches(search, events, partial, limits=limits)[0], events.time)


def find_matches(
    search: Search,
    events: Arranged,
    partial: bool,
    known: Reported | None = None,
    begin: Int64s | None = None,
    end: int | None = None,
    limits: Limits = LIMITS,
) -> tuple[Reported, Reported]:
    """What is reported and, if time has an end, the runs that go on from there."""
    automaton = search.automaton
    kind, truths = kinds_of_events(automaton, events.table)
    machine = search.machine(truths, partial)
    known = known or NOBODY
    first = events.bounds[:-1] if begin is None else begin
    end_of_time = m.LATEST if end is None else end
    given = m.Events(events.bounds, np.ascontiguousarray(first), events.time, kind, end_of_time, int(end is not None))
    known = known._replace(step=search.place_of[known.step])

    def walked() -> tuple[Reported, Reported, int]:
        conditions, compiled = search.over(events.table)
        room = m.make_room(machine.fan, compiled, limits)
        return walk(machine, conditions, compiled.predicate.call, given, known, room)

    judged = np.asarray((machine.decision >= 0).any(axis=1))[kind]  # the events for which conditions look back
    reported, kept, failure = as_python_first(int(np.count_nonzero(judged)), walked)
    if failure in (TOO_MANY_RUNS, TOO_MANY_MATCHES):
        raise limit_reached("max_partial_matches" if failure == TOO_MANY_RUNS else "max_matches", limits)
    if failure:
        raise failure_of(automaton, failure)
    reported, kept = (each._replace(step=search.step_of[each.step]) for each in (reported, kept))
    return reported, kept


def failure_of(automaton: FlinkAutomaton, failure: int) -> DataError:
    """The error of a strategy that skips to where there is nothing."""
    step = automaton.skip.step
    message = f"has no event of step '{step}'" if failure == MISSED else f"begins with step '{step}'"
    return DataError(f"{automaton.skip.skip.value}: a match {message}", hint="leave throw_exception_on_miss() out")
