"""Aggregates over groups of events, one entry each for all languages: what they mean, what kernels keep for them, how
columns compute them.

A kernel keeps primitive registers for each argument, over the values that are not NULL unless said otherwise: `count`,
`sum`, `least`, `greatest`, `spread` (the sum of squared distances from the mean, kept by Welford's recurrence), and
`first` and `last`, which are the first and the last value even where that is NULL. An aggregate names the registers it
needs and says how its value follows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cepheid.language.schema import DataType
from cepheid.language.whole import within_64_bits

REGISTERS = ("spread", "sum", "least", "greatest", "first", "last", "count")


@dataclass(frozen=True)
class Aggregate:
    """An aggregate. `value` and `null` are formulas over its registers, and `known`: how many values it has seen."""

    name: str
    of: Callable[[Sequence[Any]], Any]  # its value for a list of values, None for NULL
    keeps: tuple[str, ...]
    value: str
    null: str = "{known} == 0"
    result: DataType | None = None  # None: that of the argument
    numbers: bool = False  # does it take numbers only?
    skips_null: bool = True
    counts: bool = False  # does it count events, too, and is it zero where there are none?
    column: str | None = None  # Arrow's name for it, where Arrow knows it
    aliases: tuple[str, ...] = ()

    def source(self, registers: Mapping[str, str]) -> tuple[str, str]:
        """Its value and whether that is NULL, as source over the registers.

        >>> AGGREGATES["avg"].source({"sum": "s", "count": "n", "known": "n"})
        ('(s / n if n != 0 else nan)', 'n == 0')
        """
        return self.value.format(**registers), self.null.format(**registers)

    def over(self, values: Sequence[object]) -> Any:
        """Its value for the values of a group, NULL as None.

        >>> AGGREGATES["avg"].over([1, None, 2]), AGGREGATES["count"].over([None]), AGGREGATES["last"].over([1, None])
        (1.5, 0, None)
        """
        known = [value for value in values if value is not None] if self.skips_null else list(values)
        return self.of(known) if known or self.counts else None


def _sum(values: Sequence[Any]) -> Any:
    """NULL where a whole sum does not fit 64 bits."""
    return within_64_bits(sum(values))


def _average(values: Sequence[object]) -> float | None:
    """The sum as a fraction, by the number; NULL where the sum is."""
    total = _sum(values)
    return None if total is None else float(total) / len(values)


def _variance(values: Sequence[Any], less: int) -> float | None:
    """The variance of a sample (`less` 1) or of all (0), in the steps in which kernels take it."""
    mean, spread = float(values[0]), 0.0
    for index, value in enumerate(map(float, values[1:]), 2):
        distance = value - mean
        mean += distance / index
        spread += distance * (value - mean)
    return spread / (len(values) - less) if len(values) > less else None


def _deviation(values: Sequence[object], less: int) -> float | None:
    found = _variance(values, less)
    return None if found is None else found**0.5


def _spread(
    names: tuple[str, ...], of: Callable[[Sequence[Any], int], float | None], less: int, value: str
) -> Aggregate:
    """An aggregate of how far values lie apart; `value` is its formula over the variance."""
    name, *aliases = names
    variance = f"({{spread}} / ({{count}} - {less}))"
    return Aggregate(
        name,
        lambda values: of(values, less),
        ("spread", "count"),
        f"({value.format(variance)} if {{count}} > {less} else nan)",
        f"{{count}} <= {less}",
        result=DataType.FLOAT,
        numbers=True,
        aliases=tuple(aliases),
    )


AGGREGATES: dict[str, Aggregate] = {
    name: each
    for each in (
        Aggregate("count", len, ("count",), "{count}", "False", DataType.INT, counts=True, column="count"),
        Aggregate("sum", _sum, ("sum",), "{sum}", numbers=True, column="sum"),
        Aggregate(
            "avg",
            _average,
            ("sum", "count"),
            "({sum} / {count} if {count} != 0 else nan)",
            result=DataType.FLOAT,
            numbers=True,
            column="mean",
            aliases=("mean",),
        ),
        Aggregate("min", min, ("least",), "{least}", column="min"),
        Aggregate("max", max, ("greatest",), "{greatest}", column="max"),
        Aggregate("first", lambda values: values[0], ("first",), "{first}", skips_null=False),
        Aggregate("last", lambda values: values[-1], ("last",), "{last}", skips_null=False),
        _spread(("stddev", "stddev_samp"), _deviation, 1, "{} ** 0.5"),
        _spread(("stddev_pop",), _deviation, 0, "{} ** 0.5"),
        _spread(("variance", "var_samp"), _variance, 1, "{}"),
        _spread(("var_pop",), _variance, 0, "{}"),
    )
    for name in (each.name, *each.aliases)
}
