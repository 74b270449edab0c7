"""SASE's synthetic events and queries (SASE §5.1, its tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.errors import DataError
from cepheid.simulate.simulation import Simulation, as_function, check_at_least, names_by_code


def sase_events(
    events: int = 1_000_000,
    *,
    types: int = 20,
    zipf: float = 0.0,
    domains: Sequence[int] = (1_000, 20, 10, 100, 10_000),
    seed: int = 0,
) -> Simulation:
    """Events of types T0, T1, ... at times 0, 1, 2, ..., attribute i uniform on 0 .. domains[i-1] - 1.

    With `zipf` > 0, type Tk occurs in proportion to 1 / (k + 1)**zipf; the paper used 0 (all alike).
    One event per instant, so that a window of n time units holds n events, as the paper counts windows.
    """
    check_at_least("events", events, 1)
    check_at_least("types", types, 1)
    check_at_least("zipf", zipf, 0)
    for position, domain in enumerate(domains, start=1):
        check_at_least(f"domains[{position - 1}] (the number of values of attr{position})", domain, 1)
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {
        "ts": pa.array(np.arange(events, dtype=np.int64)),
        "type": names_by_code(_draw_types(rng, events, types, zipf), [f"T{k}" for k in range(types)]),
    }
    for position, domain in enumerate(domains, start=1):
        columns[f"attr{position}"] = pa.array(rng.integers(0, domain, events, dtype=np.int64))
    query = sase_query(length=min(3, types), types=types, domains=domains, seed=None) if domains else ""
    skew = f", Zipf {zipf}" if zipf else ""
    description = f"SASE's synthetic events: {types} types{skew}, {len(domains)} attributes"
    return Simulation(pa.table(columns), None, description, query)


@dataclass(frozen=True, kw_only=True)
class SaseQuery:
    """A query of SASE's table 2: L, EP, IP, SP, N and W in that order, event types drawn without repetition.

    Equivalence tests use the first attributes, the other predicates the later ones. A negation falls into any of
    the gaps, the start and the end included. `seed=None` takes T0, T1, ... in order instead of drawing them.

    >>> sase_query(length=3, window=500, seed=None)
    'PATTERN SEQ(T0 e1, T1 e2, T2 e3) WHERE [attr1] WITHIN 500'
    """

    length: int = 3
    equivalence_tests: int = 1
    inequalities: int = 0
    simple_predicates: int = 0
    negations: int = 0
    window: int = 10_000
    types: int = 20
    zipf: float = 0.0
    domains: Sequence[int] = (1_000, 20, 10, 100, 10_000)
    seed: int | None = 0

    def __call__(self) -> str:
        """The text."""
        check_at_least("length", self.length, 1)
        check_at_least("window", self.window, 1)
        if self.length + self.negations > self.types:
            wanted = f"{self.length} + {self.negations} components, each of its own type"
            raise DataError(f"simulate: a query of {wanted}, has only {self.types} types", hint="raise types")
        if self.equivalence_tests > len(self.domains):
            raise DataError(
                f"simulate: {self.equivalence_tests} equivalence tests on {len(self.domains)} attributes",
                hint="give more domains",
            )
        if self.inequalities and self.length < 2:
            raise DataError("simulate: an inequality compares two events, length is 1", hint="use length 2 or more")
        rng = np.random.default_rng(0 if self.seed is None else self.seed)
        weights = _zipf_weights(self.types, self.zipf)
        chosen = (
            np.arange(self.types) if self.seed is None else rng.choice(self.types, self.types, replace=False, p=weights)
        )

        gaps: list[list[str]] = [[] for _ in range(self.length + 1)]
        for number, gap in enumerate(rng.integers(0, self.length + 1, self.negations), start=1):
            gaps[gap].append(f"!(T{chosen[self.length + number - 1]} n{number})")
        components = list(gaps[0])
        for step in range(self.length):
            components += [f"T{chosen[step]} e{step + 1}", *gaps[step + 1]]

        conditions = [f"[attr{position}]" for position in range(1, self.equivalence_tests + 1)]
        for _ in range(self.inequalities):
            first, second = sorted(rng.choice(self.length, 2, replace=False) + 1)
            attribute = _later_attribute(rng, self.equivalence_tests, self.domains)
            conditions.append(f"e{first}.attr{attribute} < e{second}.attr{attribute}")
        for _ in range(self.simple_predicates):
            attribute = _later_attribute(rng, self.equivalence_tests, self.domains)
            conditions.append(
                f"e{rng.integers(1, self.length + 1)}.attr{attribute} < {max(1, self.domains[attribute - 1] // 2)}"
            )
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"PATTERN SEQ({', '.join(components)}){where} WITHIN {self.window}"


sase_query = as_function(SaseQuery)


def expected_selectivity(length: int, window: int, types: int, domain: int) -> float:
    """Expected results per event of a query with one equivalence test and no negation, in the middle of the stream.

    Every event ends comb(window - 1, length - 1) choices of earlier ones. SASE's formula 1 counts the choices inside
    one batch of `window` events instead, and so gives 1 / length of this: 0.2 where this gives 0.6.

    >>> round(expected_selectivity(length=3, window=10_000, types=20, domain=100), 2)
    0.62
    """
    return comb(window - 1, length - 1) / float(types**length * domain ** (length - 1))


def _draw_types(rng: np.random.Generator, events: int, types: int, zipf: float) -> NDArray[np.integer]:
    if zipf == 0.0:
        return rng.integers(0, types, events, dtype=np.int32)
    cumulated = np.cumsum(_zipf_weights(types, zipf))
    return np.minimum(np.searchsorted(cumulated, rng.random(events), side="right"), types - 1)


def _zipf_weights(types: int, zipf: float) -> NDArray[np.float64]:
    weights = 1.0 / np.arange(1, types + 1, dtype=np.float64) ** zipf
    return np.asarray(weights / weights.sum())


def _later_attribute(rng: np.random.Generator, taken: int, domains: Sequence[int]) -> int:
    """An attribute that no equivalence test fixes: comparing a fixed one would select nothing or everything."""
    if taken >= len(domains):
        raise DataError(
            f"simulate: all {len(domains)} attributes are equivalence tests", hint="leave one for the other predicates"
        )
    return int(rng.integers(taken, len(domains))) + 1
