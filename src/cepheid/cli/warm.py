"""`cepheid warm`: compiles the engines before anyone waits for them."""

from __future__ import annotations

import time

from cepheid.cli.messages import note


def warm() -> None:
    """Compile all engines for this machine in advance, for example when an image is built.

    Without it, the first query over a large table waits for the compiler.

    Example:

        cepheid warm
    """
    from cepheid.engine.precompile import warm as compile_all  # loads every engine

    begun = time.perf_counter()
    note("compiling the engines; this takes a minute or two ...")
    compile_all()
    note(f"done in {time.perf_counter() - begun:.0f} s")
