"""Errors of ours in Python workers: the driver gets the sentence, not the way through the worker's code.

Spark hands the text of a worker's error to the driver, with a traceback in front that is longer than what an error of
ours says. It leaves the traceback out where a variable of the worker's environment says so. A worker ends with the
error, so that the variable concerns this error alone. Any other error, and one of ours with a cause, keeps it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from cepheid.errors import CepheidError
from cepheid.runners.spark.settled import in_worker

HIDE = "SPARK_HIDE_TRACEBACK"
_P = ParamSpec("_P")
_T = TypeVar("_T")


def short_errors(work: Callable[_P, Iterator[_T]]) -> Callable[_P, Iterator[_T]]:
    """What a worker does, step by step, with errors that are as long as their sentence."""

    @functools.wraps(work)
    def told(*args: _P.args, **keywords: _P.kwargs) -> Iterator[_T]:
        try:
            yield from work(*args, **keywords)
        except CepheidError as error:
            if in_worker() and error.__cause__ is None:
                os.environ[HIDE] = "1"
            raise

    return told
