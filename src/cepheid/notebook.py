"""`%%cepheid` cells: a query over a table of the notebook, shown as a table of matches."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from cepheid.api import match
from cepheid.errors import CepheidError, closest
from cepheid.report.show import MatchView, show

_EXAMPLE = "%%cepheid events --time ts --type type --output found"


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CepheidError(f"%%cepheid: {message}", hint=f"for example {_EXAMPLE}")


def register(shell: Any) -> None:
    """Gives a notebook's shell the magic."""

    def cepheid(line: str, cell: str) -> MatchView | Any:
        """Run the query of the cell over a table."""
        return run_cell(line, cell, shell.user_ns)

    shell.register_magic_function(cepheid, magic_kind="cell", magic_name="cepheid")


def run_cell(line: str, cell: str, names: dict[str, Any]) -> MatchView | Any:
    """The matches of the query in a cell; `names` are the variables of the notebook.

    >>> import cepheid
    >>> names = {"shop": cepheid.examples.shoplifting()}
    >>> text = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 2 hours RETURN a.tag AS tag"
    >>> run_cell("shop --output thefts", text, names).shown.result.num_rows, names["thefts"]["tag"].tolist()
    (3, [7, 27, 47])
    """
    parser = _Arguments(prog="%%cepheid", add_help=False)
    parser.add_argument("events")
    for name in ("--time", "--type", "--time-unit", "--tiebreak", "--output", "--limit"):
        parser.add_argument(name)
    parser.add_argument("--untyped", action="store_true")
    given = parser.parse_args(shlex.split(line))
    events = names.get(given.events)
    if events is None:
        near = closest(given.events, [name for name in names if not name.startswith("_")])
        hint = f"did you mean {near}?" if near else f"for example {_EXAMPLE}"
        raise CepheidError(f"%%cepheid: the notebook has no variable '{given.events}'", hint=hint)
    time, type = given.time or "ts", None if given.untyped else given.type or "type"
    more = {name: getattr(given, name) for name in ("time_unit", "tiebreak") if getattr(given, name) is not None}
    found = match(events, cell, time=time, type=type, **more)
    if given.output is not None:
        names[given.output] = found
    if hasattr(found, "isStreaming"):  # Spark's own tables show themselves
        return found
    if given.limit is not None and not given.limit.isdecimal():
        raise CepheidError(f"%%cepheid: --limit {given.limit}", hint="give a whole number")
    return show(found, limit=int(given.limit or 20), time=time, type=type)
