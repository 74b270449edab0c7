"""The same calls through a Spark Connect server, on a local cluster, and on a standalone one of two workers."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.spark]
AGREES = ["batch agrees", "slices agrees", "sql agrees", "stream agrees", "cache agrees"]
DRIVER = Path(__file__).with_name("elsewhere.py")


def drive(*arguments: str) -> list[str]:
    command = [sys.executable, str(DRIVER), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    told = [line for line in done.stdout.splitlines() if line.endswith(("agrees", "differs"))]
    assert done.returncode == 0, done.stderr[-3000:]
    return told


def test_through_connect(tmp_path):
    assert drive("connect", str(tmp_path / "c")) == AGREES


def test_on_a_local_cluster(tmp_path):
    work = Path(pyspark.__file__).parent / "work"  # where its workers put their files
    was_there = work.exists()
    try:
        assert drive("cluster", str(tmp_path / "c")) == AGREES
    finally:
        if not was_there:
            shutil.rmtree(work, ignore_errors=True)


@pytest.fixture
def standalone(tmp_path):
    """A master and two workers on this machine, started from the pip package."""
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_NO_DAEMONIZE": "1",
    }
    run = [str(home / "bin" / "spark-class")]
    master = "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
    worker = "org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0"
    address = f"spark://127.0.0.1:{port}"
    started = []
    log = tmp_path / "cluster.log"
    try:
        with log.open("w") as told:
            started.append(subprocess.Popen([*run, *master], env=environment, stdout=told, stderr=told))
            for _ in range(2):
                command = [*run, *worker, "--host", "127.0.0.1", address]
                started.append(subprocess.Popen(command, env=environment, stdout=told, stderr=told))
            deadline = time.time() + 120
            while len(re.findall("Registering worker", log.read_text())) < 2 and time.time() < deadline:
                time.sleep(0.5)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def test_on_a_standalone_cluster(tmp_path, standalone):
    assert drive("cluster", str(tmp_path / "c"), standalone) == AGREES
