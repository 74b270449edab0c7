"""Compiles every kernel once, into numba's cache: `python -m cepheid.engine.warm`.

Worth doing when a machine is set up, since the first query would otherwise wait for it; and before several processes
start at once, since each would compile for itself.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from cepheid.engine.engines import ENGINES

# Besides the engines: kernels that are loaded apart from them.
OTHERS = ("fitting.history", "search.preferred.run")


def warm(processes: int | None = None) -> dict[str, float]:
    """Loads every engine, on all cores at once, and says how many seconds each took."""
    modules = list(dict.fromkeys([*(engine.module for engine in ENGINES.values()), *OTHERS]))
    load("search.stacks")  # what the others share
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        return dict(zip(modules, pool.map(load, modules), strict=True))


def load(module: str) -> float:
    """Loads one module of the engine; compiles its kernels if the cache does not have them."""
    begun = time.perf_counter()
    importlib.import_module(f"cepheid.engine.{module}")
    return time.perf_counter() - begun


def main() -> None:
    """Says what is going on, since the first time takes a minute or two."""
    begun = time.perf_counter()
    print("Compiling kernels (once per installation) ...", file=sys.stderr)
    warm()
    print(f"done in {time.perf_counter() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
