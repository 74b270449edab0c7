"""Relaxed forms of a query, and how many matches they have: fewer components, conditions, or a longer window."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.find import find
from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.linear import TooManyError, linear_patterns, linear_query
from cepheid.language.printing import expression_text
from cepheid.plan.options import PlanOptions
from cepheid.runners.ties import Ties, ties_of

_FEWEST_EVENTS = 1_000
MOST_SEQUENCES = 12  # of those that a pattern stands for, so many are looked at
MOST_MATCHES = 100_000  # counting stops here
MOST_COMBINATIONS = 2e8  # a query that may have to look at more is run over fewer events


@dataclass(frozen=True)
class Part:
    """One condition of the top-level AND, with what it concerns."""

    expression: s.Expression
    variables: frozenset[str]

    @cached_property
    def text(self) -> str:
        """As written."""
        return expression_text(self.expression)

    @property
    def is_equivalence(self) -> bool:
        """Is it `[id]`?"""
        return isinstance(self.expression, s.Equivalence)

    @property
    def own(self) -> str | None:
        """The variable, if it concerns one event alone and no other element of a Kleene group."""
        if len(self.variables) != 1:
            return None
        alone = {s.Element.SINGLE, s.Element.CURRENT}
        for node in s.walk(self.expression):
            if isinstance(node, s.Length) or (isinstance(node, s.Reference) and node.element not in alone):
                return None
            if isinstance(node, s.Call) and node.function.lower() in AGGREGATES:
                return None
        return next(iter(self.variables))


def linear_sequences(bound: BoundQuery) -> list[BoundQuery]:
    """The sequences that a pattern stands for, with one round of what is repeated without end; some of very many."""
    try:
        patterns = linear_patterns(bound, 1)
    except TooManyError:
        hint = "run it on one of the sequences that the pattern expands to"
        raise CepheidError("the pattern expands to too many sequences to explain", hint=hint) from None
    found = (linear_query(bound, linear) for linear in patterns)
    return [_as_written(bound, query.bound) for query in found if query is not None][:MOST_SEQUENCES]


def _as_written(bound: BoundQuery, linear: BoundQuery) -> BoundQuery:
    """A sequence with the window, the strategy and the threshold of the whole, so that parts can be left out."""
    selection = s.Selection(bound.strategy, tuple(component.variable for component in linear.components))
    where = linear.syntax.where
    changed = replace(linear.syntax, within=bound.within, selection=selection, where=where)
    again = bind(changed, bound.schema)
    return replace(again, window=bound.window)


@dataclass(frozen=True)
class Subject:
    """A query over ordered events, taken apart."""

    bound: BoundQuery
    events: EventTable
    model: Any = None
    scoring: str = "exact"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The conditions of the top-level AND, equivalence tests one attribute at a time."""
        found: list[Part] = []
        for expression in s.conjoined(self.bound.where):
            if isinstance(expression, s.Equivalence):
                everywhere = frozenset(component.variable for component in self.bound.components)
                found += [Part(replace(expression, tests=(test,)), everywhere) for test in expression.tests]
            else:
                found.append(Part(expression, s.variables_of(expression)))
        return tuple(found)

    @property
    def positives(self) -> tuple[s.Component, ...]:
        """The components that must happen."""
        return self.bound.positives

    @cached_property
    def span(self) -> int:
        """From the first event to the last."""
        return int(self.events.time[-1] - self.events.time[0]) if len(self.events) else 0

    def relaxed(
        self,
        *,
        components: Iterable[s.Component] | None = None,
        without: Collection[Part] = (),
        window: s.Window | str | None = "same",
        any_strategy: bool = False,
    ) -> BoundQuery:
        """The query with fewer components, without some conditions, with another window or strategy.

        Probabilities are left out: what is counted are matches whose events were all seen.
        """
        syntax = self.bound.syntax
        kept = tuple(syntax.components if components is None else components)
        variables = {component.variable for component in kept}
        conditions = [
            p.expression for p in self.parts if p not in without and (p.is_equivalence or p.variables <= variables)
        ]
        selection = syntax.selection
        if selection is not None:
            names = tuple(name for name in selection.variables if name in variables)
            selection = None if any_strategy else replace(selection, variables=names)
        steps = [
            replace(each, steps=tuple(step for step in each.steps if step.variable in variables))
            for each in (() if any_strategy else syntax.step_selections)
        ]
        changed = replace(
            syntax.in_order(kept),
            sequence=syntax.sequence or len(kept) > 1,
            where=_joined(conditions),
            selection=selection,
            step_selections=tuple(each for each in steps if each.steps),
            within=syntax.within if isinstance(window, str) else window,
            threshold=None,
            confidence=None,
            returns=None,
            summary=None,
            output=s.Output(),
        )
        return bind(changed, self.bound.schema)

    def matches(self, query: BoundQuery, limit: int = MOST_MATCHES) -> Matches:
        """The matches of a relaxed query, cut at the limit."""
        plan, _ = make_plan(
            query, options=PlanOptions(max_matches=limit, max_partial_matches=20 * limit, truncate=True)
        )
        return find(plan, self.events)

    def first(self, share: float) -> Subject:
        """The same over the first events only."""
        kept = min(len(self.events), max(_FEWEST_EVENTS, int(len(self.events) * share)))
        events = self.events
        table = events.table.slice(0, kept)
        return replace(self, events=EventTable(table, events.time[:kept], events.instant[:kept]))

    def in_row_order(self) -> Subject:
        """The same with events of one time in the order of their rows."""
        events = self.events
        return replace(self, events=EventTable(events.table, events.time, np.arange(len(events)), events.late))

    @cached_property
    def ties(self) -> Ties | None:
        """The events that share time and key with another, where that may cost matches."""
        return ties_of(make_plan(self.bound)[0], self.events)

    def row(self, index: int) -> dict[str, Any]:
        """One event."""
        shown = self.events.table.select(self.bound.schema.whole_names)
        return shown.slice(int(index), 1).to_pylist()[0]  # type: ignore[no-any-return]


