"""Workers of a session on this machine run this interpreter, or the lack of a package is said before a job starts."""

import sys
from types import SimpleNamespace

import pytest

from cepheid.errors import CepheidError
from cepheid.runners.spark.workers import missing_packages, prepare_workers


def session(command, master="local[2]"):
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=command))


@pytest.fixture
def bare(tmp_path):
    """An interpreter that has no packages."""
    command = tmp_path / "python"
    command.write_text("#!/bin/sh\necho pyarrow numba\n")
    command.chmod(0o755)
    return str(command)


def test_this_interpreter_runs_where_none_was_chosen(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    own = session("python3")
    prepare_workers(own)
    assert own.sparkContext.pythonExec == sys.executable


def test_one_that_was_chosen_and_lacks_a_package_is_an_error(monkeypatch, bare):
    monkeypatch.setenv("PYSPARK_PYTHON", bare)
    chosen = session(bare)
    with pytest.raises(CepheidError, match="which has no pyarrow and no numba") as error:
        prepare_workers(chosen)
    assert f"PYSPARK_PYTHON={sys.executable}" in str(error.value)
    assert chosen.sparkContext.pythonExec == bare


def test_a_cluster_decides_for_itself(monkeypatch, bare):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for command in ("python3", bare):
        cluster = session(command, "spark://somewhere:7077")
        prepare_workers(cluster)
        assert cluster.sparkContext.pythonExec == command


def test_an_interpreter_that_cannot_be_asked_is_left_alone(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert missing_packages(str(broken)) == ()
