"""`cepheid warm`: compiles the engines before anyone waits for them."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cepheid.cli.messages import note


def warm(
    spark: Annotated[
        bool, typer.Option("--spark", help="Record Spark's classes instead, so that sessions start faster.")
    ] = False,
) -> None:
    """Compile all engines for this machine in advance, for example when an image is built.

    Without it, the first query over a large table waits for the compiler.

    Example:

        cepheid warm
    """
    if spark:
        record_classes()
        return
    from cepheid.engine.precompile import warm as compile_all  # loads every engine

    begun = time.perf_counter()
    note("compiling the engines; this takes a minute or two ...")
    compile_all()
    note(f"done in {time.perf_counter() - begun:.0f} s")


def record_classes() -> None:
    """Records the archive that `start_session` uses."""
    from cepheid.runners.spark.class_archive import record

    begun = time.perf_counter()
    note("recording Spark's classes; this takes about a minute ...")
    path = record()
    note(f"wrote {path} ({path.stat().st_size >> 20} MB) in {time.perf_counter() - begun:.0f} s")
