"""A platform wheel brings compiled kernels: nothing is compiled or written where it is installed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

FIRST_ANSWERS = """
import sys
import pyarrow as pa
import cepheid
import cepheid.flink
from cepheid.engine import precompile
from cepheid.engine.kernels import cache, loading

made = []
cache._Files.save_overload = lambda self, sig, cres: made.append(self.stem)
n = 20_000
events = pa.table({"ts": range(n), "type": ["A", "B", "C", "B"] * (n // 4), "id": [k // 4 % 50 for k in range(n)],
                   "x": [k * k % 7 for k in range(n)]})
pattern = cepheid.flink.Pattern.begin("a").where("type = 'A'").followed_by("b").where("type = 'B'").within(20)
for query in (
    "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x WITHIN 40",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] AND b[i].x > b[i-1].x } WITHIN 40",
    "MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.x AS x PATTERN (A B+) DEFINE B AS x > A.x)",
    pattern,
):
    assert cepheid.match(events, query).num_rows > 0
every = [each for module in precompile.EVERY for each in precompile.module_kernels(module)]
missing = [each.__name__ for each in every if not each.is_ready()]
print(cepheid.__file__, made, missing, loading.kernels_in_use(), sep="\\n")
"""


def run(*command: Any, **environment: str) -> str:
    known = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**known, **environment},
        cwd=environment.get("HOME", ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_installed_wheel_compiles_nothing(tmp_path: Path) -> None:
    kernels, dist, site, home = (tmp_path / name for name in ("kernels", "dist", "site", "home"))
    home.mkdir()
    run("-m", "cepheid.engine.precompile", "--baseline", NUMBA_CACHE_DIR=str(kernels))
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", dist, ROOT, CEPHEID_KERNELS=str(kernels / "cepheid"))
    (wheel,) = dist.glob("*.whl")
    assert "none-any" not in wheel.name
    run(*pip, "install", "--no-deps", "--target", site, wheel)
    for path in (site, *site.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    own = {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(site), "CEPHEID_COMPILE": "always"}
    told = run("-c", FIRST_ANSWERS, **own, PYTHONDONTWRITEBYTECODE="1").splitlines()
    assert told == [str(site / "cepheid" / "__init__.py"), "[]", "[]", "True"]
    assert list(home.iterdir()) == []  # nothing was written beside the package, either
    for path in (site, *site.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
