"""What the kernel walks: the automaton, the events and the runs that are under way, all as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows, Int64s
from cepheid.engine.data.columns import Columns
from cepheid.engine.kernels.conditions import Scratch
from cepheid.engine.program.compile import CompiledProgram
from cepheid.engine.program.tables import Program
from cepheid.plan.options import Limits

NORMAL, FINAL, STOP, PENDING = 0, 1, 2, 3
NO_SKIP, TO_NEXT, PAST_LAST, TO_FIRST, TO_LAST = range(5)
LATEST = 2**63 - 1
BITS = 62  # states that have a bit of their own; the others share the last
NOBODY = 2**62  # the first event of the run that waits for one: later than all others

# What a run does with an event: it waits in a state; it takes the event; what it becomes has taken it, too (another
# way on of the same run); the run that waits for a first event does so again.
WAIT, TAKE, ALSO, AGAIN = range(4)


class Machine(NamedTuple):
    """The automaton, as a table of what a run in each state does with each kind of event.

    Events of one kind agree in all conditions that speak of one event alone. `decision[kind, state]` is a choice, if it
    is not negative: then an atom that looks back decides between two further ones; or else -1 minus the number of an
    outcome, whose moves are first_move[outcome] to first_move[outcome + 1].
    """

    decision: Int64Rows  # per kind of event and state
    choice: Int64Rows  # atom, the decision if it holds, the one if it does not
    first_move: Int64s
    move: Int64Rows  # what is done, the step that takes the event, the state it leads to (-1: none)
    active: Int64s  # per kind of event a bit for each state in which a run does something else with it than to wait on
    kind: Int64s  # of each state
    gap: Int64s  # the longest time since the event before; 0: any
    start: int
    window: int  # 0: none
    gapped: int  # has a state a longest time of its own?
    fan: int  # the most that a run becomes by one event
    skip: int
    skip_step: int
    strict: int  # is it an error if there is nothing to skip to?
    partial: int  # are runs that are given up reported?


class Conditions(NamedTuple):
    """What atoms that look back need, besides the function that judges them: its cases are the atoms."""

    program: Program
    columns: Columns
    scratch: Scratch
    at_hand: int  # the slot of the event at hand
    absent: int  # the row of an event that is absent: all is NULL in it


class Events(NamedTuple):
    """Events of all partitions, one partition after the other; those before `begin` were processed earlier."""

    bounds: Int64s
    begin: Int64s
    time: Int64s
    kind: Int64s
    end: int  # how far time has passed after the last one
    goes_on: int  # may more events come?


class Room(NamedTuple):
    """Room for the runs of a partition: a run is its state, its last node (-1: none) and the row of its first event.

    Runs stand in the order of their first events: what a run becomes takes its place, and whoever begins is the last.
    Flink has them in a heap of that order, and for runs that are in order already, the heap's layout is that order.
    """

    runs: Int64Rows
    behind: Int64Rows  # runs still to be extended, where those before them have become more
    arrived: Int64Rows  # complete since the last event
    complete: Int64Rows  # and waiting to be reported
    nodes: Int64Rows  # per node: the event's row, the node before it (-1: none), the step, the length
    at: Int64Rows  # per node: the events of the run that conditions look back at...
    counted: Int64Rows  # ... the lengths of its steps, and aggregates over them
    running: Float64Rows
    counts: Int64s


STATE, NODE, BEGAN = range(3)
ROW, BEFORE, STEP, LENGTH = range(4)  # the first three as in entries of a match buffer
(
    HEAD,  # the first run
    TAIL,  # after the last one
    ARRIVED,
    COMPLETE,
    NODES,
    NEAREST,  # no run is given up before
    FAILURE,
    REPORTS,
    EVENTS_REPORTED,
    COLLECT_AT,
    PRESENT,  # a bit for each state in which a run may wait
    PHASE,  # what is done with the event at hand
    AT_ROW,
    PASSED,  # the instant up to which time has passed
    GIVEN_UP,  # runs that are to be reported as given up: the last rows of `arrived`, from its end
    # While runs are extended:
    AT,  # the run to be extended next
    WRITTEN,  # where what it becomes is put
    LEFT,  # how many runs stand in `behind`; -1: they are still in their place
    NEXT_PRESENT,
    # What may be at most:
    MOST_RUNS,  # at a time
    MOST_REPORTS,
) = range(21)


def make_room(fan: int, compiled: CompiledProgram, limits: Limits) -> Room:
    """Room to begin with."""
    runs, behind, arrived, complete = (np.empty((2 * fan + 64, 3), np.int64) for _ in range(4))
    size = 1024 + 2 * fan
    program, slots = compiled.program, compiled.slots if compiled.program.places else 0
    at, counted = np.empty((size, slots), np.int64), np.empty((size, program.walk_whole), np.int64)
    running, counts = np.empty((size, program.walk_number), np.float64), np.zeros(MOST_REPORTS + 1, np.int64)
    counts[MOST_RUNS], counts[MOST_REPORTS] = limits.max_partial_matches, limits.max_matches
    return Room(runs, behind, arrived, complete, np.empty((size, 4), np.int64), at, counted, running, counts)
