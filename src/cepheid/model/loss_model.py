"""What does a user say about loss and timing? The Model: loss rates and gap distributions by component."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cepheid.errors import ModelError, closest
from cepheid.model.check import Check
from cepheid.model.distributions import NORMALISED_WITHIN, Uniform, is_built_in
from cepheid.model.gap import GapDistribution, check_distribution, distribution_from_json, distribution_to_json
from cepheid.model.loss_kinds import ByAttribute, ByHour, Loss, check_loss, loss_from_json, loss_to_json, show_loss

FORMAT = "cepheid-model"
VERSION = 4
# Version 1 knew neither shares of components without a gap nor their intervals, version 2 no losses by the hour,
# version 3 neither notes nor gaps beyond the longest one of a histogram.
READABLE = (1, 2, 3, 4)
# The key of a loss that holds for every component not named itself.
EVERY_OTHER = "*"
# In the key of a gap: `z after y` is the gap of z counted from the negated y, where y happened.
AFTER = " after "


@dataclass(frozen=True)
class ComponentModel:
    """What scores need to know of one component."""

    loss: float
    gap: GapDistribution


@dataclass(frozen=True)
class Model:
    """Loss and gaps of a query's components.

    `loss` is one number, or a number (or `ByAttribute`, or `ByHour`) per variable, where "*" stands for all others, or
    one `ByAttribute` or `ByHour` for all. `gaps` gives, per variable, the time from the last positive component before
    it; for components at the beginning of the pattern it runs from the opening of the window, and is uniform over the
    window unless given. A gap named "z after y" runs from the negated component y, where that happened: the exit waits
    for the payment. `happens` says how often a component without a gap happens at all, which `scoring="posterior"` must
    know of the first one. `goes_on` says how often trips go on to a component or past it: where the last events of a
    trip are missing, it may have ended before (1 unless given). Components happen and are lost independently of each
    other, unless `histories` says how often which of some had happened where none was seen between two that were:
    {"b c, d": {"b c": 0.3, "b": 0.1, "": 0.6}} is for b and c before d. `unit` says what the gaps count ("seconds");
    without it they count what the time column counts, and seconds for timestamps. `loss_intervals` and
    `happens_intervals` are confidence intervals from a fit, and `notes` what the history could not tell or does not
    fit, for reading only.

    >>> from cepheid.model.distributions import Exponential
    >>> model = Model(loss={"y": 0.1, "*": 0.05}, gaps={"y": Exponential(mean=60, happens=0.9)}, unit="seconds")
    >>> model.for_component("y")
    ComponentModel(loss=0.1, gap=Exponential(mean=60.0, happens=0.9))
    >>> print(model)
    loss and gap model (gaps in seconds)
    component   loss   mean gap   happens   gap
    y           0.1    60         0.9       Exponential(mean=60)
    *           0.05
    """

    loss: Loss | Mapping[str, Loss] = 0.0
    gaps: Mapping[str, GapDistribution] = field(default_factory=dict)
    unit: str | None = None
    loss_intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    happens: Mapping[str, float] = field(default_factory=dict)
    happens_intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    goes_on: Mapping[str, float] = field(default_factory=dict)
    histories: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", _checked_losses(self.loss))
        object.__setattr__(self, "gaps", _checked_gaps(self.gaps))
        if self.unit is not None and not (isinstance(self.unit, str) and self.unit):
            raise ModelError(f"unit {self.unit!r} is not the name of a unit", hint="use 'seconds', for example")
        object.__setattr__(self, "loss_intervals", _checked_intervals(self.loss_intervals, "loss"))
        object.__setattr__(self, "happens_intervals", _checked_intervals(self.happens_intervals, "share"))
        object.__setattr__(self, "happens", _checked_shares("happens", self.happens))
        object.__setattr__(self, "goes_on", _checked_shares("goes_on", self.goes_on))
        object.__setattr__(self, "histories", _checked_histories(self.histories))
        object.__setattr__(self, "notes", _checked_notes(self.notes))
        for name in self.happens.keys() & self.gaps.keys():
            raise ModelError(
                f"happens: the gap of {name!r} already has {self.gaps[name].happens:g}",
                hint="state it in the gap alone",
            )

    def loss_of(self, name: str, fixed: Mapping[str, object] | None = None, hour: int | None = None) -> float:
        """The loss of a component; `fixed` are the attributes that the query sets to a constant on it.

        `hour` is the hour of the day, where losses depend on it; without it, the mean of the day is meant.
        """
        loss = self.loss
        if isinstance(loss, Mapping):
            if name not in loss and EVERY_OTHER not in loss:
                raise ModelError(f"the model has no loss for {name!r}", hint=_propose(name, loss, "loss"))
            loss = loss.get(name, loss.get(EVERY_OTHER, 0.0))
        if isinstance(loss, ByHour):
            return loss.mean if hour is None else loss.at(hour)
        if not isinstance(loss, ByAttribute):
            return loss
        value = (fixed or {}).get(loss.attribute)
        known = loss.losses.get(value) if value is not None else None
        if known is None:
            known = loss.default
        if known is None:
            message = f"{loss.attribute}={value!r}" if value is not None else f"no fixed {loss.attribute!r}"
            raise ModelError(
                f"the model has no loss for {name!r} with {message}", hint="give ByAttribute a default, or that value"
            )
        return known

    def gap_of(self, name: str, leading_window: float | None = None) -> GapDistribution:
        """The gap of a component; one at the beginning of the pattern may come anywhere in the `leading_window`."""
        gap = self.gaps.get(name)
        if gap is not None:
            return gap
        if leading_window is not None:
            return Uniform(0.0, leading_window, self.happens.get(name, 1.0))
        raise ModelError(f"the model has no gap distribution for {name!r}", hint=_propose(name, self.gaps, "gaps"))

    def shares_between(self, missing: Sequence[str], behind: str) -> tuple[float, ...]:
        """How often which of some components had happened, by bits, where none was seen; () if that is not known."""
        known = self.histories.get(interval_name(missing, behind))
        if known is None:
            return ()
        chosen = ([name for bit, name in enumerate(missing) if mask >> bit & 1] for mask in range(1 << len(missing)))
        return tuple(known.get(" ".join(names), 0.0) for names in chosen)

    def knows_share(self, name: str) -> bool:
        """Is it known how often a component happens at all?"""
        return name in self.gaps or name in self.happens

    @property
    def hours(self) -> tuple[int, ...]:
        """The hours at which some loss changes; none where losses do not depend on the time of day."""
        losses = self.loss.values() if isinstance(self.loss, Mapping) else [self.loss]
        return tuple(sorted({hour for each in losses if isinstance(each, ByHour) for hour in each.losses}))

    @property
    def is_fitted(self) -> bool:
        """Was it learned from a history? Then it has intervals."""
        return bool(self.loss_intervals or self.happens_intervals)

    def for_component(
        self,
        name: str,
        fixed: Mapping[str, object] | None = None,
        leading_window: float | None = None,
        hour: int | None = None,
    ) -> ComponentModel:
        """Loss and gap of a component, or a ModelError that says which of them is absent."""
        return ComponentModel(self.loss_of(name, fixed, hour), self.gap_of(name, leading_window))

    def check(self, events: object, query: object, **options: object) -> Check:
        """What the model predicts of a table of events, beside what these show: shares seen, gaps, lengths of trips.

        `str()` of the answer is a text with the deviations, `worst` the largest one, `fits` whether there is none.
        Options are those of `match`, such as `time_unit`.
        """
        # By name: the API knows models, not the other way round, and layers import downwards only.
        found: Check = importlib.import_module("cepheid.api").check_model(self, events, query, **options)
        return found

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, for `load_model`."""
        Path(path).write_text(json.dumps(model_to_json(self), indent=2, allow_nan=False) + "\n", encoding="utf-8")

    def plot(self) -> Any:
        """An altair chart of the gap densities."""
        from cepheid.model.model_chart import gap_chart  # altair is an extra

        return gap_chart(self.gaps, self.unit)

    def _rows(self) -> tuple[list[tuple[str, ...]], list[GapDistribution | None]]:
        """The model as a table, its head first, and the gap of each row below."""
        losses = self.loss if isinstance(self.loss, Mapping) else {EVERY_OTHER: self.loss}
        named = [name for name in dict.fromkeys([*losses, *self.gaps, *self.happens]) if name != EVERY_OTHER]
        rows: list[tuple[str, ...]] = [("component", "loss", "mean gap", "happens", "gap")]
        gaps: list[GapDistribution | None] = []
        for name in [*named, *([EVERY_OTHER] if EVERY_OTHER in losses else [])]:
            gap = self.gaps.get(name)
            gaps.append(gap)
            message = _show_loss(losses[name], self.loss_intervals.get(name)) if name in losses else ""
            share = gap.happens if gap is not None else self.happens.get(name)
            interval = self.happens_intervals.get(name)
            happens = "" if share is None else f"{share:.6g}" + (_show_interval(interval) if interval else "")
            shown = (f"{gap.mean:.6g}", happens, _show_gap(gap)) if gap is not None else ("", happens, "")
            rows.append((name, message, *shown))
        return rows, gaps

    def _title(self) -> str:
        return f"loss and gap model (gaps in {self.unit})" if self.unit else "loss and gap model"

    def __str__(self) -> str:
        rows, _ = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["   ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        ending = ", ".join(f"{name} {share:.4g}" for name, share in self.goes_on.items() if share < 1.0)
        going_on = [f"share of trips that go on to: {ending}"] if ending else []
        known = [
            f"of {ends.partition(', ')[0]}, where none was seen before {ends.partition(', ')[2]}, there happened: "
            + ", ".join(f"{names or 'none'} {share:.3g}" for names, share in shares.items())
            for ends, shares in self.histories.items()
        ]
        return "\n".join([self._title(), *lines, *going_on, *known, *(f"note: {each}" for each in self.notes)])

    def _repr_html_(self) -> str:
        from cepheid.model.model_html import model_html

        return model_html(self._title(), *self._rows(), self.notes)


def load_model(path: str | Path) -> Model:
    """The model that `Model.save` wrote."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"cannot read the model {str(path)!r}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{str(path)!r} is not JSON: {error}", hint="write models with Model.save") from error
    return model_from_json(value)


def model_to_json(model: Model) -> dict[str, object]:
    """The model as JSON values."""
    loss = model.loss
    return {
        "format": FORMAT,
        "version": VERSION,
        "unit": model.unit,
        "loss": {n: loss_to_json(each) for n, each in loss.items()} if isinstance(loss, Mapping) else None,
        "loss_of_all": None if isinstance(loss, Mapping) else loss_to_json(loss),
        "loss_intervals": {name: list(interval) for name, interval in model.loss_intervals.items()},
        "gaps": {name: distribution_to_json(gap) for name, gap in model.gaps.items()},
        "happens": dict(model.happens),
        "happens_intervals": {name: list(interval) for name, interval in model.happens_intervals.items()},
        "goes_on": dict(model.goes_on),
        "histories": {ends: dict(shares) for ends, shares in model.histories.items()},
        "notes": list(model.notes),
    }


def model_from_json(value: object) -> Model:
    """The model that `model_to_json` described."""
    if not isinstance(value, Mapping) or value.get("format") != FORMAT:
        raise ModelError("this JSON is not a model", hint=f'expected an object with "format": "{FORMAT}"')
    if type(value.get("version")) is not int or value["version"] not in READABLE:
        raise ModelError(
            f"the model has format version {value.get('version')!r}, this package reads {VERSION}",
            hint="fit or write it again with this version",
        )
    unknown = sorted(set(value) - _KEYS)
    if unknown:
        near = closest(unknown[0], sorted(_KEYS))
        raise ModelError(
            f"the model has {unknown[0]!r}, which this version does not know",
            hint=f"did you mean {near!r}?" if near else "fit or write it again with this version",
        )
    try:
        by_name = value["loss"]
        loss = (
            loss_from_json(value["loss_of_all"])
            if by_name is None
            else {name: loss_from_json(each) for name, each in by_name.items()}
        )
        intervals = {name: (each[0], each[1]) for name, each in value["loss_intervals"].items()}
        gaps = {name: distribution_from_json(each) for name, each in value["gaps"].items()}
        shares = {name: (each[0], each[1]) for name, each in value.get("happens_intervals", {}).items()}
        share_of = {key: value.get(key, {}) for key in ("happens", "goes_on")}
        share_of["histories"] = value.get("histories", {})
        notes = tuple(value.get("notes", ()))
        return Model(loss, gaps, value["unit"], intervals, happens_intervals=shares, notes=notes, **share_of)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError) as error:
        raise ModelError(f"the model is damaged: {error!r}", hint="fit or write it again") from error


_KEYS = frozenset(
    [
        "format",
        "version",
        "unit",
        "loss",
        "loss_of_all",
        "loss_intervals",
        "gaps",
        "happens",
        "happens_intervals",
        "goes_on",
        "histories",
        "notes",
    ]
)


def _checked_losses(loss: Any) -> Loss | dict[str, Loss]:
    if isinstance(loss, ByAttribute | ByHour):
        return loss
    if not isinstance(loss, Mapping):
        check_loss(loss, "all components")
        return float(loss)
    for name, each in loss.items():
        if not isinstance(name, str):
            raise ModelError(f"loss: {name!r} is not a variable", hint="use ByAttribute for losses by value")
        if not isinstance(each, ByAttribute | ByHour):
            check_loss(each, name)
    return {name: each if isinstance(each, ByAttribute | ByHour) else float(each) for name, each in loss.items()}


def _checked_gaps(gaps: object) -> dict[str, GapDistribution]:
    if not isinstance(gaps, Mapping):
        raise ModelError(f"gaps={gaps!r}: expected a distribution per variable", hint='as in {"y": Exponential(60)}')
    for name, gap in gaps.items():
        if not isinstance(gap, GapDistribution):
            raise ModelError(
                f"the gap of {name!r} is {gap!r}, not a distribution", hint="for example Exponential(mean=60)"
            )
        if not is_built_in(gap):
            check_distribution(gap)
    return dict(gaps)


def _checked_intervals(intervals: Mapping[str, tuple[float, float]], what: str) -> dict[str, tuple[float, float]]:
    checked = {name: (float(low), float(high)) for name, (low, high) in intervals.items()}
    for name, (low, high) in checked.items():
        if not 0.0 <= low <= high <= 1.0:
            raise ModelError(f"the confidence interval [{low:g}, {high:g}] of the {what} of {name!r} is impossible")
    return checked


def _checked_shares(argument: str, shares: object) -> dict[str, float]:
    if not isinstance(shares, Mapping):
        raise ModelError(f"{argument}={shares!r}: expected a share per variable", hint='as in {"a": 0.95}')
    for name, share in shares.items():
        is_number = isinstance(share, (int, float, np.integer, np.floating)) and not isinstance(share, bool)
        if not (is_number and 0.0 <= share <= 1.0):
            raise ModelError(f"{argument}: {share!r} of {name!r} is not a share", hint="use a number from 0 to 1")
    return {name: float(share) for name, share in shares.items()}


def interval_name(missing: Sequence[str], behind: str) -> str:
    """The key of `histories` for some components that were not seen before one that was."""
    return f"{' '.join(missing)}, {behind}"


def _checked_histories(histories: object) -> dict[str, dict[str, float]]:
    if not isinstance(histories, Mapping):
        raise ModelError(f"histories={histories!r}: expected shares by components", hint="as in {'b c, d': {'b c': 1}}")
    checked = {}
    for ends, shares in histories.items():
        names = str(ends).partition(", ")[0].split()
        known = _checked_shares(f"histories of {ends!r}", shares)
        for stated in known:
            if [name for name in names if name in stated.split()] != stated.split():
                raise ModelError(f"histories: {stated!r} names no components of {ends!r}", hint="in their order")
        if not names or abs(math.fsum(known.values()) - 1.0) > NORMALISED_WITHIN:
            raise ModelError(f"histories of {ends!r}: the shares must sum to 1")
        checked[str(ends)] = known
    return checked


def _checked_notes(notes: Any) -> tuple[str, ...]:
    if isinstance(notes, str) or not all(isinstance(each, str) for each in notes):
        raise ModelError(f"notes={notes!r}: expected a list of texts")
    return tuple(notes)


def _propose(name: str, known: Mapping[str, object], argument: str) -> str:
    near = closest(name, [each for each in known if each != EVERY_OTHER])
    if near is not None:
        return f"did you mean {near!r}?"
    return f"add {argument}={{{name!r}: ...}} to the model (it knows {', '.join(map(repr, known)) or 'none'})"


def _show_loss(loss: Loss, interval: tuple[float, float] | None) -> str:
    return show_loss(loss) + (_show_interval(interval) if interval and isinstance(loss, float) else "")


def _show_interval(interval: tuple[float, float]) -> str:
    return f" [{interval[0]:.4g}, {interval[1]:.4g}]"


def _show_gap(gap: GapDistribution) -> str:
    value = distribution_to_json(gap)
    parts = (
        f"{key}={each:.6g}" if isinstance(each, float) else f"{len(each)} {key}"
        for key, each in value.items()
        if key not in ("type", "happens")
    )
    return f"{value['type']}({', '.join(parts)})"
