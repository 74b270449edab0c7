"""Compiles every kernel once, into numba's cache: `python -m cepheid.engine.warm`.

Worth doing when a machine is set up, since the first query would otherwise wait for it; and before several processes
start at once, since each would compile for itself.
"""

from __future__ import annotations

import importlib
import sys
import time

from cepheid.engine.find import ENGINES

# Besides the engines: kernels that are loaded apart from them.
OTHERS = ("history",)


def warm() -> dict[str, float]:
    """Loads every engine, and says how many seconds each took."""
    seconds: dict[str, float] = {}
    for module in dict.fromkeys([*(engine.module for engine in ENGINES.values()), *OTHERS]):
        begun = time.perf_counter()
        importlib.import_module(f"cepheid.engine.{module}")
        seconds[module] = time.perf_counter() - begun
    return seconds


def main() -> None:
    """Says what is going on, since the first time takes a minute or two."""
    print("Compiling kernels (once per installation) ...", file=sys.stderr)
    print(f"done in {sum(warm().values()):.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
