"""The run engine (SASE+): an automaton with a match buffer, all strategies, Kleene plus, aggregates, negation.

`run` writes every match down, `find_compressed` keeps them in the shared buffer, `count` only counts them.
`run_backtracking` finds the same matches one run at a time, for comparison (section 5.2.3).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import BEGINS
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import Automata
from cepheid.engine.program.tables import MERGEABLE
from cepheid.engine.search.runs.buffer import collect
from cepheid.engine.search.runs.compressed import CompressedMatches
from cepheid.engine.search.runs.enumerate import EVENTS_LISTED, FOUND, Listed, nothing_listed
from cepheid.engine.search.runs.moves import ACCEPTED, COUNTLESS, ENTRIES, OVERFLOW, TOTAL
from cepheid.engine.search.runs.prepare import Prepared, prepare, to_matches, waits_for_values
from cepheid.engine.search.runs.scan import (
    COMPRESSED,
    COUNTING,
    MATCHES_REACHED,
    RUNS_REACHED,
    VERBOSE,
    SearchRequest,
    scan,
)
from cepheid.engine.search.runs.timed_out import find_given_up
from cepheid.errors import LimitError
from cepheid.plan.automaton_text import describe
from cepheid.plan.lowering import automaton_of
from cepheid.plan.physical import Plan

__all__ = [
    "CompressedMatches",
    "automaton_text",
    "count",
    "find_compressed",
    "run",
    "run_backtracking",
]


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until."""
    if plan.bound.given_up:
        return find_given_up(plan, events, lambda which: _run(plan, events, after, until, which), after, until)
    return _run(plan, events, after, until, "states")


def _run(plan: Plan, events: EventTable, after: int, until: int, which: Automata) -> Matches:
    prepared = prepare(plan, events, which)
    listed, _, _, state = _scan(prepared, VERBOSE, after, until)
    return to_matches(prepared, listed, state, _cut_short(plan, state, listed))


def find_compressed(plan: Plan, events: EventTable, after: int, until: int) -> CompressedMatches:
    """The same matches as one shared structure, with counts; `max_partial_matches` bounds its entries."""
    prepared = prepare(plan, events)
    _, entries, accepted, state = _scan(prepared, COMPRESSED, after, until)
    truncated = _cut_short(plan, state)
    accepted = accepted[: state[ACCEPTED]].copy()
    size = collect(entries, state[ENTRIES], np.zeros(0, np.int64), accepted, len(accepted), 0)
    return CompressedMatches(prepared, entries[:size].copy(), accepted, state, truncated)


def count(plan: Plan, events: EventTable, after: int, until: int) -> int:
    """How many matches there are, exactly, without listing them."""
    number = count_up_to_63_bits(plan, events, after, until)
    return find_compressed(plan, events, after, until).count() if number is None else number


def count_up_to_63_bits(plan: Plan, events: EventTable, after: int, until: int) -> int | None:
    """The same for what a kernel can count; None: there are more."""
    prepared = prepare(plan, events)
    _, _, _, state = _scan(prepared, COUNTING, after, until)
    whole = replace(plan.match, limits=replace(plan.limits, truncate=False))  # half a number says nothing
    _cut_short(replace(plan, match=whole), state)
    return None if state[TOTAL] == COUNTLESS else int(state[TOTAL])


def run_backtracking(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches, one run at a time (SASE+ section 5.2.3)."""
    from cepheid.engine.search.runs.backtrack import backtrack  # a kernel that hardly anyone needs

    prepared = prepare(plan, events)
    limits = plan.limits
    listed, state = backtrack(
        prepared.events,
        prepared.machine,
        prepared.columns,
        prepared.compiled.predicate.call,
        prepared.widths._replace(key=0),
        nothing_listed(prepared.compiled.program.places),
        SearchRequest(VERBOSE, False, False, after, until, limits.max_partial_matches, limits.max_matches),
    )
    return to_matches(prepared, listed, state, _cut_short(plan, state, listed))


def automaton_text(plan: Plan) -> str:
    """The automaton of a plan's query, for explain."""
    found = automaton_of(plan.bound)
    return found if isinstance(found, str) else describe(plan.bound, found)


def _scan(prepared: Prepared, mode: int, after: int, until: int) -> tuple[Listed, Int64Rows, Int64Rows, Int64s]:
    program, limits = prepared.compiled.program, prepared.plan.limits
    # Merging pays even where every match is written down: SASE+'s template runs 1.1 to 1.8 times as fast with it, and
    # where there is nothing to merge it costs a tenth.
    merging = bool(prepared.plan.options.get("merge", True)) and prepared.events.ordered
    merging = merging and bool(program.place[:, MERGEABLE].any())
    pruning = bool(prepared.plan.options.get("non_overlapping", False)) and _can_prune(prepared, mode)
    may_begin = prepared.plan.options.may_begin
    if pruning and may_begin is not None:  # what begins no later than the last reported match ended overlaps it
        prepared.events.facts[BEGINS, ~may_begin[prepared.candidates.rows]] = 0
    widths = prepared.widths if merging else prepared.widths._replace(key=0)
    found: tuple[Listed, Int64Rows, Int64Rows, Int64s] = scan(
        prepared.events,
        prepared.machine,
        prepared.columns,
        prepared.compiled.predicate.call,
        waits_for_values(prepared),
        widths,
        nothing_listed(program.places),
        SearchRequest(
            mode,
            merging,
            pruning,
            after,
            until,
            limits.max_partial_matches,
            limits.max_matches,
        ),
    )
    return found


def _can_prune(prepared: Prepared, mode: int) -> bool:
    """Can runs be ended as soon as a match overlaps them? All matches must be seen, in the order of their ends."""
    one_partition = len(prepared.candidates.compared) == 0
    return mode == VERBOSE and one_partition and not prepared.plan.bound.postponed


def _cut_short(plan: Plan, state: Int64s, listed: Listed | None = None) -> bool:
    """Was a limit reached, and was it asked for that this is no error?"""
    runs = check_limit(plan, "max_partial_matches", bool(state[OVERFLOW] == RUNS_REACHED))
    reached = bool(state[OVERFLOW] == MATCHES_REACHED)
    if reached and listed is not None and listed.filled[FOUND] < plan.limits.max_matches and not plan.limits.truncate:
        raise LimitError(
            f"the matches hold over {listed.filled[EVENTS_LISTED]:,} events; raise max_matches above that number, "
            "or pass truncate=True for a part of the result",
            hint="output='count' or output='compressed' avoids the list of matches",
        )
    return check_limit(plan, "max_matches", reached) or runs
