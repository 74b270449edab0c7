"""Compiles every kernel once, into numba's cache: `cepheid warm`, or `python -m cepheid.engine.warm`.

Worth doing when a machine is set up, since the first large query would otherwise wait for it; and before several
processes start at once, since each would compile for itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from cepheid.engine.cold import compile_module
from cepheid.engine.engines import ENGINES

# Besides the engines: kernels that are loaded apart from them.
OTHERS = (
    "fitting.history",
    "search.flink.kernel",
    "search.preferred.run",
    "search.totals",
    "search.runs.totals",
    "data.candidates",
    "data.keys",
    "data.layout",
    "output.maximal",
    "output.overlap",
    "output.top",
)
SLOW_TO_LOAD = {"search.runs": ("search.runs.backtrack",)}  # modules that an engine imports only when it needs them


def warm(modules: Sequence[str] = (), processes: int | None = None) -> dict[str, float]:
    """Compiles some modules of the engine, or all, on all cores at once, and says how many seconds each took."""
    every = list(dict.fromkeys([*(engine.module for engine in ENGINES.values()), *OTHERS]))
    wanted = list(modules) or every
    if len(wanted) == 1:
        return {wanted[0]: load(wanted[0])}
    load("search.stacks")  # what the others share
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        return dict(zip(wanted, pool.map(load, wanted), strict=True))


def load(module: str) -> float:
    """Loads one module of the engine; compiles its kernels if the cache does not have them."""
    begun = time.perf_counter()
    for each in (module, *SLOW_TO_LOAD.get(module, ())):
        compile_module(each)
    return time.perf_counter() - begun


def main() -> None:
    """Says what is going on, since the first time takes a minute or two."""
    begun = time.perf_counter()
    print("Compiling kernels (once per installation) ...", file=sys.stderr)
    warm(sys.argv[1:])
    print(f"done in {time.perf_counter() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
