"""Python workers that serve many small tasks: what they have loaded for good is kept out of garbage collection.

Spark's daemon calls `gc.collect()` after every task. With numba, PyArrow and pandas loaded that walks through about a
million objects that will never go: some 100 ms of processor time for each task of each micro-batch, more than all that
the task does. `gc.freeze` takes them out of the count; what comes later is collected as before.
"""

from __future__ import annotations

import gc
import sys

AFTER = (2, 6, 20)  # tasks; the first ones still load kernels


class _Tasks:
    seen = 0


def settle() -> None:
    """Called by every task of ours; in a worker of Spark some of the first calls freeze what is loaded by then."""
    if not in_worker():
        return
    _Tasks.seen += 1
    if _Tasks.seen in AFTER:
        gc.collect()
        gc.freeze()


def in_worker() -> bool:
    """Is this a process that Spark's daemon made? (Nobody else's garbage is ours to judge.)

    >>> in_worker()
    False
    """
    main: object = sys.modules.get("__main__")
    return str(getattr(main, "__file__", "")).endswith(("pyspark/daemon.py", "pyspark\\daemon.py"))
