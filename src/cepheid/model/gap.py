"""What is a gap distribution? The base class, the registry that lets users add their own, and the JSON form.

A gap is the time from the last positive component before an event to that event. Every distribution may be
defective: `happens` is the probability that the event comes at all, so the density integrates to `happens` and
cdf(inf) = happens (docs/semantics.md: some tags never visit a register).
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cepheid.errors import ModelError, closest

Floats = NDArray[np.float64]


class GapDistribution(ABC):
    """The time from the last positive component to an event: the base of all distributions, a user's own included.

    A subclass is a frozen dataclass of numbers (or tuples of numbers), the last of them `happens: float = 1.0`, with
    `pdf`, `cdf` and `mean`, the first two for arrays. Override `survival` when 1 - cdf loses digits, and `kinks` when
    the density jumps somewhere.
    """

    if TYPE_CHECKING:  # fields in some classes, properties in others: a body here would become a field's default

        @property
        def happens(self) -> float:
            """The probability that the event comes at all."""

        @property
        def mean(self) -> float:
            """The mean gap, given that the event comes."""

    def __post_init__(self) -> None:
        for name in _field_names(type(self)):
            object.__setattr__(self, name, _as_floats(self, name, getattr(self, name)))
        if not 0.0 <= self.happens <= 1.0:
            raise ModelError(
                f"{type(self).__name__}: happens={self.happens:g} is not a probability", hint="it must lie in [0, 1]"
            )
        self.validate()

    def validate(self) -> None:  # noqa: B027  (a subclass without limits on its parameters need not override it)
        """Raise ModelError when the parameters make no distribution."""

    @abstractmethod
    def pdf(self, t: ArrayLike) -> Floats:
        """The density at t; its integral over [0, inf) is `happens`."""

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Floats:
        """The probability that the event has come by t."""

    def survival(self, t: ArrayLike) -> Floats:
        """1 - cdf(t), the probability that it has not come by t."""
        return 1.0 - self.cdf(t)

    def kinks(self) -> tuple[float, ...]:
        """The times at which the density is not smooth; quadrature and tables are cut there."""
        return ()


D = TypeVar("D", bound=type[GapDistribution])
_REGISTRY: dict[str, type[GapDistribution]] = {}


def register_distribution(cls: D) -> D:
    """Make a distribution known by its class name, so that models that use it can be saved and loaded.

    >>> from dataclasses import dataclass
    >>> @register_distribution
    ... @dataclass(frozen=True)
    ... class Triangle(GapDistribution):
    ...     high: float
    ...     happens: float = 1.0
    ...     def pdf(self, t):
    ...         t = np.asarray(t, dtype=float)
    ...         return np.where((t >= 0) & (t <= self.high), 2 * (1 - t / self.high) / self.high, 0) * self.happens
    ...     def cdf(self, t):
    ...         return (1 - (1 - np.clip(t, 0, self.high) / self.high) ** 2) * self.happens
    ...     @property
    ...     def mean(self):
    ...         return self.high / 3
    ...     def kinks(self):
    ...         return (self.high,)
    >>> distribution_from_json({"type": "Triangle", "high": 30})
    Triangle(high=30.0, happens=1.0)
    """
    is_gap = isinstance(cls, type) and issubclass(cls, GapDistribution) and dataclasses.is_dataclass(cls)
    if not is_gap or "happens" not in _field_names(cls):
        raise ModelError(
            f"{cls!r} is not a gap distribution",
            hint="derive a frozen dataclass with a field `happens: float = 1.0` from cepheid.model.GapDistribution",
        )
    known = _REGISTRY.get(cls.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ModelError(f"a distribution named {cls.__name__!r} is already registered", hint="choose another name")
    _REGISTRY[cls.__name__] = cls
    return cls


def distribution_to_json(gap: GapDistribution) -> dict[str, Any]:
    """The distribution as JSON values.

    >>> from cepheid.model.distributions import Exponential
    >>> distribution_to_json(Exponential(mean=60, happens=0.9))
    {'type': 'Exponential', 'mean': 60.0, 'happens': 0.9}
    """
    name = type(gap).__name__
    if _REGISTRY.get(name) is not type(gap):
        raise ModelError(f"the distribution {name!r} is not registered", hint="decorate it with register_distribution")
    unset = {each.name for each in dataclasses.fields(cast(Any, gap)) if each.default == 0.0 == getattr(gap, each.name)}
    values = {each: getattr(gap, each) for each in _field_names(type(gap)) if each not in unset}
    return {"type": name} | {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def distribution_from_json(value: Mapping[str, Any]) -> GapDistribution:
    """The distribution that `distribution_to_json` wrote."""
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise ModelError(f"{value!r} is not a gap distribution", hint="expected an object with a 'type'")
    name = value["type"]
    cls = _REGISTRY.get(name)
    if cls is None:
        near = closest(name, _REGISTRY)
        known = f"did you mean {near!r}?" if near else f"known: {', '.join(sorted(_REGISTRY))}"
        raise ModelError(f"unknown distribution {name!r}", hint=f"{known} Your own need register_distribution")
    arguments: dict[str, object] = {
        key: tuple(each) if isinstance(each, list) else each for key, each in value.items() if key != "type"
    }
    try:
        return cls(**arguments)
    except TypeError as error:
        raise ModelError(f"distribution {name!r}: {error}") from error


def check_distribution(gap: GapDistribution) -> None:
    """Raise ModelError when a user's distribution is negative, decreasing, or not the integral of its density."""
    name = type(gap).__name__
    scale = gap.mean
    if not (math.isfinite(scale) and scale > 0.0):
        raise ModelError(f"{name}: the mean gap is {scale:g}", hint="it must be a positive finite number")
    kinks = [k for k in gap.kinks() if k > 0.0]
    times = np.unique(np.concatenate([[0.0], scale * np.geomspace(1e-6, 1e6, 241), kinks]))
    with np.errstate(all="ignore"):
        cumulative = np.asarray(gap.cdf(times), dtype=float)
        nodes, weights = np.polynomial.legendre.leggauss(16)
        half = np.diff(times)[:, None] / 2
        density = np.asarray(gap.pdf(times[:-1, None] + half * (nodes + 1)), dtype=float)
    if cumulative.shape != times.shape or density.shape != (len(times) - 1, len(nodes)):
        raise ModelError(f"{name}: pdf and cdf must return an array of the shape they are given")
    if not np.all(density >= 0.0):
        raise ModelError(f"{name}: the density is negative or undefined", hint="a density is at least zero everywhere")
    if not (np.all(np.diff(cumulative) >= -1e-12) and cumulative[0] >= -1e-12 and cumulative[-1] <= 1.0 + 1e-9):
        raise ModelError(f"{name}: the cdf must rise from 0 to at most 1")
    if abs(cumulative[-1] - gap.happens) > 1e-3:
        raise ModelError(
            f"{name}: not normalised, the cdf reaches {cumulative[-1]:.6g}, not happens={gap.happens:g}",
            hint="scale pdf and cdf to reach `happens`",
        )
    # The first interval is left out: a density may be infinite at zero. Between, density and cdf must agree.
    integral = (half * weights * density).sum(axis=1)
    off = np.abs(integral - np.diff(cumulative))[1:]
    if off.max() > 1e-3:
        at = times[1 + int(off.argmax())]
        raise ModelError(f"{name}: pdf and cdf disagree near t={at:g}", hint="the cdf must be the integral of the pdf")


def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(cls))


def _as_floats(owner: GapDistribution, name: str, value: Any) -> float | tuple[float, ...]:
    """A field as floats, so that equal distributions are equal and hash alike however they were written."""
    where = f"{type(owner).__name__}: {name}={value!r}"
    try:
        numbers = tuple(float(each) for each in value) if isinstance(value, (tuple, list, np.ndarray)) else float(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where} is not a number") from error
    for each in numbers if isinstance(numbers, tuple) else (numbers,):
        if not math.isfinite(each):
            raise ModelError(f"{where} is not finite")
    return numbers
