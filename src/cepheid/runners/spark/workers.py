"""Which Python the workers of a session on this machine run, before a job fails for the lack of a package.

PySpark starts workers with PYSPARK_PYTHON, or with whatever `python3` is on the path; the setting spark.pyspark.python
is read by spark-submit alone. A script that runs as `.venv/bin/python script.py` has workers without its packages.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from cepheid.errors import CepheidError
from cepheid.runners.spark.session import Session

VARIABLE = "PYSPARK_PYTHON"
_NEEDED = ("pyarrow", "numba")  # compiled packages: unlike our own, no --py-files brings them
_LOG = logging.getLogger(__name__)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_workers(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function whose first argument is a Spark table or session, after a look at that session's workers."""

    @functools.wraps(function)
    def checked(*args: _P.args, **keywords: _P.kwargs) -> _R:
        first: object = args[0]
        prepare_workers(getattr(first, "sparkSession", first))
        return function(*args, **keywords)

    return checked


def prepare_workers(session: Session) -> None:
    """On this machine, workers run this interpreter unless another was chosen; an error if that one cannot do."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        # A server that PySpark started here inherited our environment; another is not ours to judge.
        if os.environ.get("SPARK_LOCAL_REMOTE"):
            _check(os.environ.get(VARIABLE) or os.environ.get("PYSPARK_DRIVER_PYTHON") or "python3")
        return
    context = session.sparkContext
    if not context.master.startswith("local"):
        return
    if VARIABLE not in os.environ and context.pythonExec == "python3" and sys.executable:
        _LOG.info("workers of this session run %s; %s names another", sys.executable, VARIABLE)
        context.pythonExec = sys.executable
    _check(context.pythonExec)


def _check(command: str) -> None:
    missing = missing_packages(command)
    if missing:
        raise CepheidError(
            f"Spark starts its workers with {command}, which has no {' and no '.join(missing)}",
            hint=f"set {VARIABLE}={sys.executable} in the environment before the session starts",
        )


@functools.cache
def missing_packages(command: str) -> tuple[str, ...]:
    """What an interpreter lacks that workers need; nothing if it cannot be asked.

    >>> missing_packages(sys.executable), missing_packages("./environment/bin/python")
    ((), ())
    """
    path = shutil.which(command)
    if path is None or os.path.abspath(path) == sys.executable:
        return ()
    question = "import sys; from importlib.util import find_spec; print(*[n for n in sys.argv[1:] if not find_spec(n)])"
    try:
        told = subprocess.run(
            [path, "-c", question, *_NEEDED], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(told.split())
