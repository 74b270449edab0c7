"""Rows of a live query's result as dicts, straight from the dicts that were sent: no table is made on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.incremental.dict_answers import Answers
from cepheid.engine.incremental.pushed_matches import Found, PushedMatches
from cepheid.runners.stream.event_log import EventLog
from cepheid.runners.worker_plans import WorkerPlan


class _Query(NamedTuple):
    name: str | None
    variables: tuple[tuple[str, bool], ...]  # with: is it a group?
    columns: tuple[str, ...]
    time: str


class DictRows:
    """Makes rows of the result of some queries."""

    def __init__(self, shipments: Sequence[WorkerPlan], result: pa.Schema) -> None:
        self._queries: list[_Query | None] = []
        for worker_plan in shipments:
            bound = worker_plan.plan.bound
            variables = tuple((each.variable, each.kleene) for each in bound.positives)
            plain = bound.returns is None
            own = _Query(worker_plan.name, variables, bound.schema.whole_names, bound.schema.time)
            self._queries.append(own if plain else None)
        self._names = result.names

    def answers(self, whole: bool, sized: bool) -> Answers | None:
        """What a kernel makes the same rows of; None: it cannot."""
        query = self._queries[0]
        if query is None or query.name is not None or len(self._queries) > 1:
            return None
        return Answers(self._names, query.variables, query.columns, query.time, whole, sized)

    def rows(self, log: EventLog, found: Sequence[tuple[int, list[Found]]]) -> list[dict[str, Any]] | None:
        """The rows of what was found; None: some events did not come as dicts, or values are computed."""
        made: list[dict[str, Any]] = []
        for number, results in found:
            query = self._queries[number]
            if query is None:
                return None
            for each in results:
                if not isinstance(each, PushedMatches):
                    return None
                rows = each.events.tolist()
                if not log.are_dicts(rows):
                    return None
                sizes = None if each.sizes is None else each.sizes.tolist()
                chances = None if each.scores is None else np.exp(each.scores).tolist()
                place = 0
                for match in range(len(each.known)):
                    size = None if sizes is None else sizes[match]
                    end = place + (len(query.variables) if size is None else sum(size))
                    row = self._row(query, log, rows[place:end], size)
                    if row is None:
                        return None
                    if chances is not None:
                        (row if query.name is None else row[query.name])["probability"] = chances[match]
                    made.append(row)
                    place = end
        return made

    def _row(self, query: _Query, log: EventLog, rows: list[int], sizes: list[int] | None) -> dict[str, Any] | None:
        events = [log.event(row) for row in rows]
        columns = query.columns
        shown = [{name: event.get(name) for name in columns} for event in events]
        times: list[Any] = [event[query.time] for event in shown]
        row: dict[str, Any] = dict.fromkeys(self._names)
        row["match_start"], row["match_end"] = min(times), max(times)
        into = row
        if query.name is not None:
            row["query"] = query.name
            into = row[query.name] = {}
        if sizes is None:
            for (variable, _), event in zip(query.variables, shown, strict=True):
                into[variable] = event
            return row
        place = 0
        for (variable, group), size in zip(query.variables, sizes, strict=True):
            if group and size == 0:
                return None
            chosen = shown[place : place + size]
            into[variable] = chosen if group else chosen[0] if chosen else None
            place += size
        return row
