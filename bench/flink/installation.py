"""Where Flink comes from: its jars from PyPI in a folder of their own, and the driver compiled against them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FLINK_VERSION = "2.3.0"
BENCH_HOME = Path(__file__).resolve().parents[2] / ".bench"
DRIVER = Path(__file__).with_name("FlinkCep.java")

# Flink reads private fields of the Java library; Java 17 and later must be told to allow it.
JAVA_OPTIONS = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED")


class FlinkUnavailable(RuntimeError):
    """Flink cannot be run here; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Installation:
    """All that is needed to start the driver."""

    java: str
    class_path: str


def prepare() -> Installation:
    """Flink's jars and the compiled driver; fetched and compiled on the first call, found again on later ones."""
    java, jars = find_tool("java"), flink_jars()
    return Installation(java, f"{compile_driver(DRIVER.stem, jars)}{os.pathsep}{jars / '*'}")


def find_tool(name: str) -> str:
    """The path of `java` or `javac`, under JAVA_HOME or on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which(name)
    if found is None:
        raise FlinkUnavailable(
            f"Flink needs `{name}`, which is neither under JAVA_HOME nor on the PATH; "
            "install a Java 17 development kit (Debian: openjdk-17-jdk-headless)"
        )
    return found


def flink_jars() -> Path:
    """Flink's own jars. They come in a package without dependencies; Flink's Python pins would conflict with ours."""
    home = BENCH_HOME / f"flink-{FLINK_VERSION}"
    package = f"apache-flink-libraries=={FLINK_VERSION}"

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
        _run([*pip, "--target", str(folder), package], f"install {package} (330 MB)")

    _make_once(home, install)
    jars = home / "pyflink" / "lib"
    if not (jars / f"flink-cep-{FLINK_VERSION}.jar").exists():
        raise FlinkUnavailable(f"{package} in {home} holds no flink-cep jar; delete that folder and try again")
    return jars


def compile_driver(name: str, jars: Path) -> Path:
    """The folder of a driver's classes; a new one for every change of a driver or of Flink."""
    javac, source = find_tool("javac"), DRIVER.with_name(f"{name}.java")
    sources = [source, *sorted(source.parent.glob("*.java"))]  # one may use another
    state = hashlib.sha256(b"".join(each.read_bytes() for each in sources) + FLINK_VERSION.encode()).hexdigest()[:16]
    classes = BENCH_HOME / f"flink-classes-{state}"

    def fill(folder: Path) -> None:
        command = [javac, "--release", "17", "-cp", str(jars / "*"), "-sourcepath", str(source.parent)]
        command += ["-d", str(folder), str(source)]
        _run(command, f"compile {source.name}")

    _make_once(classes, fill)
    return classes


def _make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder under another name and rename it when complete, so that nobody ever finds half of one."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        unfinished = Path(scratch) / folder.name
        unfinished.mkdir()
        fill(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            # Another process was faster; its folder holds the same.
            if not folder.exists():
                raise


def _run(command: list[str], purpose: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FlinkUnavailable(f"could not {purpose}: {(done.stderr or done.stdout).strip()[-2000:]}")
