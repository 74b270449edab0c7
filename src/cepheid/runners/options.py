"""The options of `match`, shared by all runners."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from cepheid.errors import CepheidError, closest

# What `match` takes beyond the roles of columns; everything else is a misspelling.
HINTS = (
    "order",
    "pushdown",
    "equivalence",
    "max_matches",
    "max_partial_matches",
    "truncate",
    "merge",
    "method",
    "probabilities",
    "uncertainty",
    "unit",
    "output",
    "confidence",
    "missing_last",
    "max_width",
    "max_cost",
    "learn",
)

# Options that say something of imprecise times only, and the numbers among them with what they may be.
IMPRECISE = ("probabilities", "unit", "confidence", "max_width", "max_cost")
RANGES = {"confidence": (0.0, 1.0), "max_width": (1.0, math.inf), "max_cost": (1.0, math.inf)}


@dataclass(frozen=True)
class Options:
    """How a query is to be run: the roles of columns, the model, the engine and its hints."""

    time: str = "ts"
    type: str | None = "type"
    time_unit: str | None = None
    tiebreak: tuple[str, ...] = ()
    lower: str | None = None
    upper: str | None = None
    model: Any = None
    engine: str = "auto"
    scoring: str = "exact"
    hints: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any], more: Sequence[str] = ()) -> Options:
        """The options given to `match`; an unknown one is an error that proposes a known one."""
        roles = {name for name in cls.__dataclass_fields__ if name != "hints"}
        known = [*roles, *HINTS, *more]
        for name in keywords:
            if name not in known:
                guess = closest(name, known)
                hint = f"did you mean {guess}?" if guess else f"the options are {', '.join(sorted(known))}"
                raise CepheidError(f"no option '{name}'; {hint}")
        given = {name: value for name, value in keywords.items() if name in roles}
        if isinstance(given.get("tiebreak"), str):
            given["tiebreak"] = (given["tiebreak"],)
        given["tiebreak"] = tuple(given.get("tiebreak", ()))
        options = cls(**given, hints={name: value for name, value in keywords.items() if name not in roles})
        options.check_imprecise()
        return options

    def check_imprecise(self) -> None:
        """Options for imprecise times: are they numbers that make sense, and are there imprecise times?"""
        given = {name: self.hints[name] for name in IMPRECISE if self.hints.get(name) is not None}
        for name, (least, most) in RANGES.items():
            value = given.get(name, least)
            if not isinstance(value, Real) or isinstance(value, bool) or not least <= float(value) <= most:
                wanted = f"from {least:g} to {most:g}" if most < math.inf else f"of at least {least:g}"
                raise CepheidError(f"{name}={value!r} is not a number {wanted}")
        if given and self.lower is None and self.upper is None and self.hints.get("uncertainty") is None:
            hint = "pass lower='...' and upper='...', or uncertainty=..."
            raise CepheidError(f"{next(iter(given))} is for imprecise times", hint=hint)

    def roles(self) -> dict[str, Any]:
        """The roles of columns, as Schema.from_arrow takes them."""
        return {
            "time": self.time,
            "type": self.type,
            "time_unit": self.time_unit,
            "tiebreak": self.tiebreak,
            "lower": self.lower,
            "upper": self.upper,
        }