def _joined(conditions: list[s.Expression]) -> s.Expression | None:
    if len(conditions) > 1:
        return s.And(tuple(conditions))
    return conditions[0] if conditions else None


def combinations(bound: BoundQuery, counts: Collection[int], keys: int, span: int) -> float:
    """About how many combinations of candidates lie in one window, over the whole table.

    >>> from cepheid.plan.examples import example
    >>> combinations(example("PATTERN SEQ(A a, B b) WITHIN 10").bound, [1000, 2000], 1, 1000)
    20000.0
    """
    if not counts:
        return 0.0
    keys = max(keys, 1)
    share = 1.0
    if bound.window is not None and not bound.window.events and span > 0:
        share = min(1.0, bound.window.length / span)
    first, *others = counts
    total = float(first)
    for count in others:
        total *= max(count / keys * share, 1e-9)
    return total


def thinned(table: pa.Table, keys: tuple[str, ...], most: int) -> tuple[pa.Table, str | None]:
    """At most about `most` events, and how they were chosen: whole keys if there are any, else the first ones."""
    if table.num_rows <= most:
        return table, None
    if not keys:
        return table.slice(0, most), f"the first {most:,} of {table.num_rows:,} events"
    codes = np.zeros(table.num_rows, np.int64)
    for name in keys:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        code = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        codes = np.unique(codes * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(codes)
    # Keys in an order that depends on nothing they mean, always the same one.
    order = np.random.default_rng(0).permutation(len(sizes))
    chosen = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))]
    kept = np.isin(codes, chosen)
    of_keys = f"{len(chosen):,} of {len(sizes):,} keys, drawn at random"
    return table.filter(pa.array(kept)), f"the {int(kept.sum()):,} of {table.num_rows:,} events of {of_keys}"
