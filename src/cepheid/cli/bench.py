"""`cepheid bench`: the benchmarks of a source checkout."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from cepheid.errors import CepheidError


def bench(context: typer.Context) -> None:
    """Run the benchmarks of a source checkout. The installed package does not contain them.

    All arguments go to `python -m bench`.

    Example:

        cepheid bench --help
    """
    # The console script does not look for modules in the current directory, `python -m` does.
    sys.path.insert(0, str(Path.cwd()))
    if find_spec("bench") is None or find_spec("bench.__main__") is None:
        raise CepheidError("there are no benchmarks here", hint="run this at the top of a source checkout of Cepheid")
    raise typer.Exit(subprocess.run([sys.executable, "-m", "bench", *context.args], check=False).returncode)
