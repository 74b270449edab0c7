"""Workers of a session on this machine run this interpreter, or the lack of a package is said before a job starts."""

import os
import pickle
import socket
import sys
from types import SimpleNamespace

import pytest

from cepheid.errors import CepheidError
from cepheid.runners.spark import short_errors
from cepheid.runners.spark.processor import PackedProcessor
from cepheid.runners.spark.settled import acknowledge
from cepheid.runners.spark.shard import Shard, Telling
from cepheid.runners.spark.workers import missing_packages, prepare_workers
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.state import StreamStep

STEP = StreamStep((), (), 0)


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


def test_the_worker_that_starts_a_stream_prints_nothing_more(monkeypatch, capsys):
    """Spark's own worker tells what it is doing, with the addresses of objects; ours stops it when it is read."""
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "print", print, raising=False)
    packed = pickle.dumps(PackedProcessor(Shard(STEP, Fingerprint(1), Telling())))
    pickle.loads(packed)
    main.print("as ever")
    monkeypatch.setattr(main, "__file__", "/spark/transform_with_state_driver_worker.py", raising=False)
    pickle.loads(packed)
    main.print("<object at 0x7f>")
    assert capsys.readouterr().out == "as ever\n"


def test_an_error_of_ours_leaves_the_traceback_out_and_any_other_keeps_it(monkeypatch):
    monkeypatch.setattr(short_errors, "in_worker", lambda: True)
    monkeypatch.setattr(os, "environ", {})

    @short_errors.short_errors
    def work(error):
        yield 1
        raise error

    def hidden(error):
        os.environ.clear()
        with pytest.raises(type(error)):
            list(work(error))
        return short_errors.HIDE in os.environ

    caused = CepheidError("ours")
    caused.__cause__ = ValueError("theirs")
    assert [hidden(error) for error in (CepheidError("ours"), ValueError("a defect"), caused)] == [True, False, False]


def test_what_came_through_sockets_is_acknowledged_and_they_stay_open():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        other, _ = server.accept()
        pair = socket.socketpair()  # no TCP
        with other, pair[0], pair[1]:
            for said in (b"a", b"bc"):
                other.sendall(said)
                acknowledge()
                assert one.recv(2) == said
            pair[0].sendall(b"d")
            assert pair[1].recv(1) == b"d"
