"""Compiles every kernel once, into the cache: `cepheid warm`, or `python -m cepheid.engine.precompile`.

Worth doing when a machine is set up, since the first large query would otherwise wait for it; and before several
processes start at once, since each would compile for itself. With `--baseline`, for the processor that kernels of a
wheel are for (`make wheel`). With `--alone`, in one process: what kernels share is compiled once, which takes a quarter
less processor time, where other cores have other work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from cepheid.engine.engines import ENGINES, FLINK_ENGINES, ROW_ENGINES, Registered
from cepheid.engine.jit_fallback import full_name, module_kernels
from cepheid.engine.kernels.compile import called_kernels
from cepheid.engine.values.compiled import predicate_signature
from cepheid.engine.values.python_first import called_by_number
from cepheid.language.sase.parse import parse

# Besides the engines: kernels that are loaded apart from them.
OTHERS = (
    "fitting.history",
    "incremental.linking",
    "incremental.by_stacks",
    "incremental.by_runs",
    "incremental.by_queues",
    "incremental.arrow_rows",
    "incremental.dict_answers",
    "incremental.table_door",
    "incremental.result_blocks",
    "incremental.result_rows",
    "incremental.intake",
    "incremental.flink_step",
    "incremental.pattern_door",
    "incremental.pattern_rows",
    "incremental.row_step",
    "search.totals",
    "search.runs.totals",
    "search.runs.backtrack",
    "data.candidates",
    "data.keys",
    "data.layout",
    "output.maximal",
    "output.overlap",
    "output.top",
)
_REGISTERED: tuple[Registered[Any], ...] = (*ENGINES.values(), *FLINK_ENGINES.values(), *ROW_ENGINES.values())
EVERY = tuple(dict.fromkeys([*(engine.module for engine in _REGISTERED), *OTHERS]))
SLOW_TO_LOAD = {"search.runs": ("search.runs.backtrack",)}  # modules that an engine imports only when it needs them


def warm(modules: Sequence[str] = (), processes: int | None = None) -> dict[str, float]:
    """Compiles some modules of the engine, or all, on all cores at once, and says how many seconds each took."""
    if len(modules) == 1:
        return {modules[0]: load(modules[0])}
    shares = divided(list(dict.fromkeys(modules)) or EVERY)
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        return dict(zip(shares, pool.map(load_share, shares, shares.values()), strict=True))


def divided(modules: Sequence[str]) -> dict[str, list[str]]:
    """The names of the kernels that each module is to compile, each kernel once; those with most to compile first."""
    taken: set[int] = set()
    names: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for module in modules:
        own = [each for each in module_kernels(module) if id(each) not in taken]
        taken.update(map(id, own))
        parts = {id(part): part for each in own for part in (each, *called_kernels(each.py_func))}
        names[module] = [full_name(each) for each in own]
        sizes[module] = sum(len(part.py_func.__code__.co_code) for part in parts.values())
    return {module: names[module] for module in sorted(names, key=lambda one: -sizes[one]) if names[module]}


def load_share(module: str, names: Sequence[str]) -> float:
    """Loads some kernels of a module; compiles them if the cache does not have them."""
    begun = time.perf_counter()
    for each in module_kernels(module):
        if full_name(each) in names:
            each.dispatcher()
    called_by_number(predicate_signature())
    return time.perf_counter() - begun


def load(module: str) -> float:
    """Loads one module of the engine; compiles its kernels if the cache does not have them."""
    modules = (module, *SLOW_TO_LOAD.get(module, ()))
    return sum(load_share(each, [full_name(kernel) for kernel in module_kernels(each)]) for each in modules)


def main() -> None:
    """Says what is going on, since the first time takes a minute or two."""
    begun = time.perf_counter()
    arguments = sys.argv[1:]
    if "--baseline" in arguments:  # numba looks at the processor when it starts
        arguments.remove("--baseline")
        from cepheid.engine.kernels.cache import baseline_settings

        command = [sys.executable, "-m", "cepheid.engine.precompile", *arguments]
        sys.exit(subprocess.call(command, env={**os.environ, **baseline_settings()}))
    print("Compiling kernels (once per installation) ...", file=sys.stderr)
    modules = [each for each in arguments if each != "--alone"]
    warm(modules, processes=None if modules == arguments else 1)
    parse("PATTERN SEQ(A a)")  # the tables of the parser are kept, too
    print(f"done in {time.perf_counter() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
