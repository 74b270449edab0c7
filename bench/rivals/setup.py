"""Sets the rivals up under build/rivals: `make bench-rivals`. What cannot be had is skipped with a word."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from bench.harness.experiment import Unavailable
from bench.harness.store import ROOT

HOME = ROOT / "build" / "rivals"
WAY = "run `make bench-rivals`"
CORE, SIDDHI, FLINK = "pycer==0.1.6", "PySiddhi==5.1.0", "2.3.0"


def set_up(names: Sequence[str] = (), opencep: Path | None = None) -> None:
    """Sets up all rivals, or some; says of each whether it is there."""
    if opencep is not None:
        HOME.mkdir(parents=True, exist_ok=True)
        (HOME / "opencep.json").write_text(json.dumps({"path": str(opencep.resolve())}))
    steps = {"duckdb": duckdb, "core": core, "siddhi": siddhi, "flink": flink, "opencep": opencep_source}
    for name in names or steps:
        if name not in steps:
            raise SystemExit(f"no rival '{name}'; there are {', '.join(steps)}")
        try:
            place = steps[name](install=True)
        except Unavailable as problem:
            print(f"{name}: skipped: {problem}")
        else:
            print(f"{name}: {place}")


def duckdb(install: bool = False) -> Path:
    """An interpreter with DuckDB."""
    return interpreter("duckdb", sys.executable, ["duckdb", "pyarrow", "numpy"], install)


def core(install: bool = False) -> Path:
    """An interpreter with CORE, whose wheel is for CPython 3.13 only."""
    python = find_python("3.13") if install else "python3.13"
    return interpreter("core", python, [CORE, "pyarrow", "numpy"], install)


def siddhi(install: bool = False) -> Path:
    """The folder of Siddhi's jars, which come in a wheel."""
    folder = HOME / "siddhi"
    jars = folder / "__PySiddhiProxy" / "target" / "lib"
    if not jars.exists():
        if not install:
            raise Unavailable(f"Siddhi is not set up: {WAY}")
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), SIDDHI]
        run(pip, f"download {SIDDHI}")
        wheel = next(folder.glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return jars


def flink(install: bool = False) -> Path:
    """Flink's jars and the compiled driver (bench/flink)."""
    from bench.flink.installation import BENCH_HOME, FlinkUnavailable, prepare

    if not install and not (BENCH_HOME / f"flink-{FLINK}").exists():
        raise Unavailable(f"Flink is not set up: {WAY}")
    try:
        prepare()
    except FlinkUnavailable as problem:
        raise Unavailable(str(problem)) from None
    return BENCH_HOME


def opencep_source(install: bool = False) -> Path:
    """A checkout of OpenCEP, if whoever runs the comparison named one: it is on no package index."""
    kept = HOME / "opencep.json"
    if not kept.exists():
        raise Unavailable("OpenCEP is on no package index: name a checkout with `python -m bench rivals --opencep DIR`")
    path = Path(json.loads(kept.read_text())["path"])
    if not (path / "CEP.py").exists():
        raise Unavailable(f"{path} holds no CEP.py")
    return path


def interpreter(name: str, python: str, packages: Sequence[str], install: bool) -> Path:
    """The Python of a rival's own virtual environment."""
    own = HOME / name / "bin" / "python"
    ready = HOME / name / ".ready"
    if ready.exists():
        return own
    if not install:
        raise Unavailable(f"{name} is not set up: {WAY}")
    HOME.mkdir(parents=True, exist_ok=True)
    run([python, "-m", "venv", str(HOME / name)], f"make a virtual environment with {python}")
    run(
        [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
        f"install {packages[0]}",
    )
    ready.touch()
    return own


def find_python(version: str) -> str:
    """An interpreter of a version, on the PATH or among pyenv's."""
    candidates = [
        shutil.which(f"python{version}"),
        *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ]
    for candidate in candidates:
        if (
            candidate
            and subprocess.run([str(candidate), "--version"], capture_output=True, check=False).returncode == 0
        ):
            return str(candidate)
    raise Unavailable(f"there is no CPython {version}")


def run(command: Sequence[str], purpose: str) -> None:
    """A step of the set-up; its failure is a reason to skip the rival."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"could not {purpose}: {(done.stderr or done.stdout).strip()[-400:]}")
