"""The options of `match`, shared by all runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
        return cls(**given, hints={name: value for name, value in keywords.items() if name not in roles})

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
