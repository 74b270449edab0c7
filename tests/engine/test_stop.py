"""Searches that are stopped: by Ctrl-C, by a deadline, by a budget of memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numba
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine import match_limits
from cepheid.engine.kernels import stop
from cepheid.engine.kernels.compile import Kernel
from cepheid.engine.kernels.stop import STOP, guarded, stop_flag, within_budget
from cepheid.engine.precompile import load
from cepheid.engine.search.runs import compressed
from cepheid.runners import fit

KLEENE = "PATTERN SEQ(A+ a[], B b) WITHIN 1000"
SUBSETS = "PATTERN SEQ(A+ a[], B b) WHERE avg(a[].ts) < 0 WITHIN 1000"  # none fits, and many have to be tried
SEQUENCE = "PATTERN SEQ(A a, A b, A c, A d, A e, B f) WHERE a.x + b.x + c.x + d.x + e.x = f.x WITHIN 1000"
ENDLESS = {  # more combinations than anyone waits for
    "sequence": SEQUENCE,
    "runs": SUBSETS,
    "backtrack": SUBSETS,
    "lazy-chain": SEQUENCE,
    "lazy-tree": SEQUENCE,
}
IMPRECISE = ["intervals", "points"]


def many(count: int = 300) -> pa.Table:
    """So many A, then a B."""
    return pa.table(
        {
            "ts": list(range(count + 1)),
            "type": ["A"] * count + ["B"],
            "x": [1] * count + [-1],
            "lo": list(range(count + 1)),
            "hi": [number + 3 for number in range(count + 1)],
        }
    )


@pytest.mark.parametrize("engine", list(ENDLESS))
def test_a_deadline_stops_every_engine(engine: str) -> None:
    """It would take years, so that to come back at all is to be stopped."""
    with pytest.raises(cepheid.TimeoutReached, match=r"timeout=0\.5"):
        cepheid.match(many(), ENDLESS[engine], engine=engine, timeout=0.5)
    with pytest.raises(TimeoutError):
        cepheid.match(many(), ENDLESS[engine], engine=engine, timeout=0.5)
    assert STOP[0] == 0


ROWS = """MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (a* b* c* d* e* z)
    DEFINE a AS sum(a.x) >= 0, b AS sum(b.x) >= 0, c AS sum(c.x) >= 0, d AS sum(d.x) >= 0, e AS sum(e.x) >= 0,
    z AS sum(a.ts) + sum(b.ts) * sum(c.ts) - sum(d.ts) < -1)"""


def test_a_deadline_stops_row_patterns() -> None:
    with pytest.raises(cepheid.TimeoutReached):
        cepheid.match(many(), ROWS, timeout=0.5)
    assert STOP[0] == 0


TOTALS = "SUMMARISE approximate_count(*) AS n"


@pytest.mark.parametrize(
    "text",
    [
        f"PATTERN SEQ(A+ a[], B b) WHERE a[i].x >= a[i-1].x AND a[i].x <= a[1].x WITHIN 100000 {TOTALS}",
        f"PATTERN SEQ(A+ a[], B b) WHERE sum(a[].x) > avg(a[].ts) AND a[i].x * a[i-1].ts >= 0 WITHIN 100000 {TOTALS}",
    ],
)
def test_a_deadline_stops_totals(text: str) -> None:
    events = many(3_000 if numba.config.DISABLE_JIT else 30_000)
    with pytest.raises(cepheid.LimitError):  # TimeoutReached, or the limit of partial matches before it
        cepheid.match(events, text, timeout=0.5, max_partial_matches=10_000_000)
    assert STOP[0] == 0


@pytest.mark.parametrize("engine", IMPRECISE)
def test_a_deadline_stops_searches_at_imprecise_times(engine: str) -> None:
    if not numba.config.DISABLE_JIT:
        pytest.skip("the kernels take minutes to compile")
    with pytest.raises(cepheid.TimeoutReached):
        cepheid.match(many(), SEQUENCE, engine=engine, lower="lo", upper="hi", timeout=0.5)


@pytest.mark.parametrize("output", ["count", "compressed"])
def test_a_deadline_holds_for_results_that_are_not_listed(output: str) -> None:
    text = "PATTERN SEQ(A+ a[], B b) WHERE sum(a[].x) > avg(a[].y) AND a[i].x * a[i-1].y > 0 WITHIN 1000"
    events = many().append_column("y", pa.array([float(n * n % 97 + 1) for n in range(301)]))
    with pytest.raises(cepheid.LimitError):
        cepheid.match(events, text, output=output, timeout=0.5)


def test_a_deadline_stops_a_live_query() -> None:
    query = cepheid.query("PATTERN SEQ(A+ a[], A b) WHERE avg(a[].ts) < 0 WITHIN 1000")  # the parser starts slowly
    live = cepheid.live(query, {"ts": int, "type": str}, timeout=2)
    with pytest.raises(cepheid.TimeoutReached):
        live.send([{"ts": n, "type": "A"} for n in range(300)])


def test_a_number_beyond_counting_is_told_without_being_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("an estimate is enough")

    monkeypatch.setattr(compressed.CompressedMatches, "_tallies", never)
    monkeypatch.setattr(match_limits, "PATIENCE", 600.0)  # the machine may be busy
    ties = pa.table({"ts": [n // 2 for n in range(500)], "type": ["ABABCCDD"[n % 8] for n in range(500)]})
    with pytest.raises(cepheid.LimitError, match=r"there are more than 9\.2 \* 10\^18 matches"):
        cepheid.match(ties, "PATTERN SEQ(A a, (B b, C c)+, D d) WHERE skip_till_next_match {}", max_matches=10)


def test_a_query_in_time_is_not_disturbed() -> None:
    events = many(5)
    assert cepheid.match(events, KLEENE, timeout=1000, max_bytes=2**40).num_rows == 2**5 - 1


def test_a_budget_of_memory_stops_a_search() -> None:
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("the system does not say how much memory is taken")
    with pytest.raises(cepheid.LimitError, match="max_bytes"):
        cepheid.match(many(), KLEENE, engine="runs", max_bytes=2**20)


def test_a_part_of_the_result_says_of_how_many_matches_it_is_a_part() -> None:
    if not numba.config.DISABLE_JIT:
        load("search.totals")  # counting has two seconds, in which nothing could be compiled
    found = cepheid.match(many(40), "PATTERN SEQ(A+ a[], B b)", max_matches=10, truncate=True)
    facts = json.loads(found.schema.metadata[b"cepheid"])
    assert (found.num_rows, facts["truncated"], facts["counters"]["matches_in_all"]) == (10, True, 2**40 - 1)


TRIPS = "PATTERN SEQ(A a, B b) WITHIN 100"


def test_a_deadline_stops_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cepheid.TimeoutReached):
        cepheid.fit(many(), TRIPS, loss=0.1, timeout=1e-9)
    monkeypatch.setattr(fit, "gather", lambda *arguments: spin(3600.0))
    with pytest.raises(cepheid.TimeoutReached, match=r"timeout=0\.1"):
        cepheid.fit(many(), TRIPS, loss=0.1, timeout=0.1)
    assert flags[-1] == 1  # the search saw it, and did not end by itself
    assert STOP[0] == 0


flags: list[int] = []  # what the flag was when a search ended


@guarded
def spin(seconds: float) -> float:
    """A search that goes on until it is stopped."""
    end = time.monotonic() + seconds
    while stop_flag() == 0 and time.monotonic() < end:
        time.sleep(0.001)
    flags.append(stop_flag())
    return seconds


def interrupt_after(seconds: float) -> None:
    """Ctrl-C, a little later."""
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_an_interrupt_stops_a_search() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests in the background ignores it
    for _ in range(5):
        interrupt_after(0.1)
        with pytest.raises(KeyboardInterrupt):
            spin(60.0)
        assert flags[-1] == 1  # it did not end by itself
        assert STOP[0] == 0
    assert spin(0.01) == 0.01


def test_the_deadline_of_one_thread_does_not_stop_another() -> None:
    answers: list[Any] = []

    def impatient() -> None:
        try:
            with within_budget(0.3, None):
                spin(30.0)
        except cepheid.TimeoutReached as error:
            answers.append(error)

    threads = [threading.Thread(target=impatient), threading.Thread(target=lambda: answers.append(spin(0.6)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(type(answer).__name__ for answer in answers) == ["TimeoutReached", "float"]


def test_a_failure_inside_a_search_reaches_the_caller() -> None:
    @guarded
    def fails() -> None:
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()


INTERRUPTED = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
import pyarrow as pa
import cepheid
events = pa.table({"ts": list(range(301)), "type": ["A"] * 300 + ["B"], "x": [1] * 300 + [-1]})
small = events.slice(290)
text = %r
for round in range(4):
    cepheid.match(small, text, engine=%r, timeout=60)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        cepheid.match(events, text, engine=%r)
    except KeyboardInterrupt:
        pass  # it would have taken years
    else:
        raise AssertionError("it was not interrupted")
print("alive")
"""


