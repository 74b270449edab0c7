"""Score tables as arrays: what kernels look scores up in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.model.gap import Floats


class TableArrays(NamedTuple):
    """Tables behind each other; table k owns knots first_knot[k]..first_knot[k+1]-1, and its buckets likewise.

    buckets[b] is the last knot (counted within its table) at or before the beginning of bucket b. Slopes belong to the
    interval that begins at their knot. In a `direct` table, knot i lies at time i.
    """

    knots: Floats
    values: Floats
    slopes: Floats
    maxima: Floats
    maxima_slopes: Floats
    buckets: npt.NDArray[np.int32]
    first_knot: npt.NDArray[np.int64]
    first_bucket: npt.NDArray[np.int64]
    buckets_per_time: Floats
    logs: Floats
    direct: npt.NDArray[np.int64]
