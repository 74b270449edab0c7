"""What a shard reports of a step: matches, packed, and numbers, as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.spark.unpack import LATE, LATE_EVENT
from cepheid.runners.stream.budget import REASONS
from cepheid.runners.stream.state import Outcome

# What a shard tells of a step, besides matches. Sums of these, but for the last four, are Spark's observed metrics.
SHED_FOR = {reason: f"shed_for_{reason}" for reason in REASONS}
COUNTS = (
    "read",
    "irrelevant",
    "malformed",
    "events",
    "used",
    "late",
    "duplicates",
    "shed",
    "matches",
    *SHED_FOR.values(),
)
LEVELS = ("retained", "state_bytes", "newest", "watermark")
RUN_POOL = ("used", "late", "duplicates", "shed")  # what becomes of events of the types that a query names
OF_QUERIES = (*RUN_POOL, "matches")  # what is told of each query with a name, too...
OWN = {name: f"own_{name}" for name in OF_QUERIES}  # ...in columns of their own
TOTAL = -2  # the `query` of the numbers of a shard as a whole
LEAST = -(2**63)  # stands for a time that is not known yet


def outcome_columns(named: bool) -> str:
    """What a shard tells: matches, packed, and numbers, which are 0 in rows that do not tell them.

    So they only have to be added up, and are never NULL: in every task of every micro-batch Spark writes, and compiles
    or finds again, the code that does it.
    """
    numbers = (*COUNTS, *LEVELS, *(OWN.values() if named else ()))
    columns = ", ".join(f"{name} bigint NOT NULL" for name in numbers)
    return f"query int NOT NULL, packed binary, lost double NOT NULL, {columns}"


def told(outcome: Outcome, counts: Mapping[str, int], keep_late: bool, named: bool = False) -> pd.DataFrame:
    """The outcome as rows: one with the numbers of the shard, and one for each query, with its matches packed.

    Of queries with names, their numbers are told, too.
    """
    late = 0 if outcome.late is None else outcome.late.num_rows
    clock = outcome.clock
    whole = {
        "read": counts.get("read", 0),
        "irrelevant": counts.get("irrelevant", 0) + outcome.unasked,
        "malformed": counts.get("malformed", 0),
        "events": outcome.events,
        "used": outcome.used,
        "late": late,
        "duplicates": outcome.duplicates,
        "shed": outcome.shed,
        "matches": outcome.matches,
        **{name: dict(outcome.shed_for).get(reason, 0) for reason, name in SHED_FOR.items()},
        "retained": outcome.retained,
        "state_bytes": outcome.state_bytes,
        "newest": LEAST if clock.newest is None else clock.newest,
        "watermark": LEAST if clock.until is None else clock.until,
    }
    own = dict.fromkeys(OWN.values() if named else (), 0)
    rows: list[dict[str, Any]] = [{"query": TOTAL, "packed": None, "lost": outcome.lost, **whole, **own}]
    nothing = {"lost": 0.0, **dict.fromkeys(whole, 0), "newest": LEAST, "watermark": LEAST, **own}
    if outcome.late is not None and keep_late:
        rows.append({"query": LATE, "packed": encoded(as_structs(outcome.late, LATE_EVENT)), **nothing})
    by_query: dict[int, list[pa.RecordBatch]] = {}
    for query, batch in outcome.results:
        by_query.setdefault(query, []).append(batch)
    numbers = numbers_of_queries(outcome, by_query) if named else {}
    for query in sorted(by_query.keys() | numbers.keys()):
        batches = by_query.get(query, [])
        packed = encoded(pa.Table.from_batches(batches)) if batches else None
        rows.append({"query": query, "packed": packed, **nothing, **numbers.get(query, {})})
    return pd.DataFrame(rows, columns=["query", "packed", "lost", *COUNTS, *LEVELS, *own])


def numbers_of_queries(outcome: Outcome, by_query: Mapping[int, list[pa.RecordBatch]]) -> dict[int, dict[str, int]]:
    """The numbers of each query that has any, by column."""
    came, shed = dict(outcome.used_by), dict(outcome.shed_by)
    behind, twice = dict(outcome.late_by), dict(outcome.duplicates_by)
    return {
        query: {
            OWN["used"]: came.get(query, 0) - shed.get(query, 0),
            OWN["late"]: behind.get(query, 0),
            OWN["duplicates"]: twice.get(query, 0),
            OWN["shed"]: shed.get(query, 0),
            OWN["matches"]: sum(batch.num_rows for batch in by_query.get(query, [])),
        }
        for query in by_query.keys() | came.keys() | shed.keys() | behind.keys() | twice.keys()
    }


def as_structs(table: pa.Table, name: str) -> pa.Table:
    """A table of one column that holds the rows of another as structs."""
    columns = [column.combine_chunks() for column in table.columns]
    return pa.table({name: pa.StructArray.from_arrays(columns, table.column_names)})
