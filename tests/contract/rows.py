"""What every engine of row patterns must do, as functions of a case."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pandas
import polars
import pyarrow as pa
from hypothesis import strategies as st

import cepheid
from cepheid.errors import DataError, LimitError
from cepheid.runners.stream.rows import RowStream
from rows.row_cases import bound, rows_of
from strategies.rows import CONDITIONS, clauses, tables


class RowCase(NamedTuple):
    """A clause and the rows of a table."""

    clause: str
    table: pa.Table

    def found(self, engine: str, table: Any = None, **options: Any) -> Any:
        """The result, or the error that both engines have to give: a row to skip to is not there, or a limit."""
        text = f"MATCH_RECOGNIZE ({self.clause})"
        try:
            table = self.table if table is None else table
            return cepheid.match(table, text, dialect="trino", engine=engine, **options)
        except (DataError, LimitError) as error:
            return type(error)


def row_cases(conditions: str = "of paths") -> st.SearchStrategy[RowCase]:
    """A drawn clause with conditions of some kind, over a drawn table."""
    return st.builds(RowCase, clauses(CONDITIONS[conditions]), tables())


def agrees_with_the_reference(case: RowCase, engine: str) -> None:
    """The same rows in the same order, and as many matches, or the same error."""
    found, expected = case.found(engine), case.found("reference")
    assert found.equals(expected) if isinstance(expected, pa.Table) else found is expected
    assert case.found(engine, output="count") == case.found("reference", output="count")


def takes_every_kind_of_table(case: RowCase, engine: str) -> None:
    """pyarrow, pandas and polars in, the same kind out, and the same rows in each."""
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


def can_be_cut_anywhere(case: RowCase, engine: str, cuts: Sequence[int], delay: int) -> None:
    """A stream that comes in pieces, saved and restored after each, finds what the engine finds in the whole table."""
    case = RowCase(case.clause.replace("$", "()"), case.table)  # a stream has no last row
    whole = case.found(engine)
    if not isinstance(whole, pa.Table):
        return
    query = bound(case.clause, case.table)
    stream = RowStream(query, case.table.schema, delay, max_rows=1000)
    ordered = case.table.sort_by("id")
    found: list[str] = []
    edges = [0, *sorted(min(max(cut, 0), len(ordered)) for cut in cuts), len(ordered)]
    for low, high in pairwise(edges):
        found += rows_of(stream.send(ordered.slice(low, high - low)))
        saved, stream = stream.save(), RowStream(query, case.table.schema, delay, max_rows=1000)
        stream.restore(saved)
    found += rows_of(stream.finish())
    assert stream.late == 0
    assert sorted(found) == sorted(rows_of(whole))


def keeps_its_limits(case: RowCase, engine: str) -> None:
    """As many matches as there may be are fine, and one more is an error."""
    case = RowCase(case.clause.replace("OMIT EMPTY MATCHES", ""), case.table)  # omitted ones are not counted
    whole, matches = case.found(engine), case.found(engine, output="count")
    if isinstance(whole, pa.Table) and matches > 1:
        assert case.found(engine, max_matches=matches).equals(whole)
        assert case.found(engine, max_matches=matches - 1) is LimitError
