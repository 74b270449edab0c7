"""Charts of results and models, for notebooks and files: they open offline.

cepheid.plot.timeline(matches)
cepheid.plot.calibration(matches, truth).save("calibration.svg")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.draw.chart import Chart
from cepheid.errors import CepheidError, DataError
from cepheid.report import charts
from cepheid.report.matches import Shown, keys_of, numbers, truth_of
from cepheid.report.matches import calibration as measured
from cepheid.runners.tables import as_local

__all__ = ["Chart", "calibration", "gaps", "over_time", "probabilities", "timeline"]

_WIDTH = 640


def timeline(
    matches: object,
    *,
    first: int = 0,
    limit: int = charts.ROWS,
    time: str = "ts",
    type: str | None = "type",
    key: str | Sequence[str] = (),
) -> Chart:
    """One row per match from the `first` on, with its events as dots; those that were not seen are hollow.

    `time`, `type` are the names of these columns, as they were passed to `match`; `key` names the attributes that tell
    matches apart.
    """
    shown = _shown(matches, time, type, (key,) if isinstance(key, str) else tuple(key))
    part = Shown(shown.result.slice(first, limit), time, type, keys=shown.keys)
    if not part.result.num_rows:
        raise DataError(f"there are no matches to draw from number {first} on")
    total = shown.result.num_rows
    name = f"Timeline of matches {first + 1} to {first + part.result.num_rows} of {total:,}"
    chart = charts.timeline(part, interactive=False).properties(width=_WIDTH, title=name)
    return Chart(chart, name)


def over_time(matches: object) -> Chart:
    """How many matches ended when."""
    shown = _shown(matches)
    name = f"{shown.result.num_rows:,} matches over time"
    return Chart(charts.match_counts(shown).properties(width=_WIDTH, title=name), name)


def probabilities(matches: object, threshold: float | None = None) -> Chart:
    """How many matches are how likely."""
    shown = _shown(matches)
    likelihood = _likelihood(shown)
    name = f"Distribution of the {likelihood} of {shown.result.num_rows:,} matches"
    return Chart(charts.likelihoods(shown, threshold).properties(width=_WIDTH, title=name), name)


def calibration(matches: object, truth: object, *, key: str | None = None, column: str | None = None) -> Chart:
    """Reported probabilities against the share that was true: calibrated ones are on the diagonal.

    `truth` says which matches are real: a boolean for each, or by the attribute `key` of their events, as a mapping or
    as a table with this column and a boolean one, `column`.

    >>> import pyarrow as pa
    >>> result = pa.table({"match_start": [1, 2], "match_end": [3, 4], "probability": [0.9, 0.1]})
    >>> print(calibration(result, [True, False]).name)
    2 matches, 1 of them real: calibration error 0.100, Brier score 0.010
    """
    shown = _shown(matches)
    likelihood = _likelihood(shown)
    real = _real(shown, truth, key, column)
    found = measured(numbers(shown.result.column(likelihood)), real)
    name = (
        f"{len(real):,} matches, {int(real.sum()):,} of them real: "
        f"calibration error {found.error:.3f}, Brier score {found.brier:.3f}"
    )
    return Chart(charts.reliability(found, likelihood).properties(width=360, height=360, title=name), name)


def gaps(model: Any) -> Chart:
    """How soon events come, by a model; the same as `model.plot()`."""
    chart: Chart = model.plot()
    return chart


def _shown(matches: object, time: str = "ts", type: str | None = "type", keys: tuple[str, ...] = ()) -> Shown:
    local = as_local(matches)
    if local is None:
        hint = "bring a part of it here first, for example with .limit(1000).toArrow()"
        raise DataError(f"a pyarrow, pandas or polars table is expected, not {matches.__class__.__name__}", hint=hint)
    if "match_start" not in local.arrow.column_names:
        raise DataError("this table is not a result of match(): it has no column 'match_start'")
    return Shown(local.arrow, time, type, keys=keys)


def _likelihood(shown: Shown) -> str:
    if shown.likelihood is None:
        hint = "match with a model, or with imprecise times"
        raise DataError("these matches have no probability and no confidence", hint=hint)
    return shown.likelihood


def _real(shown: Shown, truth: object, key: str | None, column: str | None) -> npt.NDArray[np.bool_]:
    """Which matches are real."""
    count = shown.result.num_rows
    table = None if isinstance(truth, Mapping) else as_local(truth)
    if table is not None and key is not None:
        truth = truth_of(table.arrow, key, column or "")
    if isinstance(truth, Mapping):
        if key is None:
            raise CepheidError("truth by key needs the name of the key", hint="pass key='...'")
        return np.array([bool(truth.get(value, False)) for value in keys_of(shown, key)], bool)
    values = np.asarray(truth, bool)
    if values.shape != (count,):
        raise DataError(f"there are {count:,} matches, but {values.size:,} values of truth")
    return values
