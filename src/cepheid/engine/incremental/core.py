"""The incremental search of one query: its candidates in arrays that grow, and what a step finds among them.

The events themselves lie elsewhere: here each has a number. All of it follows from the events that are kept and the
time up to which their matches are known, so it can be dropped and made again at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.budget import checkpoint, within_budget
from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.columns import Columns, storage
from cepheid.engine.data.layout import BEGINS, MASK, POSITION, TIME, Events
from cepheid.engine.data.matches import MISSING, NEVER, Chosen, Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.data.value_index import no_index
from cepheid.engine.incremental import by_runs, by_stacks, linking
from cepheid.engine.incremental.linking import (
    AFTER,
    BEFORE,
    CHAINS,
    DONE,
    FACTS_OF_EVENT,
    KEY,
    LATEST,
    LINKED,
    MATCHED,
    MATCHES,
    NEEDED,
    NEVER_BEFORE,
    OF_NO_KEY,
    ROW,
    SIDE_KEYS,
    SIDE_SIZE,
    SIZE,
    UNTIL,
)
from cepheid.engine.incremental.own_sides import Sides
from cepheid.engine.incremental.pushed_matches import Found, PushedMatches, Replayed
from cepheid.engine.incremental.queries import Form, compiled_for_now, form_of
from cepheid.engine.incremental.stepping import go_on, step
from cepheid.engine.jit_fallback import answer
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.kernels.memory import address_of, address_of_kernel
from cepheid.engine.kernels.stop import STOP, briefly
from cepheid.engine.limits import check_limit
from cepheid.engine.retention import retained
from cepheid.engine.search.incremental_events import Arrived, KeyNumbers, Reader
from cepheid.engine.search.runs.by_value import Waits
from cepheid.engine.search.runs.enumerate import EVENTS_LISTED, FOUND, Listed, nothing_listed
from cepheid.engine.search.runs.moves import OVERFLOW
from cepheid.engine.search.runs.prepare import matches_of
from cepheid.engine.search.runs.scan import MATCHES_REACHED, RUNS_REACHED, VERBOSE, scan
from cepheid.engine.search.runs.scan import SearchRequest as AskedRuns
from cepheid.engine.search.stacks import OVERFLOW as STACKS_OVERFLOW
from cepheid.engine.search.stacks import SearchRequest, construct
from cepheid.language.free_names import free_name
from cepheid.plan.physical import Plan

if TYPE_CHECKING:  # the model comes with it, which only queries need of which events may be missing
    from cepheid.engine.search.queues import QueueSearch

BEGINNING = np.iinfo(np.int64).min
FIRST_ROOM, FIRST_SIDE = 1024, 512
_NO_WAITS = Waits(np.zeros((0, 5), np.int64), np.zeros((0, 0), np.int64), 0)


Replay = Callable[[Int64s, int, int], list[pa.RecordBatch]]


class Calls(NamedTuple):
    """The kernels of the engine, as they are called."""

    step: Callable[..., int]
    go_on: Callable[..., int]
    relink: Callable[..., int]


class Core:
    """The candidates of a query as they come, and its search.

    Where no kernel searches the events of a key, `replay` does: it gets the numbers of the events of some keys and an
    interval of completion, and returns rows of the result. `numberings` are those of keys that queries share.
    """

    def __init__(
        self, plan: Plan, schema: pa.Schema, replay: Replay, numberings: dict[tuple[str, ...], KeyNumbers]
    ) -> None:
        self.form: Form = form_of(plan, schema)
        self.plan, self.keys, self._replay = self.form.plan, self.form.keys, replay
        layout = self.form.layout
        shared = numberings.setdefault(self.keys, KeyNumbers(self.keys)) if self.keys else None
        self.reader = Reader(self.plan, layout, self.keys, schema, shared)
        self.every_event = self.plan.scan.every_event
        self.head = np.zeros(linking.HEAD_SIZE, np.int64)
        self.at = int(self.head.ctypes.data)
        own = "by_queues" if self.form.by_queues else "by_runs" if self.form.by_runs else "by_stacks"
        self._name = f"incremental.{'stepping' if self.form.replays else own}"
        self._scored = self.form.by_queues
        self.sized = self.form.by_runs or self._scored  # does a match say how many events fill each place?
        self._tables: list[Any] = []  # what lies at the addresses in `head`
        self._predicates: dict[bool, Any] = {}  # by whether kernels are interpreted: the condition, and addresses
        self.calls: Calls | None = None  # None: not compiled yet
        self._queues: QueueSearch | None = None
        stored = [storage(kind) for _, kind, _ in layout.attributes]
        self.room = FIRST_ROOM
        self.facts = np.zeros((FACTS_OF_EVENT, self.room), np.int64)
        self.whole = np.zeros((stored.count("whole"), self.room), np.int64)
        self.number = np.zeros((stored.count("number"), self.room), np.float64)
        self.null = np.zeros((len(stored), self.room), np.uint8)
        self._keys = np.zeros((0, CHAINS + len(self.form.stages)), np.int64)
        self._busy = np.zeros(0, np.int64)
        self._out: tuple[Any, ...] = ()
        self._sides = Sides(*(table[:, :0] for table in (self.whole, self.number, self.null)))
        self._side: tuple[Any, ...] = ()
        self._write_query()
        self._place_events()
        self.make_room_for_keys(64)
        self._make_room_for_matches(256)
        self._make_room_side_by_side(FIRST_SIDE)
        self.head[AFTER] = BEGINNING

    def __len__(self) -> int:
        return self.size

    @property
    def size(self) -> int:
        """How many events are kept."""
        return int(self.head[SIZE])

    @property
    def is_searched_when_due(self) -> bool:
        """Do ends and windows of events alone say when it is searched, and these events what it finds?"""
        return not (self.form.moments.always or (self.form.carries and self.form.replays))

    @property
    def next_deadline(self) -> int:
        """When the next window of a first event has passed."""
        return linking.next_deadline(self.head) if self.form.moments.deadline else linking.NEVER_DUE

    # --- rooms ------------------------------------------------------------------------------------------------------

    def _write_query(self) -> None:
        head, form = self.head, self.form
        for field, value in form.numbers.items():
            head[field] = value
        stages = np.array(form.stages, np.int64)
        head[linking.STAGES], head[linking.STAGES_AT] = len(stages), stages.ctypes.data
        head[linking.TIES], head[linking.TIES_AT] = len(form.ties), form.ties.ctypes.data
        self._tables = [stages, form.ties, *form.tables]
        for number, table in enumerate(form.tables):
            self._place_table(number, table)

    def _place_table(self, number: int, table: Any) -> None:
        at = linking.TABLES + 3 * number
        self.head[at : at + 3] = _place_of(table)

    def _place_scoring(self) -> None:
        """Places what matches are scored by, which is made when something is searched for the first time."""
        from cepheid.engine.incremental.by_queues import arrays_of

        arrays = arrays_of(self._queue_search().scoring)
        places = np.array([_place_of(each) for each in arrays], np.int64)
        self._tables += [*arrays, places]
        self._place_table(linking.SCORING, places)

    def _place_events(self) -> None:
        head = self.head
        head[linking.ROOM] = self.room
        head[linking.FACTS_AT] = self.facts.ctypes.data
        head[linking.WHOLE_AT], head[linking.WHOLE_ROWS] = self.whole.ctypes.data, len(self.whole)
        head[linking.NUMBER_AT], head[linking.NUMBER_ROWS] = self.number.ctypes.data, len(self.number)
        head[linking.NULL_AT], head[linking.NULL_ROWS] = self.null.ctypes.data, len(self.null)

    def make_room(self, events: int) -> None:
        """Room for so many events more."""
        if self.size + events > self.room:
            self._move(slice(0, self.size), 2 * (self.size + events))

    def _move(self, which: Any, room: int) -> None:
        """Some of the events into a room of another size."""
        for name in ("facts", "whole", "number", "null"):
            before = getattr(self, name)
            chosen = before[:, : self.size][:, which]
            after = np.zeros((before.shape[0], room), before.dtype)
            after[:, : chosen.shape[1]] = chosen
            setattr(self, name, after)
        self.room = room
        self._place_events()

    def make_room_for_keys(self, number: int) -> None:
        """Room for so many keys."""
        known = len(self._keys)
        if number <= known:
            return
        keys = np.zeros((2 * number, self._keys.shape[1]), np.int64)
        keys[:known] = self._keys
        keys[known:, LATEST], keys[known:, CHAINS:] = -1, NEVER_BEFORE
        self._keys, busy = keys, np.zeros(2 * number, np.int64)
        busy[: len(self._busy)] = self._busy
        self._busy = busy
        head = self.head
        head[linking.KEYS_AT], head[linking.KEY_ROOM] = keys.ctypes.data, len(keys)
        head[linking.BUSY_AT] = busy.ctypes.data

    def _make_room_for_matches(self, number: int) -> None:
        places, head = len(self.plan.bound.positives), self.head
        out, known = np.zeros(number, np.int64), np.zeros(number, np.int64)
        sizes = np.zeros((number if self.sized else 0, places), np.int64)
        scores = np.zeros(number if self._scored else 0, np.float64)
        if self._out:
            out[: head[MATCHED]], known[: head[MATCHES]] = self._out[0][: head[MATCHED]], self._out[2][: head[MATCHES]]
            if self.sized:
                sizes[: head[MATCHES]] = self._out[1][: head[MATCHES]]
            if self._scored:
                scores[: head[MATCHES]] = self._out[3][: head[MATCHES]]
        self._out = out, sizes, known, scores
        head[linking.OUT_AT], head[linking.OUT_ROOM] = out.ctypes.data, number
        head[linking.SIZES_AT], head[linking.SCORES_AT] = sizes.ctypes.data, scores.ctypes.data
        head[linking.KNOWN_AT], head[linking.KNOWN_ROOM] = known.ctypes.data, number

    def _make_room_side_by_side(self, number: int) -> None:
        self._side = self._sides.make(self.head, 0, number, ())

    # --- events -----------------------------------------------------------------------------------------------------

    @property
    def times(self) -> Int64s:
        """The time of each event that is kept."""
        times: Int64s = self.facts[TIME, : self.size]
        return times

    @property
    def rows(self) -> Int64s:
        """The number of each event that is kept."""
        rows: Int64s = self.facts[ROW, : self.size]
        return rows

    def read(self, table: pa.Table) -> Arrived:
        """The candidates of a table."""
        return self.reader.read(table, self.every_event, OF_NO_KEY if self.head[linking.STRICT] else None)

    def needed(self, until: int, table: Callable[[], pa.Table]) -> npt.NDArray[np.bool_]:
        """Which events a match that is not known yet can need; time has passed all up to `until`."""
        retention = self.plan.exchange.retention
        if self.form.moments.always:
            return self._retained(table(), until)
        if retention.reach is not None:
            return np.asarray(self.times > until - retention.reach)
        assert retention.events is not None
        facts = self.facts[:, : self.size]
        keep: npt.NDArray[np.bool_] = facts[POSITION] > self._keys[facts[KEY], BEFORE] - retention.events
        keep[int(self.head[LINKED]) :] = True
        return keep

    def _retained(self, table: pa.Table, until: int) -> npt.NDArray[np.bool_]:
        """The same by the engine's own rule, where times are imprecise or one event may belong to all keys."""
        table = table.take(pa.array(self.rows))
        name = free_name("__number", table.column_names)
        events = ordered(table.append_column(name, pa.array(np.arange(len(self)))), self.plan.bound.schema)
        numbers = events.table.column(name).to_numpy()
        own = replace(events, table=events.table.drop_columns([name]))
        keep = np.zeros(len(self), bool)
        keep[numbers] = retained(self.plan, own, until)
        return keep

    def waiting_ends(self) -> list[int]:
        """The times of events that time has not passed yet and that can be the last ones of a match."""
        waiting = self.facts[:, int(self.head[LINKED]) : self.size]
        found: list[int] = waiting[TIME, (waiting[MASK] & self.form.ending) != 0].tolist()
        return found

    def append(self, arrived: Arrived, time: Int64s, rows: Int64s, in_order: bool = False) -> None:
        """Takes candidates in: the time of each, and the number by which its event is known."""
        number = len(arrived.rows)
        if not number:
            return
        self.make_room(number)
        self.make_room_for_keys(self.reader.keys)
        begin, end = self.size, self.size + number
        facts = self.facts[:, begin:end]  # what was there before is 0
        facts[TIME], facts[KEY], facts[MASK], facts[ROW] = time, arrived.keys, arrived.mask, rows
        facts[BEGINS] = arrived.begins
        if arrived.columns is not None:
            self.whole[:, begin:end], self.number[:, begin:end] = arrived.columns.whole, arrived.columns.number
            self.null[:, begin:end] = arrived.columns.null
        self.head[SIZE] = end
        if not in_order:
            self.put_in_order()

    def put_in_order(self) -> None:
        """Events that time has not passed lie in its order, and as they came where that is the same."""
        linked = int(self.head[LINKED])
        times = self.facts[TIME, linked : self.size]
        if bool((times[1:] >= times[:-1]).all()):
            return
        order = linked + np.argsort(times, kind="stable")
        for table in (self.facts, self.whole, self.number, self.null):
            table[:, linked : self.size] = table[:, order]

    def keep(self, which: npt.NDArray[np.bool_], numbers: Int64s) -> None:
        """Forgets all other events; those that stay get new numbers, and their keys, too."""
        left = int(which.sum())
        self._move(which, max(FIRST_ROOM, 2 * left))
        self.head[SIZE] = left
        self.facts[ROW, :left] = numbers[self.facts[ROW, :left]]
        if self.keys:
            self._keep_keys(self._occurring())
        self._keys, self._busy = self._keys[:0], self._busy[:0]
        self.make_room_for_keys(max(64, self.reader.keys))
        self.know(int(self.head[AFTER]))

    def _occurring(self) -> npt.NDArray[np.bool_]:
        """Which keys have events."""
        occurs, facts = np.zeros(self.reader.keys, bool), self.facts[:, : self.size]
        occurs[facts[KEY, facts[MASK] != OF_NO_KEY]] = True
        return occurs

    def _keep_keys(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets all other keys, which have no events."""
        facts = self.facts[:, : self.size]
        keyed = facts[MASK] != OF_NO_KEY
        facts[KEY, keyed] = (np.cumsum(which) - 1)[facts[KEY, keyed]]
        self.reader.keep_keys(np.flatnonzero(which))

    def tidy(self) -> None:
        """Gives back room that is no longer needed, and forgets keys without events if there are many of them."""
        if self.room > max(4 * FIRST_ROOM, 8 * self.size):
            self._move(slice(0, self.size), max(FIRST_ROOM, 2 * self.size))
        known = self.reader.keys
        if not self.keys or known <= FIRST_ROOM:
            return
        occurs = self._occurring()
        left = np.flatnonzero(occurs)
        if 2 * len(left) < known:
            self._keep_keys(occurs)
            self._keys, self._busy = self._keys[left], self._busy[:0]
            self._sides.drop(self.head, self._keys)
            self.make_room_for_keys(max(64, len(left) + 1))

    def know(self, until: int) -> None:
        """All matches up to a time are known."""
        self.head[LINKED] = self.head[linking.DECIDED] = 0
        self._sides.drop(self.head, self._keys)
        self._called(lambda calls: calls.relink(self.head, until))

    # --- the search -------------------------------------------------------------------------------------------------

    def step(self, until: int) -> list[Found]:
        """The matches that are known when time has passed."""
        return self.results(self._called(lambda calls: calls.step(self.head, until)))

    def _called(self, call: Callable[[Calls], int]) -> int:
        if self.calls is not None:
            return call(self.calls)
        return answer(self._name, self.size, lambda: call(self._chosen_calls()))

    def _chosen_calls(self) -> Calls:
        """The kernels as plain Python or compiled, with the condition in the same form."""
        interpreted = is_interpreted()
        if interpreted not in self._predicates:
            self._predicates[interpreted] = self._addresses()
        _, self.head[linking.PREDICATE_AT], self.head[linking.SEARCH_AT] = self._predicates[interpreted]
        entries = (step, go_on, linking.relink)
        if interpreted:
            return Calls(*(entry.plain() for entry in entries))
        self.calls = Calls(*(entry.direct() for entry in entries))
        return self.calls

    def _addresses(self) -> tuple[Any, int, int]:
        """The condition, its address, and that of the search."""
        compiled = compiled_for_now(self.form).compiled
        if compiled is None:
            return None, 0, 0
        predicate, search = compiled.predicate.call, by_runs.search if self.form.by_runs else by_stacks.search
        if self.form.by_queues:
            from cepheid.engine.incremental.by_queues import search as search_queues

            self._place_scoring()
            search = search_queues
        return predicate, address_of(predicate), address_of_kernel(search.__wrapped__)

    def results(self, returned: int) -> list[Found]:
        """What a call of a kernel found; where something hindered it, that is put out of the way, and it goes on."""
        if not self.head[linking.LIMITED] or returned >= 0:
            return self._results(returned)
        with within_budget(self.plan.limits.timeout, self.plan.limits.max_bytes):
            return self._results(returned)

    def _results(self, returned: int) -> list[Found]:
        found: list[Found] = []
        while returned != 0:
            checkpoint()
            if returned > 0:
                found.append(self._listed())
                break
            match returned:
                case linking.NEEDS_MATCHES:
                    self._make_room_for_matches(2 * int(self.head[NEEDED]))
                case linking.NEEDS_SIDE:
                    self._make_room_side_by_side(2 * int(self.head[NEEDED]))
                case linking.NEEDS_OWN_SIDE:
                    self._sides.give(self.head, self._keys[self._busy[self.head[DONE]]], self._words_of_search)
                case linking.MORE:
                    pass  # it took long enough for a look at what else there is to do
                case linking.REPLAY:
                    found += self._searched_again(self.facts[ROW, self._side[1][: self.head[SIDE_SIZE]]])
                    self.head[DONE] = self.head[linking.BUSY]
                case linking.TOO_MANY_MATCHES | linking.TOO_MANY_RUNS if self.form.gives_way:
                    found += self._given_way(int(self.head[linking.BUSY] - self.head[DONE]))
                case linking.NOT_BRIEF | linking.STOPPED if self.form.gives_way:
                    found += self._given_way(int(self.head[SIDE_KEYS]))
                case linking.NOT_BRIEF | linking.STOPPED:
                    if self.head[MATCHES]:
                        found.append(self._listed())
                    found += self._searched_alone(returned == linking.STOPPED)
                    self.head[DONE] += self.head[SIDE_KEYS]
                case _:
                    name = "max_partial_matches" if returned == linking.TOO_MANY_RUNS else "max_matches"
                    check_limit(self.plan, name, True)
            returned = self._called(lambda calls: calls.go_on(self.head))
        return found

    def _words_of_search(self, rooms: tuple[int, int, int]) -> int:
        """How much memory the search of a key keeps, with room for so many events, runs and entries."""
        compiled, graph = self.form.compiled, self.form.graph
        assert compiled is not None
        places, negatives = compiled.program.places, compiled.program.negatives
        if graph is None:
            return by_stacks.words_of_stacks(places, negatives, rooms[0])
        return by_runs.words_of_runs(self.form.widths, len(graph.states) - 1, negatives, rooms)

    def _searched_again(self, rows: Int64s) -> list[Found]:
        """What the engine finds in a table of some events."""
        batches = self._replay(rows, int(self.head[AFTER]), int(self.head[UNTIL]))
        return [Replayed(batches)] if batches else []

    def _given_way(self, number: int) -> list[Found]:
        """What was found, and what the engine finds for the next keys, of which too many matches would be listed."""
        head, found = self.head, list[Found]()
        self._sides.give_up(head, self._keys[self._busy[head[DONE]]])
        if head[MATCHES]:
            found.append(self._listed())
        facts = self.facts[:, : head[LINKED]]
        chosen = np.isin(facts[KEY], self._busy[head[DONE] : head[DONE] + number])
        after, reach = int(head[AFTER]), self.plan.exchange.retention.reach
        if reach is not None and after > BEGINNING + reach:
            chosen &= facts[TIME] > after - reach
        found += self._searched_again(facts[ROW, chosen])
        head[DONE] += number
        return found

    def _by_queues(
        self, form: Form, events: Events, columns: Columns, rows: Int64s, interval: tuple[int, int]
    ) -> PushedMatches:
        found, _ = self._queue_search().found(events, columns, columns, interval)
        places, matches = len(self.plan.bound.positives), len(found.score)
        of_match = np.repeat(np.arange(matches), np.diff(found.begins))
        sizes = np.bincount(places * of_match + found.place, minlength=places * matches).reshape(matches, places)
        return PushedMatches(rows[found.event], sizes, found.completion, found.score)

    def _queue_search(self) -> QueueSearch:
        compiled = compiled_for_now(self.form).compiled
        assert compiled is not None
        if self._queues is None or self._queues.compiled is not compiled:
            from cepheid.engine.scoring.edges import build_edges
            from cepheid.engine.search.queues import queue_search

            self._queues = queue_search(self.plan, self.plan.bound, build_edges(self.plan))
        return self._queues

    def _listed(self) -> PushedMatches:
        head = self.head.data  # which Python reads in half the time
        matches, matched = head[MATCHES], head[MATCHED]
        head[MATCHES] = head[MATCHED] = 0
        out, sizes, known, scores = self._out
        of_each = sizes[:matches].copy() if self.sized else None
        scored = scores[:matches].copy() if self._scored else None
        return PushedMatches(out[:matched].copy(), of_each, known[:matches].copy(), scored)

    def chances(self) -> Float64s:
        """The probability of each match that the last call found; none where no event may be missing."""
        found: Float64s = np.exp(self._out[3][: self.head[MATCHES] if self._scored else 0])
        return found

    def _searched_alone(self, brief: bool) -> list[Found]:
        """The matches of the keys whose events lie side by side, by a search that can be stopped."""
        head, number = self.head, int(self.head[SIDE_SIZE])
        interval = int(head[AFTER]), int(head[UNTIL])
        side, laid, starts, *columns = self._side
        facts, whole, numbers, null = (table[:, :number].copy() for table in (side, *columns))
        read = Columns(whole, numbers, null, self.form.literals, np.empty(0, np.float64), np.zeros((0, 0), np.int64))
        events = Events(facts, starts[: head[SIDE_KEYS] + 1].copy(), np.zeros((0, number), np.int64), True)
        rows = self.facts[ROW, laid[:number]]
        with briefly(brief and STOP[0] == 0):
            engine = self._by_runs if self.form.by_runs else self._by_stacks
            search = self._by_queues if self.form.by_queues else engine
            found = search(compiled_for_now(self.form), events, read, rows, interval)
        return [found] if len(found.known) else []

    def _by_stacks(
        self, form: Form, events: Events, columns: Columns, rows: Int64s, interval: tuple[int, int]
    ) -> PushedMatches:
        plan, compiled = self.plan, form.compiled
        assert compiled is not None
        asked = SearchRequest(*interval, plan.limits.max_matches, plan.push_window, plan.push_predicates, NEVER)
        index = no_index(len(plan.bound.positives), len(rows))
        chosen, known, counters = construct(events, compiled.program, columns, compiled.predicate.call, index, asked)
        check_limit(plan, "max_matches", bool(counters[STACKS_OVERFLOW]))
        return PushedMatches(rows[chosen.reshape(-1)], None, known)

    def _by_runs(
        self, form: Form, events: Events, columns: Columns, rows: Int64s, interval: tuple[int, int]
    ) -> PushedMatches:
        limits = self.plan.limits
        assert form.compiled is not None
        asked = AskedRuns(VERBOSE, form.merging, False, *interval, limits.max_partial_matches, limits.max_matches)
        listed, _, _, state = scan(
            events,
            form.machine,
            columns,
            form.compiled.predicate.call,
            _NO_WAITS,
            form.widths,
            nothing_listed(len(self.plan.bound.positives)),
            asked,
        )
        check_limit(self.plan, "max_partial_matches", bool(state[OVERFLOW] == RUNS_REACHED))
        check_limit(self.plan, "max_matches", bool(state[OVERFLOW] == MATCHES_REACHED))
        found = int(listed.filled[FOUND])
        return PushedMatches(
            rows[listed.events[: listed.filled[EVENTS_LISTED]]], listed.sizes[:found], listed.known[:found]
        )

    def durations(self, found: PushedMatches) -> Int64s:
        """How long each match lasts."""
        first, last = self.spans(found, self.times_of(found))
        return last - first

    def times_of(self, found: PushedMatches) -> Int64s:
        """The time of each event of matches."""
        rows = self.rows
        places = np.minimum(np.searchsorted(rows, found.events), len(rows) - 1)
        if not np.array_equal(rows[places], found.events):  # events did not come in order
            order = np.argsort(rows)
            places = order[np.searchsorted(rows, found.events, sorter=order)]
        times: Int64s = self.times[places]
        return times

    def spans(self, found: PushedMatches, times: Int64s) -> tuple[Int64s, Int64s]:
        """When each match begins and ends, given the times of its events."""
        sizes = len(self.plan.bound.positives) if found.sizes is None else found.sizes.sum(axis=1)
        starts = np.cumsum(np.broadcast_to(sizes, len(found.known))) - sizes
        return np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)

    def matches(self, found: PushedMatches) -> Matches:
        """Matches as engines return them; the rows are the numbers of the events."""
        events, sizes, known, scores = found
        places = len(self.plan.bound.positives)
        if sizes is None:
            table = events.reshape(len(known), places)
            return Matches(tuple(Chosen(table[:, place]) for place in range(places)), known)
        probability = None if scores is None else np.exp(scores)
        if not any(component.kleene for component in self.plan.bound.positives):
            filled = np.full((len(known), places), MISSING, np.int64)
            filled[sizes > 0] = events
            return Matches(tuple(Chosen(rows) for rows in filled.T.copy()), known, probability=probability)
        order = np.arange(len(events), dtype=np.int32)
        listed = Listed(order, sizes, known, np.array([len(known), len(events), 0], np.int64))
        return replace(matches_of(self.plan.bound, listed, events), probability=probability)


def _place_of(table: Any) -> tuple[int, int, int]:
    """The address, rows and columns of a table or an array."""
    return table.ctypes.data, 1 if table.ndim == 1 else table.shape[0], table.shape[-1]
