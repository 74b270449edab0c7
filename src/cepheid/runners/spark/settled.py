"""Python workers that serve many small tasks: what costs them time in each task and need not.

**Garbage.** Spark's daemon calls `gc.collect()` after every task. With numba, PyArrow and pandas loaded that walks
through about a million objects that will never go: some 100 ms of processor time for each task of each micro-batch,
more than all that the task does. `gc.freeze` takes them out of the count; what comes later is collected as before.

**Acknowledgements.** Spark's JVM sends a task in small pieces through a local socket, and the next piece only when the
last one is acknowledged (Nagle's algorithm). Linux may put an acknowledgement off by 40 ms: about every second
micro-batch of 10,000 events waited so long for its events. With acknowledgements sent at once they come within 10 ms.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from contextlib import suppress

AFTER = (2, 6, 20)  # tasks; the first ones still load kernels
_OPEN = "/proc/self/fd"  # where Linux lists what a process has open


class _Tasks:
    seen = 0


def settle() -> None:
    """Called by every task of ours; in a worker of Spark some of the first calls freeze what is loaded by then."""
    if not in_worker():
        return
    acknowledge()
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


def acknowledge() -> None:
    """Acknowledges what has come through the sockets of this process."""
    if not hasattr(socket, "TCP_QUICKACK") or not os.path.isdir(_OPEN):
        return
    for each in map(int, os.listdir(_OPEN)):
        with suppress(OSError):  # the list itself was open, too
            if not stat.S_ISSOCK(os.fstat(each).st_mode):
                continue
            with socket.socket(fileno=os.dup(each)) as own:
                if own.family in (socket.AF_INET, socket.AF_INET6):
                    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
