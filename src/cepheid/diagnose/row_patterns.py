"""Why a MATCH_RECOGNIZE clause finds nothing, or too little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import pyarrow as pa

from cepheid.diagnose.diagnosis import ComponentCount, ConditionCount
from cepheid.diagnose.patterns import MOST_EVENTS, MOST_MATCHES, Variant
from cepheid.diagnose.relax import thinned
from cepheid.engine.search.row_pattern.conditions import BY_PATH, Conditions, prepare
from cepheid.engine.search.row_pattern.run import arranged
from cepheid.language import pattern as p
from cepheid.language.free_names import free_name
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.syntax import Clause, SkipTo
from cepheid.runners.options import RowOptions
from cepheid.runners.rows import RowSearch


class RowSubject:
    """A clause over a table in memory."""

    between = "write a label without a definition between them, such as A X* B"

    def __init__(
        self, clause: Clause, bound: BoundClause, table: pa.Table, options: RowOptions, most: int | None = None
    ) -> None:
        self.clause, self.bound, self.options = clause, bound, options
        self.table, self.sample = thinned(table, bound.partition_by, most or MOST_EVENTS)
        self.text, self.events = clause.text.strip(), table.num_rows

    @cached_property
    def _conditions(self) -> Conditions:
        return prepare(self.bound, arranged(self.bound, self.table))

    def components(self) -> tuple[ComponentCount, ...]:
        """How many rows pass each definition, as far as a row alone decides."""
        texts = {each.label.canonical: self.clause.text[slice(*each.span)] for each in self.clause.definitions}
        return tuple(self._component(number, label, texts) for number, label in enumerate(self.bound.labels))

    def _component(self, number: int, label: str, texts: dict[str, str]) -> ComponentCount:
        passed = int(self._conditions.holds[number].sum())
        on_the_way = self._conditions.how[number] == BY_PATH
        message = f"{texts.get(label, '')}{' (the part that a single row decides)' if on_the_way else ''}"
        conditions = (ConditionCount(message, passed),) if label in self.bound.conditions else ()
        return ComponentCount(label, label, False, self.table.num_rows, conditions, 0, passed)

    def matches(self) -> int:
        """How many matches there are."""
        return RowSearch(self.bound, self.table.schema, self.options).count(self.table)

    def beginnings(self) -> Sequence[Variant]:
        """The pattern cut off behind each of its parts."""
        parts = _parts(self.bound.pattern)
        texts = [self.clause.text[slice(*part.span)] or "?" for part in parts]
        cut = [replace(self.bound, pattern=p.Sequence(parts[:length])) for length in range(1, len(parts) + 1)]
        return [self._variant("join", " ".join(texts[: at + 1]), bound) for at, bound in enumerate(cut)]

    def relaxed(self) -> Sequence[Variant]:
        """The clause without one definition, without WITHIN, and over all rows as one partition."""
        return list(self._relaxed())

    def _relaxed(self) -> Iterator[Variant]:
        for each in self.clause.definitions:
            left = {label: held for label, held in self.bound.conditions.items() if label != each.label.canonical}
            text = f"{each.label} AS {self.clause.text[slice(*each.span)]}"
            yield self._variant("condition", text, replace(self.bound, conditions=left))
        if self.bound.within is not None:
            yield self._variant("window", "WITHIN", replace(self.bound, within=None))
        if self.bound.partition_by:
            text = f"PARTITION BY {', '.join(self.bound.partition_by)}"
            yield self._variant("key", text, replace(self.bound, partition_by=()))

    def loosened(self) -> Variant | None:
        """The clause with any rows between its parts."""
        parts = _parts(self.bound.pattern)
        if len(parts) < 2:
            return None
        label = free_name("X", self.bound.labels)
        any_rows = p.Repeat(p.Single(label), 0, None, greedy=False)
        loose = [part for pair in pairwise(parts) for part in (pair[0], any_rows)] + [parts[-1]]
        bound = replace(self.bound, pattern=p.Sequence(tuple(loose)), labels=(*self.bound.labels, label))
        return self._variant("join", "", bound)

    def _variant(self, kind: str, text: str, bound: BoundClause) -> Variant:
        if bound.skip in (SkipTo.FIRST, SkipTo.LAST):  # a part may lack the label
            bound = replace(bound, skip=SkipTo.PAST_LAST_ROW, skip_labels=None)
        search = RowSearch(bound, self.table.schema, replace(self.options, max_matches=MOST_MATCHES))
        return Variant(kind, text, lambda: search.count(self.table))


def _parts(pattern: p.Pattern) -> tuple[p.Pattern, ...]:
    return pattern.parts if isinstance(pattern, p.Sequence) else (pattern,)
