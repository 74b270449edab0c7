"""Why a Flink pattern finds nothing, or too little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.diagnose.diagnosis import ComponentCount, ConditionCount
from cepheid.diagnose.patterns import MOST_EVENTS, MOST_MATCHES, Variant
from cepheid.diagnose.relax import thinned
from cepheid.errors import QueryError
from cepheid.language.flink.pattern import NEGATIVE, NO_SKIP, Contiguity, Pattern, condition_text, part_text
from cepheid.runners.flink import FlinkLanguage
from cepheid.runners.options import FlinkOptions


class FlinkSubject:
    """A pattern over a table in memory."""

    between = "use followed_by instead of next, and leave consecutive() out"

    def __init__(self, pattern: Pattern, table: pa.Table, options: FlinkOptions, most: int | None = None) -> None:
        self.pattern = pattern
        self.table, self.sample = thinned(table, options.partition_by, most or MOST_EVENTS)
        self.options = replace(options, partial=False)
        self.text, self.events = str(pattern), table.num_rows

    def components(self) -> tuple[ComponentCount, ...]:
        """How many events pass the condition of each step; of one that looks back, how many there are."""
        return tuple(self._component(step) for step in self.pattern.steps())

    def _component(self, step: Pattern) -> ComponentCount:
        assert step.name is not None
        conditions: tuple[ConditionCount, ...] = ()
        passed = self.table.num_rows
        if step.condition is not None:
            text = condition_text(step.condition).removeprefix(".")
            try:
                passed = self._count(replace(Pattern.begin(step.name), condition=step.condition))
            except QueryError:  # it speaks of other steps, which this pattern lacks
                text += " (looks back at other events)"
            conditions = (ConditionCount(text, passed),)
        negative = step.contiguity in NEGATIVE
        return ComponentCount(step.name, step.name, negative, self.table.num_rows, conditions, 0, passed)

    def matches(self) -> int:
        """How many matches there are."""
        return self._count(self.pattern)

    def beginnings(self) -> Sequence[Variant]:
        """The pattern cut off behind each of its steps and groups."""
        return list(self._beginnings())

    def _beginnings(self) -> Iterator[Variant]:
        parts = self.pattern.chain()
        for number, part in enumerate(parts):
            last = number + 1 == len(parts)
            if last or part.contiguity is not Contiguity.NOT_FOLLOW or self.pattern.window is not None:
                cut = part if last else replace(part, window=self.pattern.window, skip=NO_SKIP)
                yield self._variant("join", "".join(map(part_text, parts[: number + 1])), cut)

    def relaxed(self) -> Sequence[Variant]:
        """The pattern without one condition, without the window, and over all events as one partition."""
        return list(self._relaxed())

    def _relaxed(self) -> Iterator[Variant]:
        parts = self.pattern.chain()
        for number, part in enumerate(parts):
            if part.condition is not None:
                text = f"{part.name}: {condition_text(part.condition).removeprefix('.')}"
                changed = (*parts[:number], replace(part, condition=None), *parts[number + 1 :])
                yield self._variant("condition", text, _linked(changed))
        if self.pattern.window is not None and self.pattern.contiguity is not Contiguity.NOT_FOLLOW:
            text = f"within({self.pattern.window!r})"
            yield self._variant("window", text, replace(self.pattern, window=None))
        if self.options.partition_by:
            keys = ", ".join(self.options.partition_by)
            options = replace(self.options, partition_by=())
            yield self._variant("key", f"partition_by={keys}", self.pattern, options)

    def loosened(self) -> Variant | None:
        """The pattern with followed_by in the place of next."""
        parts = self.pattern.chain()
        if not any(part.contiguity is Contiguity.STRICT and part.previous is not None for part in parts):
            return None
        loose = [
            replace(part, contiguity=Contiguity.RELAXED) if part.contiguity is Contiguity.STRICT and number else part
            for number, part in enumerate(parts)
        ]
        return self._variant("join", "", _linked(loose))

    def _variant(self, kind: str, text: str, pattern: Pattern, options: FlinkOptions | None = None) -> Variant:
        asked = options or self.options
        return Variant(kind, text, lambda: self._count(pattern, replace(asked, max_matches=MOST_MATCHES)))

    def _count(self, pattern: Pattern, options: FlinkOptions | None = None) -> int:
        asked = options or self.options
        return FlinkLanguage(pattern).bind(self.table.schema, asked).count(self.table)


def _linked(parts: Sequence[Pattern]) -> Pattern:
    """Parts in order as one pattern."""
    found: Pattern | None = None
    for part in parts:
        found = replace(part, previous=found)
    assert found is not None
    return found
