"""The sequence engine over events that stay: what can be said of an event alone is worked out once, when it comes.

A live query looks at the same events again with every step. Here each is tested, laid out and given the number of its
key on arrival; a step picks those of some keys, side by side as the kernel wants them, and constructs (stacks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.columns import Columns, fill, storage
from cepheid.engine.data.layout import BEGINS, INSTANT, MASK, PRECISE_FACTS, TIME, Events
from cepheid.engine.data.matches import Chosen, Int64s, Matches
from cepheid.engine.data.value_index import no_index
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_program
from cepheid.engine.search.stacks import OVERFLOW, Asked, construct
from cepheid.engine.values.columnwise import condition, value_column
from cepheid.language import syntax as s
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan

BRIEF = 200_000  # sequences that could be looked at; fewer take less time than starting a thread that can be stopped
_KEYS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean)


def can_keep(plan: Plan, schema: pa.Schema) -> bool:
    """Is this a plain query: sequences of one key, nothing that depends on more than the events of a match?"""
    bound = plan.bound
    if plan.engine != "sequence" or not plan.partition or set(plan.partition) != set(bound.equivalence):
        return False
    if bound.pattern is not None or bound.summary is not None or bound.may_lack:
        return False
    if plan.compared or bound.contiguous or bound.postponed or bound.schema.tiebreak:
        return False
    if bound.window is None or bound.window.events or plan.output.mode is not s.OutputMode.ALL or plan.limits.timeout:
        return False
    if plan.limits.max_bytes or plan.score.lossy or plan.score.imprecise:
        return False
    if not all(any(test(schema.field(name).type) for test in _KEYS) for name in plan.partition):
        return False
    layout = _compiled(plan).layout
    # The ranks of texts change with the texts that occur.
    return all(kind is not DataType.STRING and storage(kind) != "list" for _, kind, _ in layout.attributes)


def _compiled(plan: Plan) -> Any:
    order = tuple(range(len(plan.bound.positives) - 1, -1, -1))  # construction walks backwards
    return compile_program(plan.bound, order=order, push=plan.push_predicates)


class KeptStacks:
    """The candidates of a plain query as they come, numbered from 0 on."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._number_of: dict[Any, int] = {}  # the number of each key
        self.rows: list[list[int]] = []  # the candidates of each key
        bound = plan.bound
        self._components = [*bound.positives, *(negation.component for negation in bound.negations)]
        self._any_type = sum(1 << place for place, each in enumerate(self._components) if each.types is None)
        named = {name for each in self._components for name in each.types or ()}
        self._of_type = {name: _filled_by(name, self._components) for name in named}
        self._last = 1 << (len(bound.positives) - 1)
        self._layout = _compiled(plan).layout
        nothing = np.empty((1, 0), np.int64)
        self._time, self._key, self._mask = Growing(nothing), Growing(nothing), Growing(nothing)
        stored = [storage(kind) for _, kind, _ in self._layout.attributes]
        self._whole = Growing(np.empty((stored.count("whole"), 0), np.int64))
        self._number = Growing(np.empty((stored.count("number"), 0), np.float64))
        self._null = Growing(np.empty((len(stored), 0), np.uint8))

    def __len__(self) -> int:
        return len(self._time)

    @property
    def time(self) -> Int64s:
        """The time of each candidate."""
        times: Int64s = self._time.values()[0]
        return times

    @property
    def key(self) -> Int64s:
        """The number of the key of each candidate."""
        keys: Int64s = self._key.values()[0]
        return keys

    def append(self, table: pa.Table, time: Int64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """Takes in events; says which rows of the table are candidates, and which of these can end a match."""
        mask = self._mask_of(table)
        rows = np.flatnonzero(mask)
        keys = self._keys(table, rows)
        if keys.min(initial=0) < 0:
            rows, keys = rows[keys >= 0], keys[keys >= 0]
        if not len(rows):
            return rows, np.empty(0, bool)
        mask = mask[rows]
        start = len(self)
        self._time.extend(time[rows])
        self._key.extend(keys)
        self._mask.extend(mask)
        if self._layout.attributes:
            columns = fill(self._layout, table, rows, self.plan.bound.schema)
            self._whole.extend(columns.whole)
            self._number.extend(columns.number)
            self._null.extend(columns.null)
        own = self.rows
        for row, key in enumerate(keys.tolist(), start):
            own[key].append(row)
        return rows, mask & self._last != 0

    def _mask_of(self, table: pa.Table) -> Int64s:
        """Which components each event can fill, as in `candidates`: few events, so value by value."""
        bound = self.plan.bound
        if bound.schema.type is None:
            mask = np.full(table.num_rows, self._any_type, np.int64)
        else:
            known, other = self._of_type, self._any_type
            mask = np.array([known.get(kind, other) for kind in table.column(bound.schema.type).to_pylist()], np.int64)
        for place, component in enumerate(self._components):
            for part in self.plan.scan.conditions_of(component.variable):
                passed = condition(part, lambda node: value_column(table.column(node.name)), component.any, None)  # type: ignore[attr-defined]
                fits = passed.as_py() if isinstance(passed, pa.Scalar) else passed.to_numpy(zero_copy_only=False)
                mask = np.where(fits, mask, mask & ~(1 << place))
        return mask

    def _keys(self, table: pa.Table, rows: Int64s) -> Int64s:
        """The number of the key of each of some events, a new key gets the next; -1: a part of it is NULL."""
        attributes = [_values(table.column(name)) for name in self.plan.partition]
        values = attributes[0] if len(attributes) == 1 else list(zip(*attributes, strict=True))
        known, keys = self._number_of, []
        for row in rows.tolist():
            value = values[row]
            number = known.get(value)
            if number is None:
                if _is_null(value):
                    number = -1
                else:
                    number = known[value] = len(self.rows)
                    self.rows.append([])
            keys.append(number)
        return np.array(keys, np.int64)

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets all other candidates; those that stay are numbered anew, and so are their keys."""
        number_of = list(self._number_of)
        columns = (self._whole, self._number, self._null) if self._layout.attributes else ()
        for part in (self._time, self._key, self._mask, *columns):
            part.keep(which)
        left, keys = np.unique(self.key, return_inverse=True)
        self._key = Growing(keys.astype(np.int64).reshape(1, -1))
        self._number_of = {number_of[key]: number for number, key in enumerate(left.tolist())}
        self.rows = [[] for _ in left]
        for row, key in enumerate(keys.tolist()):
            self.rows[key].append(row)

    def find(self, keys: Sequence[int], after: int, until: int, oldest: int) -> Matches:
        """The matches of some keys with after < completion <= until; no event of theirs lies before `oldest`."""
        chosen = np.array([row for key in keys for row in self.rows[key]], np.int64)
        time = self.time[chosen]
        inside = (time <= until) & (time >= oldest)
        if not inside.all():
            chosen, time = chosen[inside], time[inside]
        key = self.key[chosen]
        changes = key[1:] != key[:-1]
        if bool(np.any((time[1:] < time[:-1]) & ~changes)):
            order = np.lexsort((time, key))
            chosen, time, key = chosen[order], time[order], key[order]
            changes = key[1:] != key[:-1]
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(chosen)]])
        facts = np.zeros((PRECISE_FACTS, len(chosen)), np.int64)
        facts[TIME] = time
        facts[INSTANT, 1:] = np.cumsum(changes | (time[1:] != time[:-1]))
        facts[MASK] = facts[BEGINS] = self._mask.values()[0, chosen]
        events = Events(facts, starts, np.zeros((0, len(chosen)), np.int64), True)
        nothing = np.empty(0, np.int64)
        columns = Columns(
            self._picked(self._whole, chosen),
            self._picked(self._number, chosen),
            self._picked(self._null, chosen),
            nothing,
            np.empty(0, np.float64),
            np.zeros((0, len(chosen)), np.int64),
        )
        places = len(self.plan.bound.positives)
        brief = float((np.diff(starts).astype(np.float64) ** places).sum()) <= BRIEF
        compiled = _compiled(self.plan)
        asked = Asked(after, until, self.plan.limits.max_matches, self.plan.push_window, self.plan.push_predicates)
        with briefly(brief):
            found, completion, counters = construct(
                events, compiled.program, columns, compiled.predicate.call, no_index(places, len(chosen)), asked
            )
        check_limit(self.plan, "max_matches", bool(counters[OVERFLOW]))
        return Matches(tuple(Chosen(chosen[found[:, place]]) for place in range(places)), completion)

    def _picked(self, kept: Growing, chosen: Int64s) -> npt.NDArray[Any]:
        if not self._layout.attributes:
            return np.empty((kept.values().shape[0], len(chosen)), kept.values().dtype)
        return np.ascontiguousarray(kept.values()[:, chosen])


class Growing:
    """Rows of numbers that grow at their end without being copied each time."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values, self._length = values, int(values.shape[1])

    def __len__(self) -> int:
        return self._length

    def values(self) -> npt.NDArray[Any]:
        """The numbers."""
        return self._values[:, : self._length]

    def extend(self, more: npt.NDArray[Any]) -> None:
        """Puts more at the end."""
        length = self._length + int(more.shape[-1])
        if length > self._values.shape[1]:
            larger = np.empty((self._values.shape[0], max(2 * length, 1024)), self._values.dtype)
            larger[:, : self._length] = self.values()
            self._values = larger
        self._values[:, self._length : length] = more
        self._length = length

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets the others."""
        self._values = np.ascontiguousarray(self.values()[:, which])
        self._length = int(self._values.shape[1])


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a key, equal where SQL says that they are."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy().tolist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _is_null(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return any(part is None or part != part for part in parts)  # NaN counts as NULL


def _filled_by(name: str, components: Sequence[s.Component]) -> int:
    """The components that take events of a type, as bits."""
    return sum(1 << place for place, each in enumerate(components) if each.types is None or name in each.types)