@pytest.mark.parametrize("engine", ["sequence", "runs"])
def test_a_process_survives_interrupts_of_kernels(engine: str) -> None:
    program = INTERRUPTED % (ENDLESS[engine], engine, engine)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr


def test_a_signal_while_a_kernel_hands_its_result_over_raises_what_its_handler_raised() -> None:
    def interrupted(*_: Any) -> Any:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    def nested(*_: Any) -> Any:
        try:
            interrupted()
        except SystemError as error:
            raise SystemError("returned a result with an exception set") from error

    def broken(*_: Any) -> Any:
        raise SystemError("bad argument to internal function")

    for dispatcher, expected in ((interrupted, KeyboardInterrupt), (nested, KeyboardInterrupt), (broken, SystemError)):
        kernel = Kernel(lambda: None, {}, address=False)
        kernel._dispatcher = dispatcher
        with pytest.raises(expected):
            kernel()


@pytest.mark.parametrize("where", ["before it begins", "where it ends"])
def test_a_search_whose_thread_runs_out_of_memory_does_not_hang(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(work: Callable[..., None], given: tuple[Any, ...]) -> int:
        def runs(*given: Any) -> None:
            if where == "where it ends":
                work(*given)
            raise MemoryError

        return start_new_thread(runs, given)

    def search() -> int:
        if where == "where it ends":
            raise MemoryError
        return 1

    start_new_thread = stop._thread.start_new_thread
    monkeypatch.setattr(stop._thread, "start_new_thread", start)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # Python tells of the thread
    with pytest.raises(MemoryError):
        guarded(search)()
    assert STOP[0] == 0
