"""Spark's daemon of Python workers, which imports what workers need before it makes any.

Spark's own daemon is a process that is copied for each worker, and each of these imports NumPy, PyArrow, pandas and
numba for itself: 0.9 s of processor time in each of the four that a small stream starts. Copies of a process that has
imported them share them. `start_session` runs this module where workers run the same Python as the driver.
"""

from __future__ import annotations

import gc

from pyspark import daemon

import cepheid.runners.spark.shard  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # what is shared stays so: a collection writes to all that it looks at
    daemon.manager()
