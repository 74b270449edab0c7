"""Cases of which `make test` runs some and `make test-all` runs all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """The same cases for `parametrize`; those after the first ones are slow."""
    slow = pytest.mark.slow
    return [case if at < count else pytest.param(case, marks=slow) for at, case in enumerate(cases)]
