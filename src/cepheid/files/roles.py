"""Which columns of a table mean what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Roles:
    """Which columns mean what; the arguments that `cepheid.match` calls by the same names."""

    time: str = "ts"
    type: str | None = "type"
    time_unit: str | None = None
    tiebreak: tuple[str, ...] = ()
    lower: str | None = None
    upper: str | None = None
    existence: str | None = None
    ignore_case: bool = False  # of types

    def arguments(self) -> dict[str, Any]:
        """As keyword arguments.

        >>> Roles(ignore_case=True).arguments()["ignore_case"], "ignore_case" in Roles().arguments()
        (True, False)
        """
        return {name: value for name, value in vars(self).items() if name != "ignore_case" or value}
