"""What the numbers were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("cepheid", "numba", "numpy", "pyarrow", "pyspark", "pandas", "duckdb")


def machine_facts(checkout: Path | None = None) -> dict[str, Any]:
    """Processor, cores, memory, versions, the load of the last minute, and the commit that was measured."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := package_version(name))},
        "load_before": round(os.getloadavg()[0], 2),
        "commit": commit_of(checkout or Path(__file__).parents[2]),
    }


def processor_name() -> str:
    """The processor as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def package_version(name: str) -> str | None:
    """The version of an installed package, if there is one."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit_of(checkout: Path) -> str:
    """The last commit that changed what is measured, with a plus where files differ from it.

    Results do not count, so that those of a run that goes on after they were committed are still of one commit.
    """
    git = ["git", "-C", str(checkout)]
    measured = ["src", "bench", ":!bench/results", ":!bench/RESULTS.md", ":!bench/reasons.toml"]
    last = [*git, "log", "-1", "--format=%h", "--", *measured]
    name = subprocess.run(last, capture_output=True, text=True, check=False)
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", *measured], capture_output=True, text=True, check=False
    )
    if name.returncode != 0 or not name.stdout.strip():
        return "unknown"
    return name.stdout.strip() + ("+" if changed.stdout.strip() else "")
