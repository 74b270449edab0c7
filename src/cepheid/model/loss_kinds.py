"""How often is an event lost? One number, or one by the value of an attribute, or one by the hour of the day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.errors import ModelError

HOURS = 24


@dataclass(frozen=True)
class ByAttribute:
    """Loss by the value of an attribute, such as the reader.

    A missing event has no attributes, so the value is known only where the query fixes it (`y.reader = 'B'`);
    elsewhere `default` holds, and without one the model cannot score the component.
    """

    attribute: str
    losses: Mapping[object, float]
    default: float | None = None

    def __post_init__(self) -> None:
        if not self.losses and self.default is None:
            raise ModelError(f"loss by {self.attribute!r} names no value and no default")
        for value, loss in self.losses.items():
            check_loss(loss, f"{self.attribute}={value!r}")
        if self.default is not None:
            check_loss(self.default, f"{self.attribute}, default")
        object.__setattr__(self, "losses", {value: float(loss) for value, loss in self.losses.items()})


@dataclass(frozen=True)
class ByHour:
    """Loss by the hour of the day: each number holds from its hour on, the last one until midnight.

    A missing event's time is not known: its loss is that of the hour in which the middle of its gap lies, at the
    beginning of a pattern that of the first event seen, and at its end that of the last one. Hours are those of the
    time column, UTC for timestamps.

    >>> ByHour({0: 0.1, 18: 0.5}).at(17), ByHour({0: 0.1, 18: 0.5}).at(23)
    (0.1, 0.5)
    """

    losses: Mapping[int, float]

    def __post_init__(self) -> None:
        if not isinstance(self.losses, Mapping) or 0 not in self.losses:
            raise ModelError(
                f"loss by hour: {self.losses!r} has no value from midnight on", hint="as in ByHour({0: 0.1, 18: 0.5})"
            )
        for hour, loss in self.losses.items():
            if not isinstance(hour, int) or not 0 <= hour < HOURS:
                raise ModelError(
                    f"loss by hour: {hour!r} is not an hour of the day", hint="use whole numbers from 0 to 23"
                )
            check_loss(loss, f"{hour}:00")
        object.__setattr__(self, "losses", {hour: float(self.losses[hour]) for hour in sorted(self.losses)})

    def at(self, hour: int) -> float:
        """The loss in one hour of the day."""
        return self.losses[max(begin for begin in self.losses if begin <= hour)]

    @property
    def mean(self) -> float:
        """The loss of a day whose hours are alike."""
        return sum(map(self.at, range(HOURS))) / HOURS

    @classmethod
    def from_hours(cls, losses: Sequence[float]) -> ByHour:
        """From 24 numbers; hours that are like the one before them are not named."""
        return cls({hour: loss for hour, loss in enumerate(losses) if hour == 0 or loss != losses[hour - 1]})


Loss = float | ByAttribute | ByHour


def check_loss(loss: Any, where: str) -> None:
    """A loss is a probability below 1."""
    is_number = isinstance(loss, (int, float, np.integer, np.floating)) and not isinstance(loss, bool)
    if not (is_number and math.isfinite(loss) and 0.0 <= loss < 1.0):
        percent = is_number and 2.0 <= loss < 100.0
        hint = f"did you mean {loss / 100:g}?" if percent else "a probability below 1, such as 0.05"
        raise ModelError(f"loss of {where}: {loss!r} is outside [0, 1)", hint=hint)


def loss_to_json(loss: Loss) -> Any:
    """A loss as a JSON value."""
    if isinstance(loss, ByHour):
        return {"by_hour": [[hour, each] for hour, each in loss.losses.items()]}
    if isinstance(loss, ByAttribute):
        for value in loss.losses:
            if not isinstance(value, (str, int, float)):
                raise ModelError(f"loss by {loss.attribute!r}: the value {value!r} cannot be saved as JSON")
        # Pairs, not an object: JSON keys are strings, and reader 7 is not reader "7".
        pairs = [[value, each] for value, each in loss.losses.items()]
        return {"attribute": loss.attribute, "losses": pairs, "default": loss.default}
    return loss


def loss_from_json(value: Any) -> Loss:
    """The loss that `loss_to_json` described."""
    if isinstance(value, Mapping) and set(value) == {"by_hour"}:
        return ByHour({int(hour): float(each) for hour, each in value["by_hour"]})
    if isinstance(value, Mapping):
        if not isinstance(value["attribute"], str) or set(value) != {"attribute", "losses", "default"}:
            raise ModelError(f"{value!r} is not a loss by attribute", hint="it has attribute, losses and default")
        return ByAttribute(value["attribute"], dict(value["losses"]), value["default"])
    check_loss(value, "a component")
    return float(value)


def show_loss(loss: Loss) -> str:
    """A loss in words."""
    if isinstance(loss, ByHour):
        return "from " + ", ".join(f"{hour}:00 {each:.4g}" for hour, each in loss.losses.items())
    if isinstance(loss, ByAttribute):
        default = f", else {loss.default:.4g}" if loss.default is not None else ""
        return f"by {loss.attribute}: " + ", ".join(f"{v} {each:.4g}" for v, each in loss.losses.items()) + default
    return f"{loss:.4g}"
