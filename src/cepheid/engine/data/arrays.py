"""The arrays that kernels take and return, by the type of their elements and the number of their dimensions.

Compiled signatures come from these names (`kernels.signatures`), so each stands for one layout: contiguous, in C order.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt

READ_ONLY = "read-only"

Bools: TypeAlias = Annotated[npt.NDArray[np.bool_], 1]
Uint8s: TypeAlias = Annotated[npt.NDArray[np.uint8], 1]
Uint8Rows: TypeAlias = Annotated[npt.NDArray[np.uint8], 2]
Int32s: TypeAlias = Annotated[npt.NDArray[np.int32], 1]
Int64s: TypeAlias = Annotated[npt.NDArray[np.int64], 1]
ReadOnlyInt64s: TypeAlias = Annotated[npt.NDArray[np.int64], 1, READ_ONLY]  # may be Arrow's own memory
Int64Rows: TypeAlias = Annotated[npt.NDArray[np.int64], 2]
Float64s: TypeAlias = Annotated[npt.NDArray[np.float64], 1]
Float64Rows: TypeAlias = Annotated[npt.NDArray[np.float64], 2]
