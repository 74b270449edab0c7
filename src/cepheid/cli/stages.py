"""How long each stage of a command took, and the summary at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.text import Text

from cepheid.cli.messages import err
from cepheid.draw.text import counted


class Stages:
    """Collects the seconds of named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Adds the time that the block takes to the stage."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def print_summary(
        self, *, events: int | None, matches: int, output: Path | None = None, unit: str = "match", **others: int
    ) -> None:
        """One line on stderr: what went in, what came out, and where the time went."""
        text = Text()
        text.append(counted(matches, unit), style="bold green" if matches else "bold yellow")
        text.append(f" in {counted(events, 'event')}" if events is not None else "")
        text.append("".join(f", {number:,} {name}" for name, number in others.items()))
        text.append(f" -> {output}" if output is not None else "")
        spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
        err.print(text.append(f" ({spent})", style="dim"), soft_wrap=True)
