"""Runs by the values that they wait for: an event is shown only to those that an equality lets take it.

A run that has filled a place waits for the first event of the next component and, in a Kleene group, for a further one;
in a pattern that is an expression, for the events of the edges of its state, of which two at most are told apart.
Where an equality says which value that event must have (`a.id = b[i].id`, `b[i].id = b[i-1].ref`), runs with one value
hang on one chain. Under skip_till_next_match and skip_till_any_match a run that fails the equality is not changed by an
event, so nothing is lost by not looking at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns
from cepheid.engine.data.layout import BEGINS, MASK, Events
from cepheid.engine.data.value_index import NO_CODE, WORTH_AN_INDEX, link_codes
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.program.compile import CompiledProgram
from cepheid.engine.program.tables import FIRST_AT, LAST_AT
from cepheid.engine.search.runs.moves import Runs
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.automaton import QueryAutomaton
from cepheid.plan.equalities import begin_links, edge_links, take_links

# Rows of `waits` are 2 * state + TAKING (a further event of the group) or BEGINNING (the first one of the next
# component), in an expression the first and the second edge; columns: is there such a move at all, the slot of the
# event that says which value (-1: any value will do), the rows of `codes` of that event and of the one that is waited
# for, where the chains begin in `heads`, and, as bit masks, the places that a further and a first event would fill.
TAKING, BEGINNING = range(2)
POSSIBLE, KNOWN_AT, KNOWN_CODES, SOUGHT_CODES, HEADS_FROM, TAKEN_BITS, BEGUN_BITS = range(7)
# Columns of `of_run`: for each move the previous and the next run of its chain, and the chain (-1: none); then the
# instant at which the run was last found, so that no run is shown an instant twice.
BEFORE, BEHIND, CHAIN = range(3)
FOUND_AT = 6


class Waits(NamedTuple):
    """What runs wait for, by place; no rows: they are not found by value."""

    waits: Int64Rows
    codes: Int64Rows
    chains: int


class ByValue(NamedTuple):
    """The chains of runs, and the runs that were found for the instant at hand."""

    waits: Int64Rows
    codes: Int64Rows
    heads: Int64s
    of_run: Int64Rows
    visits: Int64s


def make_waits(
    bound: BoundQuery, indexed: Iterable[Conjunct], compiled: CompiledProgram, columns: Columns, mask: Int64s
) -> Waits:
    """What the runs of a query wait for: at each place the most selective equality, if it leaves out enough."""
    served = frozenset(indexed)
    places = len(bound.positives)
    moves: list[_Move | None] = []
    for row in range(2 * places if served else 0):
        place, move = divmod(row, 2)
        target = place + move
        if not (target < places if move == BEGINNING else bound.positives[place].kleene):
            moves.append(None)
            continue
        links = (begin_links if move == BEGINNING else take_links)(bound, target)
        bits = (1 << target, 0) if move == TAKING else (0, 1 << target)
        own = [(link.sought, link.known, link.attribute) for link in links if link.conjunct in served]
        moves.append((*bits, target, own))
    return _waits(moves, bound, compiled, columns, mask)


def make_state_waits(
    bound: BoundQuery, automaton: QueryAutomaton, compiled: CompiledProgram, columns: Columns, mask: Int64s
) -> Waits:
    """The same for the states of an expression: where two edges at most leave a state, each by its equality."""
    moves: list[_Move | None] = []
    for state in automaton.states[: automaton.start]:
        own: list[_Move | None] = []
        for edge in state.takes:
            place = bound.place_of[edge.variable]
            bits = (0, 1 << place) if edge.first else (1 << place, 0)
            own.append((*bits, place, edge_links(bound, edge)))
        if len(own) > 2:  # all together, by any value
            own = [(_either(move[0] for move in own if move), _either(move[1] for move in own if move), 0, [])]
        moves += [*own, *[None] * (2 - len(own))]
    return _waits(moves, bound, compiled, columns, mask)


def _either(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


# What a run may do next: the places that a further and that a first event would fill, as bit masks; the place of that
# event; and equalities, by the attribute of that event, the known one, and the attribute of this.
_Move = tuple[int, int, int, Sequence[tuple[str, s.Reference, str]]]


def _waits(
    moves: Sequence[_Move | None], bound: BoundQuery, compiled: CompiledProgram, columns: Columns, mask: Int64s
) -> Waits:
    waits = np.zeros((len(moves), 7), np.int64)
    codes: list[Int64s] = []
    chains = 0
    for row, move in enumerate(moves):
        waits[row, KNOWN_AT] = -1
        if move is None:
            continue
        taken, begun, target, links = move
        waits[row] = 1, -1, 0, 0, 0, taken, begun
        found = _best(links, bound, compiled, columns, mask, target)
        if found is not None:
            known_at, sought, known = found
            waits[row] = 1, known_at, len(codes), len(codes) + 1, chains, taken, begun
            codes += [known, sought]
            chains += int(max(known.max(initial=NO_CODE), sought.max(initial=NO_CODE))) + 1
    if not codes:
        waits = waits[:0]
    return Waits(waits, np.stack(codes) if codes else np.zeros((0, len(mask)), np.int64), chains)


def _best(
    links: Sequence[tuple[str, s.Reference, str]],
    bound: BoundQuery,
    compiled: CompiledProgram,
    columns: Columns,
    mask: Int64s,
    target: int,
) -> tuple[int, Int64s, Int64s] | None:
    """The slot of the known event and the codes of the equalities with it that leave out most."""
    by_slot: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for sought_name, reference, known_name in links:
        place = bound.place_of[reference.variable]
        first = reference.element is s.Element.FIRST
        slot = int(compiled.program.place[place, FIRST_AT if first else LAST_AT])
        by_slot.setdefault((slot, place), []).append((sought_name, known_name))
    best, least = None, WORTH_AN_INDEX
    for (slot, place), group in by_slot.items():
        sought, known = link_codes(compiled.layout, columns, group)
        share = _share(sought[(mask >> target) & 1 != 0], known[(mask >> place) & 1 != 0])
        if share <= least:
            best, least = (slot, sought, known), share
    return best


def _share(sought: Int64s, known: Int64s) -> float:
    """The share of pairs that agree."""
    sought, known = sought[sought != NO_CODE], known[known != NO_CODE]
    if not len(sought) or not len(known):
        return 0.0
    counts = np.bincount(sought, minlength=int(known.max()) + 1)
    return float(counts[known].mean() / len(sought))


@kernel
def new_by_value(waits: Waits, size: int) -> ByValue:
    """Empty chains, with room for a pool of runs of this size."""
    room = size if len(waits.waits) > 0 else 0
    heads = np.full(waits.chains, -1, np.int64)
    return ByValue(waits.waits, waits.codes, heads, np.full((room, 7), -1, np.int64), np.empty(room, np.int64))


@kernel
def more_by_value(by_value: ByValue, size: int) -> ByValue:
    """The same chains with room for a larger pool of runs."""
    old = len(by_value.visits)
    of_run, visits = np.full((size, 7), -1, np.int64), np.empty(size, np.int64)
    of_run[:old], visits[:old] = by_value.of_run, by_value.visits
    return ByValue(by_value.waits, by_value.codes, by_value.heads, of_run, visits)


@borrowing
def wait_for_values(by_value: ByValue, runs: Runs, place: int, slot: int) -> None:
    """Hangs a run that has just filled a place on the chains of the values that it waits for."""
    waits, of_run = by_value.waits, by_value.of_run
    of_run[slot, FOUND_AT] = -1
    for move in range(2):
        row, column = 2 * place + move, 3 * move
        of_run[slot, column + CHAIN] = -1
        if waits[row, POSSIBLE] == 0 or waits[row, KNOWN_AT] < 0:
            continue
        code = by_value.codes[waits[row, KNOWN_CODES], runs.rows[slot, runs.at + waits[row, KNOWN_AT]]]
        if code == NO_CODE:
            continue  # nothing equals NULL
        chain = waits[row, HEADS_FROM] + code
        behind = by_value.heads[chain]
        of_run[slot, column + BEFORE], of_run[slot, column + BEHIND] = -1, behind
        of_run[slot, column + CHAIN] = chain
        if behind >= 0:
            of_run[behind, column + BEFORE] = slot
        by_value.heads[chain] = slot


@borrowing
def wait_no_more(by_value: ByValue, slot: int) -> None:
    """Takes a run off its chains."""
    of_run = by_value.of_run
    for column in (0, 3):
        chain = of_run[slot, column + CHAIN]
        if chain < 0:
            continue
        before, behind = of_run[slot, column + BEFORE], of_run[slot, column + BEHIND]
        if before < 0:
            by_value.heads[chain] = behind
        else:
            of_run[before, column + BEHIND] = behind
        if behind >= 0:
            of_run[behind, column + BEFORE] = before
        of_run[slot, column + CHAIN] = -1


@borrowing
def runs_to_visit(events: Events, by_value: ByValue, place: int, low: int, high: int) -> int:
    """Gathers the runs of a place that can move with an event of the instant low:high; -1: all must be looked at."""
    waits, of_run, visits = by_value.waits, by_value.of_run, by_value.visits
    count = 0
    for move in range(2):
        row, column = 2 * place + move, 3 * move
        if waits[row, POSSIBLE] == 0:
            continue
        for event in range(low, high):
            bits = events.facts[MASK, event] & waits[row, TAKEN_BITS]
            if bits | (events.facts[BEGINS, event] & waits[row, BEGUN_BITS]) == 0:
                continue
            if waits[row, KNOWN_AT] < 0:
                return -1
            code = by_value.codes[waits[row, SOUGHT_CODES], event]
            if code == NO_CODE:
                continue
            slot = by_value.heads[waits[row, HEADS_FROM] + code]
            while slot >= 0:
                if of_run[slot, FOUND_AT] != low:
                    of_run[slot, FOUND_AT] = low
                    visits[count] = slot
                    count += 1
                slot = of_run[slot, column + BEHIND]
    return count
