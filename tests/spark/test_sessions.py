"""Sessions as users have them: whatever they set, a query finds what it finds in memory, in batches and in streams."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from spark.sessions import LANGUAGES, MODES, RUN, ZONE, answers, expected

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = "org.apache.spark.sql.execution.streaming.state"
# What a user may set, one at a time; where no zone is set it is that of the machine, New York.
SETTINGS = {
    "time zone": {ZONE: ("Etc/UTC", "Asia/Kolkata", "-03:30", "PST", "Australia/Lord_Howe")},
    "ANSI": {"spark.sql.ansi.enabled": ("false", "true")},
    "timestamps": {"spark.sql.timestampType": ("TIMESTAMP_NTZ", "TIMESTAMP_LTZ")},
    "case": {"spark.sql.caseSensitive": ("true",)},
    "Arrow": {"spark.sql.execution.arrow.maxRecordsPerBatch": ("5",)},
    "Arrow's types": {"spark.sql.execution.arrow.useLargeVarTypes": ("true",)},
    "partitions": {"spark.sql.shuffle.partitions": ("1", "200")},
    "state store": {PROVIDER: (f"{STORES}.HDFSBackedStateStoreProvider", f"{STORES}.RocksDBStateStoreProvider")},
    "micro-batches": {"spark.sql.streaming.noDataMicroBatches.enabled": ("false",)},
}
ONE_AT_A_TIME = {
    f"{subject}={value.rpartition('.')[2]}": {name: value}
    for subject, choices in SETTINGS.items()
    for name, values in choices.items()
    for value in values
}


def drawn(number: int) -> dict[str, str]:
    """Several settings at once."""
    rng = random.Random(number)
    chosen = [choices for choices in SETTINGS.values() if rng.random() < 0.6]
    return {name: rng.choice(values) for choices in chosen for name, values in choices.items()}


TOGETHER = {f"drawn {number}": drawn(number) for number in range(4)}


@pytest.fixture
def session(spark, request):
    """A session of its own in the shared Spark, with some settings and no others of ours."""
    own = spark.newSession()
    for name, value in request.param.items():
        own.conf.set(name, value)
    return own


def check(session, mode: str, kind: str, folder: Path) -> None:
    # A whole statement over a stream has its delay from withWatermark, which Spark refuses for times without a zone.
    languages = LANGUAGES[:3] if (mode, kind) in (("stream", "ntz"), ("restart", "ntz")) else LANGUAGES
    found = RUN[mode](session, languages, kind, folder)
    for language in languages:
        wanted = expected(language, kind, session.conf.get(ZONE))
        assert wanted
        assert answers(found[language]) == wanted, language


@pytest.mark.parametrize("session", [{}], indirect=True, ids=["New York"])
@pytest.mark.parametrize(
    "mode", ["batch", *[pytest.param(mode, marks=pytest.mark.slow) for mode in ("stream", "restart")]]
)
def test_a_session_in_new_york(session, mode, tmp_path):
    """The row of the matrix that always runs: a zone whose clocks are put, and defaults."""
    check(session, mode, "ltz", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("session", [{}, {ZONE: "Asia/Kolkata"}], indirect=True, ids=["New York", "Kolkata"])
@pytest.mark.parametrize("mode", MODES)
def test_times_without_a_zone(session, mode, tmp_path):
    check(session, mode, "ntz", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("session", ONE_AT_A_TIME.values(), indirect=True, ids=ONE_AT_A_TIME)
@pytest.mark.parametrize("mode", ["batch", "restart"])  # a stream that is stopped and goes on is a stream, too
def test_one_setting(session, mode, tmp_path):
    check(session, mode, "ltz", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("session", TOGETHER.values(), indirect=True, ids=TOGETHER)
@pytest.mark.parametrize("mode", MODES)
def test_several_settings(session, mode, tmp_path):
    check(session, mode, "ltz", tmp_path)


@pytest.mark.slow
def test_through_connect(tmp_path):
    driver = Path(__file__).with_name("sessions.py")
    command = [sys.executable, str(driver), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, env={**os.environ})
    told = [line for line in done.stdout.splitlines() if line.startswith(MODES)]
    assert told == [f"{mode} {name} agrees" for mode in MODES for name in LANGUAGES], done.stdout + done.stderr[-3000:]
