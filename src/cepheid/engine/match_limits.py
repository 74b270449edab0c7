"""Count matches before listing them; if there are too many, suggest clauses that reduce the count.

Matches can be exponentially many. So only a few are listed first. If there are more, they are counted without being
listed where that can be done (search/totals.py, or the shared buffer of runs): more than may be are an error at once,
with their number, and with the clauses that leave few of them. Each clause was tried: its number of matches is what the
same events give with it. Counting and trying have a budget of their own: what takes longer is left out of the error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cepheid.budget import within_budget
from cepheid.engine.choose import Choice, chosen, make_plan
from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.order_index import compared_with_the_one_before
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.totals import COUNT_ALL
from cepheid.engine.engines import ENGINES, Run, of_runs
from cepheid.engine.output.closed import can_close
from cepheid.engine.program.carry import TO_BEFORE, carrying, ties
from cepheid.engine.program.compile import compile_program
from cepheid.engine.program.tables import BEGIN, TAKE
from cepheid.errors import CepheidError, LimitError, TimeoutReached
from cepheid.language import syntax as s
from cepheid.language.bind import rebound
from cepheid.language.bound import BoundQuery, BoundWindow
from cepheid.language.schema import DataType
from cepheid.language.units import UNITS
from cepheid.plan.options import Limits
from cepheid.plan.physical import Plan

LISTED_FIRST = 10  # a limit of so many times WORTH_COUNTING is worth a count
LIKELY = 2.0  # times as many matches as expected may be listed without a count
WORTH_COUNTING = 100_000  # matches: to list so many takes no time to speak of
MOST_STEPS = 3e8  # of counting: some seconds
CHEAP_STEPS = 1e7  # less than it takes to list the matches that are counted
LOGARITHM = 10.0  # about what a prefix in an order of values takes
EXACT_BELOW = 1e38
PATIENCE = 2.0  # seconds for a count, and for all clauses that are tried
ROOM = 1 << 29  # bytes for them
FEW_EVENTS = 1_000  # through which runs are followed in no time
LONG = "counting them takes long; SUMMARISE count(*) does it"
COUNTED_UP_TO = 2**63  # by runs, whose numbers have so many bits
FEW = 200_000  # matches and runs that a clause may leave

_ADVICE = "skip_till_next_match, OUTPUT NON-OVERLAP, a shorter WITHIN or more conditions reduce their number"

Find = Callable[[Plan, EventTable], Matches]  # all matches of a plan, as its output says


@dataclass(frozen=True)
class Count:
    """How many matches there are: exactly, or only about, where they are beyond all counting."""

    number: int
    near: float

    def __str__(self) -> str:
        if self.number == COUNTED_UP_TO:
            return "more than 9.2 * 10^18"
        if self.near < EXACT_BELOW:
            return f"{self.number:,}"
        return f"more than 10^38 (about {self.near:.2g})" if np.isfinite(self.near) else "more than 10^300"


def list_or_count(run: Run, find: Find) -> Run:
    """The same engine, which gives up early on matches that are more than may be listed."""

    def listed(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
        limits, bound = plan.limits, plan.bound
        counted: Count | str = LONG
        thoroughly = False
        worth_counting = limits.max_matches // LISTED_FIRST >= WORTH_COUNTING and not limits.truncate
        if worth_counting and uncountable(bound, plan.model) is None:
            # Only the subsets of a group make runs without end; other queries may well have many.
            subsets = bound.has_kleene and bound.strategy is s.Strategy.SKIP_TILL_ANY
            runs = min(limits.max_partial_matches, FEW) if subsets else limits.max_partial_matches
            few = run(limited(plan, WORTH_COUNTING, runs, truncate=True), events, after, until)
            if not few.truncated:
                return few
            # What is cheap to count is counted; the rest only if they may be too many: a long list would be made twice.
            counted = counted_soon(bound, plan.model, events, after, until, CHEAP_STEPS)
            if isinstance(counted, str) and (subsets or LIKELY * expected(plan, events, few) > limits.max_matches):
                thoroughly, counted = True, counted_soon(bound, plan.model, events, after, until)
            if isinstance(counted, Count) and max(counted.number, counted.near) > limits.max_matches:
                message = f"more matches than max_matches={limits.max_matches:,} allows"
                raise explained(LimitError(message), plan, events, counted, find)
        try:
            found = run(plan, events, after, until)
            return _with_what_was_cut(found, plan, events, after, until) if found.truncated else found
        except TimeoutReached:
            raise
        except LimitError as error:
            if not isinstance(counted, Count) and not thoroughly:
                counted = counted_soon(bound, plan.model, events, after, until)
            raise explained(error, plan, events, counted, find) from None

    return listed


def expected(plan: Plan, events: EventTable, found: Matches) -> float:
    """About how many matches there are, if those of the first events are known and the rest is like these.

    Searches go from partition to partition, and in each from last event to last event. The matches that end with an
    event grow with what lies before it, up to a window.
    """
    among, places = candidates(plan, events), len(plan.bound.positives)
    if not len(found) or not len(among):
        return float(len(found))
    place_of = np.zeros(len(events), np.int64)
    place_of[among.rows] = np.arange(len(among))
    furthest = int(place_of[found.last_rows(in_order=plan.bound.is_linear)].max())
    part = int(np.searchsorted(among.starts, furthest, side="right")) - 1
    begin, end = among.starts[part], among.starts[part + 1]
    window = np.inf
    if plan.bound.window is not None:
        span = len(events) if plan.bound.window.events else int(among.time[begin:end].max() - among.time[begin]) + 1
        window = plan.bound.window.length / span * (end - begin)

    def grown(size: float) -> float:
        inside = min(size, window)
        return float(inside**places / places + (size - inside) * inside ** (places - 1))

    here = grown(float(end - begin)) / grown(float(furthest - begin + 1))
    return len(found) * (here if part == 0 else max(len(among) / (furthest + 1), 1.0))


def _with_what_was_cut(found: Matches, plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """A result that was cut short on request says of how many matches it is a part, where that takes no time."""
    counted = counted_soon(plan.bound, plan.model, events, after, until, CHEAP_STEPS)
    if isinstance(counted, str) or counted.near >= EXACT_BELOW or counted.number == COUNTED_UP_TO:
        return found
    return replace(found, counters={**found.counters, "matches_in_all": counted.number})


def explained(
    error: LimitError, plan: Plan, events: EventTable, counted: Count | str, find: Find | None = None
) -> LimitError:
    """The same error with how many matches there are, or why that is not known, and what leaves fewer."""
    as_is = plan.output.mode is s.OutputMode.ALL and plan.bound.summary is None
    compared = "" if as_is else f", from which OUTPUT {plan.output.mode.value} selects"
    text = f"there are {counted} matches{compared}"
    if isinstance(counted, str):
        text = f"the number of matches is not known: {counted}"
    if ENGINES[of_runs(plan.bound)].refuses(plan.bound, plan.model) is not None:
        return LimitError(f"{error.message}; {text}", hint=error.hint)
    with within_budget(PATIENCE, ROOM):
        hints = [f"{clause} leaves {left:,}" for clause, left in _tamed(plan, events, find if as_is else None)]
    hints = [", ".join(hints)] if hints else [error.hint or _ADVICE]
    if as_is and not isinstance(counted, str):
        hints.append("SUMMARISE aggregates them without listing them")
    return LimitError(f"{error.message}; {text}", hint="; ".join(hints) or None)


def uncountable(bound: BoundQuery, model: object) -> str | None:
    """Why the matches of a query cannot be counted without listing them; None: they can, or it is worth trying."""
    if bound.given_up:
        return "partial matches are listed"
    refused = ENGINES[of_runs(bound)].refuses(bound, model)
    return refused if refused is not None or not bound.is_linear_of_singles else carrying(bound).refused


def counted_soon(
    bound: BoundQuery, model: object, events: EventTable, after: int, until: int, steps: float = MOST_STEPS
) -> Count | str:
    """The same as `count`, unless it takes long or much memory: an error is not worth that."""
    try:
        with within_budget(PATIENCE, ROOM):
            return count(bound, model, events, after, until, steps)
    except LimitError:
        return LONG


def count(
    bound: BoundQuery, model: object, events: EventTable, after: int, until: int, steps: float = MOST_STEPS
) -> Count | str:
    """How many matches there are, whatever OUTPUT makes of them; or why nobody can tell without listing them."""
    bound = bound.asking(output=s.Output())
    refused = uncountable(bound, model)
    if refused is not None:
        return f"counting needs the list of matches ({refused})"
    if not bound.is_linear and steps < MOST_STEPS and len(events) > FEW_EVENTS:
        return LONG
    if not bound.is_linear:
        return _count_by_runs(bound, events, after, until, "conditions depend on whole groups")
    how, plan = carrying(bound), make_plan(bound)[0]
    if how.refused is None:
        if steps_of_counting(plan, events, how.needs_first) > steps:
            return LONG
        found = importlib.import_module("cepheid.engine.search.totals").total(plan, COUNT_ALL, events, after, until)
        if found is not None:
            return Count(sum(row[0] for row in found.exact), float(found.near[:, 0].sum()))
    if not bound.has_kleene or steps < MOST_STEPS:
        return "counting needs the list of matches (some events lack attributes that are compared)"
    return _count_by_runs(bound, events, after, until, how.refused)


def _count_by_runs(bound: BoundQuery, events: EventTable, after: int, until: int, why: str | None) -> Count | str:
    """Along the runs, which are merged where they go on alike."""
    runs = chosen(make_plan(bound)[0], Choice(of_runs(bound)))
    try:
        counter = importlib.import_module("cepheid.engine.search.runs").count_up_to_63_bits
        number: int | None = counter(limited(runs, FEW, FEW), events, after, until)
    except TimeoutReached:
        raise
    except LimitError:
        return f"too many partial matches are open at a time ({why})"
    return Count(COUNTED_UP_TO, float(COUNTED_UP_TO)) if number is None else Count(number, float(number))


def steps_of_counting(plan: Plan, events: EventTable, needs_first: bool) -> float:
    """About how many steps counting takes: one pass, a pass for each first event, or each event with all before it."""
    bound, found, program = plan.bound, candidates(plan, events), compile_program(plan.bound).program
    number, moments = len(found), program.moments
    tied = bool((moments != moments[0]).any()) or program.negatives > 0
    if not number or (not tied and not needs_first and not bound.postponed):
        return float(number)
    begins = np.flatnonzero(found.mask & 1)
    part = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
    reach = found.starts[part + 1]
    if bound.window is not None:
        clock = found.position if bound.window.events else found.time
        width = int(clock.max()) - int(clock.min()) + bound.window.length + 1
        if width < 2**62 // max(len(found.starts), 1):
            key = part * width + (clock - clock.min())
            reach = np.minimum(reach, np.searchsorted(key, key + bound.window.length))
    sizes = (reach - np.arange(number))[begins].astype(np.float64)
    whole = np.diff(found.starts).astype(np.float64)
    at_once = not needs_first and (bound.window is None or len(begins) == 0 or sizes.max() >= whole.max())
    if at_once:
        sizes = whole
    share = [np.count_nonzero(found.mask & (1 << place)) / number for place in range(len(bound.positives))]
    steps, ties_of = 0.0, ties(bound, program)
    for place, component in enumerate(bound.positives):
        moment = 3 * place
        if place > 0 and (moments[moment] != moments[moment + 1] or program.negatives > 0):
            alone = place == 1 and not at_once and not bound.positives[0].kleene  # the first event is the one before
            ordered = compared_with_the_one_before(bound, place, BEGIN) is not None
            once = ties_of[place, 0] != TO_BEFORE
            asked = LOGARITHM if ordered else 1.0 if alone or once else sizes * share[place - 1]
            steps += (sizes * share[place] * asked).sum()
        if component.kleene and moments[moment + 1] != moments[moment + 2]:
            ordered = compared_with_the_one_before(bound, place, TAKE) is not None
            once = ties_of[place, 1] != TO_BEFORE
            steps += (
                sizes * share[place] * (LOGARITHM if ordered else 1.0 if once else sizes * share[place] / 2)
            ).sum()
    return float(steps + sizes.sum() * len(bound.positives))


def _tamed(plan: Plan, events: EventTable, find: Find | None) -> Iterator[tuple[str, int]]:
    """Clauses that leave few enough of very many matches, each with how many."""
    bound = plan.bound
    any_match = bound.strategy is s.Strategy.SKIP_TILL_ANY
    tries: list[tuple[str, Callable[[], int]]] = []
    if any_match and find is not None:
        following = rebound(bound, within=None, selection=s.Selection(s.Strategy.SKIP_TILL_NEXT))
        tries.append(("skip_till_next_match", partial(_number, following, events)))
    if find is not None:
        tries += [
            (f"OUTPUT {mode.value}", partial(_shown, bound, mode, events, find))
            for mode in (s.OutputMode.MAXIMAL, s.OutputMode.NON_OVERLAP)
            if mode is s.OutputMode.NON_OVERLAP or (bound.has_kleene and (can_close(bound) or not any_match))
        ]
    for clause, number in tries:
        try:
            left = number()
        except CepheidError:  # as many again, or nothing that can be had soon
            continue
        if left <= plan.limits.max_matches:
            yield clause, left
    yield from _shorter_windows(plan, events)


def _shorter_windows(plan: Plan, events: EventTable) -> Iterator[tuple[str, int]]:
    """The first window that leaves few enough, of half the length, a quarter, and so on."""
    bound = plan.bound
    if bound.postponed or len(events) == 0:
        return
    counts_events = bound.window is not None and bound.window.events
    span = len(events) if counts_events else int(events.time[-1] - events.time[0]) + 1
    length = span if bound.window is None else min(bound.window.length, span)
    for _ in range(40):
        length //= 2
        if length < 2:
            return
        shorter = replace(bound, window=BoundWindow(length, counts_events))
        try:
            left = count(shorter, plan.model, events, int(np.iinfo(np.int64).min), NEVER)
        except CepheidError:
            return
        if isinstance(left, Count) and left.near < EXACT_BELOW and left.number <= plan.limits.max_matches:
            yield f"WITHIN {_window_text(shorter, length)}", left.number
            return


def _window_text(bound: BoundQuery, length: int) -> str:
    """A window as a query has it."""
    schema = bound.schema
    if bound.window is not None and bound.window.events:
        return f"{length} EVENTS"
    if schema.type_of(schema.time) is not DataType.TIME or schema.time_unit is None:
        return str(length)
    size = length * UNITS[schema.time_unit]
    unit = max((name for name in UNITS if UNITS[name] <= size), key=lambda name: UNITS[name])
    return f"{size / UNITS[unit]:g} {unit}"


def _number(bound: BoundQuery, events: EventTable) -> int:
    number: int = importlib.import_module("cepheid.engine.search.runs").count(
        chosen(_alone(bound), Choice(of_runs(bound))), events, int(np.iinfo(np.int64).min), NEVER
    )
    return number


def _shown(bound: BoundQuery, mode: s.OutputMode, events: EventTable, find: Find) -> int:
    return len(find(_alone(rebound(bound, within=None, output=s.Output(mode))), events))


def _alone(bound: BoundQuery) -> Plan:
    return limited(make_plan(bound)[0], FEW, FEW)


def limited(plan: Plan, matches: int, runs: int, *, truncate: bool = False) -> Plan:
    """The same plan, with an error for more than so many matches or runs."""
    limits: Limits = replace(plan.limits, max_matches=matches, max_partial_matches=runs, truncate=truncate)
    return replace(plan, match=replace(plan.match, limits=limits))
