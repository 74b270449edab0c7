"""What every engine of Flink patterns must do, as functions of a case."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas
import polars
import pyarrow as pa
from hypothesis import strategies as st

import cepheid
from cepheid.errors import CepheidError, LimitError
from cepheid.flink import Pattern
from strategies.flink import drawn_pattern

COLUMNS = pa.schema({"ts": pa.int64(), "name": pa.string(), "price": pa.float64(), "key": pa.int64()})


class FlinkCase(NamedTuple):
    """A pattern, events, and whether each key is by itself."""

    pattern: Pattern
    table: pa.Table
    options: dict[str, Any]

    def found(self, engine: str, table: Any = None, **options: Any) -> Any:
        """The matches, or the error that both engines have to give."""
        try:
            table = self.table if table is None else table
            return cepheid.match(table, self.pattern, type=None, engine=engine, **self.options, **options)
        except CepheidError as error:
            return type(error)


@st.composite
def flink_cases(draw: st.DrawFn) -> FlinkCase:
    """A drawn pattern over drawn events, of one key or two."""
    task, pattern = drawn_pattern(draw(st.integers(0, 2**32)))
    keys = draw(st.lists(st.integers(0, 1), min_size=len(task["events"]), max_size=len(task["events"])))
    rows = [{**event, "key": key} for event, key in zip(task["events"], keys, strict=True)]
    options: dict[str, Any] = {"partial": draw(st.booleans())}
    if draw(st.booleans()):
        options["partition_by"] = "key"
    return FlinkCase(pattern, pa.Table.from_pylist(rows, COLUMNS), options)


def agrees_with_the_reference(case: FlinkCase, engine: str) -> None:
    """The same matches and runs that were given up, in the same order, or the same error."""
    found, expected = case.found(engine), case.found("reference")
    assert found.equals(expected) if isinstance(expected, pa.Table) else found is expected


def takes_every_kind_of_table(case: FlinkCase, engine: str) -> None:
    """pyarrow, pandas and polars in, the same kind out, and the same matches in each."""
    arrow = case.found(engine)
    panda = case.found(engine, case.table.to_pandas(types_mapper=pandas.ArrowDtype))
    frame = case.found(engine, polars.from_arrow(case.table))
    if not isinstance(arrow, pa.Table):
        assert arrow is panda is frame
        return
    assert isinstance(panda, pandas.DataFrame)
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dicts() == arrow.to_pylist()
    assert pa.Table.from_pandas(panda, preserve_index=False).to_pylist() == arrow.to_pylist()


def can_be_cut_anywhere(case: FlinkCase, engine: str, cuts: Sequence[int]) -> None:
    """A stream that comes in pieces, cut at any events, finds what the engine finds in the whole table."""
    whole = case.found(engine)
    if not isinstance(whole, pa.Table):
        return
    live = cepheid.live(case.pattern, COLUMNS, type=None, **case.options)
    edges = [0, *sorted(min(max(cut, 0), case.table.num_rows) for cut in cuts), case.table.num_rows]
    pieces = [live.send(case.table.slice(low, high - low)) for low, high in itertools.pairwise(edges)]
    found = pa.concat_tables([*pieces, live.finish()]).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist()))


def keeps_its_limits(case: FlinkCase, engine: str) -> None:
    """As many matches as there may be are fine, and one more is an error."""
    whole = case.found(engine)
    if isinstance(whole, pa.Table) and whole.num_rows > 1:
        assert case.found(engine, max_matches=whole.num_rows).equals(whole)
        assert case.found(engine, max_matches=whole.num_rows - 1) is LimitError
