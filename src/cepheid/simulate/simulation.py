"""What a simulated stream is: the events a system would see, and the truth it would not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.errors import DataError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True)
class Simulation:
    """A stream with known truth.

    `events` is ordered by its `ts` column. `truth` says what really happened; it is None where the stream is
    only a workload and there is nothing to find out. `query` is the paper's query on this stream, ready to run.
    """

    events: pa.Table
    truth: pa.Table | None
    description: str
    query: str = ""


class CallOptions(Protocol[Result_co]):
    """The options of a call, which make its result."""

    def __call__(self) -> Result_co:
        """The result."""


def as_function(asked: Callable[Parameters, CallOptions[Result]]) -> Callable[Parameters, Result]:
    """A function with the options of a class, which declares each of them once."""

    def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        return asked(*arguments, **options)()

    call.__doc__ = asked.__doc__
    call.__signature__ = inspect.signature(asked, eval_str=True)  # type: ignore[attr-defined]
    return call


def names_by_code(codes: NDArray[np.integer], names: Sequence[str]) -> pa.Array:
    """A plain string column from small integer codes, without a Python object per row.

    >>> names_by_code(np.array([1, 0, 1]), ["Shelf", "Exit"]).to_pylist()
    ['Exit', 'Shelf', 'Exit']
    """
    return pa.array(names, pa.string()).take(pa.array(codes.astype(np.int32, copy=False)))


def check_at_least(name: str, value: float, least: float) -> None:
    """Refuse a size or duration that is too small to mean anything."""
    if not value >= least:
        raise DataError(f"simulate: {name} is {value}", hint=f"it must be at least {least}")


def check_share(name: str, value: float) -> None:
    """Refuse a probability or share outside [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise DataError(f"simulate: {name} is {value}", hint="it must lie between 0 and 1")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that names none of the variants."""
    if value not in choices:
        raise DataError(f"simulate: {name} is {value!r}", hint=f"choose one of {', '.join(choices)}")
