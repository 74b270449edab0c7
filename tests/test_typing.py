"""The public face is typed: a type checker finds wrong names and arguments, and takes right ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cepheid import __all__ as public

ROOT = Path(__file__).parent.parent
CODE = """\
import pandas as pd
import pyarrow as pa

import cepheid
from cepheid import Live, Model, Query

events = pa.table({"ts": [1], "type": ["A"]})
query: Query = cepheid.query("PATTERN A a")
found = cepheid.match(events, query, tiebreak="row", time_unit="ms")
number: int = cepheid.match(events, "PATTERN A a", output="count")
frame: pd.DataFrame = cepheid.match(pd.DataFrame(), query)
live: Live = cepheid.live(query, {"ts": int}, delay=5)
late: int = live.numbers.late + live.numbers.ties
state: bytes = live.save()
model: Model = cepheid.fit(events, query)
built = cepheid.seq(cepheid.event("A", "a"), cepheid.event("B", "b"))
shown = cepheid.show(found)
pattern = cepheid.flink.Pattern.begin("a")
registered = cepheid.sql.register

cepheid.mtach(1)  # error: has no attribute "mtach"
cepheid.match(events, query, tiebrake="row")  # error: No overload variant
cepheid.query(1)  # error: No overload variant
live.sned({"ts": 1})  # error: has no attribute "sned"
cepheid.live(query, {"ts": int}, dealy=5)  # error: Unexpected keyword argument "dealy"
text: str = live.numbers.late  # error: Incompatible types in assignment
cepheid.fit(events, query, negatives="none")  # error: Argument "negatives"
from cepheid import nothing  # error: has no attribute "nothing"
"""


@pytest.mark.slow
def test_mypy_finds_wrong_code_and_takes_right_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mypy import api

    monkeypatch.chdir(ROOT)  # its settings, and the cache that `make lint` leaves
    path = tmp_path / "code.py"
    path.write_text(CODE)
    told, errors, _ = api.run(["--strict", "--no-error-summary", "--hide-error-context", str(path)])
    found: dict[int, str] = {}
    for line in told.splitlines():
        place = re.match(r".*code\.py:(\d+): error: (.*)", line)
        if place is not None:
            found[int(place[1])] = found.get(int(place[1]), "") + place[2]
    for number, line in enumerate(CODE.splitlines(), 1):
        expected = line.partition("# error: ")[2]
        assert (expected in found.pop(number, "-")) if expected else number not in found, f"{line}\n{told}{errors}"
    assert not found


def test_all_that_is_named_is_there() -> None:
    import cepheid

    assert all(hasattr(cepheid, name) for name in public)
    assert sorted(public) == list(public)
    with pytest.raises(AttributeError, match="no attribute 'mtach'"):
        _ = cepheid.mtach  # type: ignore[attr-defined]


def test_every_live_query_is_a_live() -> None:
    import cepheid
    from cepheid.flink import Pattern

    schema = {"ts": int, "type": str}
    queries = ["PATTERN SEQ(A a, B b) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 5 OUTPUT PARTIAL", Pattern.begin("a")]
    for query in queries:
        live = cepheid.live(query, schema, delay=1)
        late: list[int] = []
        live.on_late = lambda table, late=late: late.append(table.num_rows)  # type: ignore[misc]
        assert isinstance(live, cepheid.Live)
        live.send([{"ts": 9, "type": "A"}])
        live.send([{"ts": 1, "type": "A"}])
        assert (live.numbers.events, live.numbers.late, late) == (2, 1, [1])
        assert live.save()
