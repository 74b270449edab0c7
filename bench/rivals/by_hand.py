"""Sequences as people write them by hand: pandas, and SQL statements for any database."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa


def any_match_pandas(table: pa.Table, types: Sequence[str], key: str, window: int) -> pa.Table:
    """Every combination: merge the types with each other on the key, then keep those in order and in the window."""
    frame = table.select(["ts", "type", key]).to_pandas()
    found = None
    for place, name in enumerate(types, start=1):
        part = frame.loc[frame["type"] == name, ["ts", key]].rename(columns={"ts": f"e{place}"})
        if found is None:
            found = part
            continue
        found = found.merge(part, on=key)
        found = found[(found[f"e{place}"] > found[f"e{place - 1}"]) & (found[f"e{place}"] - found["e1"] < window)]
    return as_matches(found, len(types))


def next_match_pandas(table: pa.Table, types: Sequence[str], key: str, window: int) -> pa.Table:
    """The next event of each type: one merge_asof a step."""
    frame = table.select(["ts", "type", key]).to_pandas()
    found = None
    for place, name in enumerate(types, start=1):
        part = frame.loc[frame["type"] == name, ["ts", key]].rename(columns={"ts": f"e{place}"})
        if found is None:
            found = part
            continue
        before = f"e{place - 1}"
        found = pd.merge_asof(
            found.sort_values(before),
            part,
            left_on=before,
            right_on=f"e{place}",
            by=key,
            direction="forward",
            allow_exact_matches=False,
        ).dropna()
        found[f"e{place}"] = found[f"e{place}"].astype("int64")
        found = found[found[f"e{place}"] - found["e1"] < window]
    return as_matches(found, len(types))


def as_matches(found: pd.DataFrame, length: int) -> pa.Table:
    """The times of each match as a table that can be compared."""
    names = [f"e{place}" for place in range(1, length + 1)]
    table = pa.Table.from_pandas(found[names], preserve_index=False)
    return table.append_column("match_start", table["e1"]).append_column("match_end", table[names[-1]])


def next_match_statement(view: str, types: Sequence[str], key: str, window: int) -> str:
    """The next event of each type by window functions, from the last type back to the first; the same in any SQL.

    Each step looks forward for the nearest event of the next type that is the begin of a tail, and carries the tail's
    times along: they grow with the time of its first event, so that the least of each is of the same tail.
    """
    last = len(types)
    inner = f"SELECT ts, type, {key}, CASE WHEN type = '{types[-1]}' THEN ts END AS e{last} FROM {view}"
    for place in range(last - 1, 0, -1):
        carried = ", ".join(
            f"CASE WHEN type = '{types[place - 1]}' THEN MIN(e{number}) OVER ahead END AS e{number}"
            for number in range(place + 1, last + 1)
        )
        own = f"CASE WHEN type = '{types[place - 1]}' THEN ts END AS e{place}"
        inner = (
            f"SELECT ts, type, {key}, {own}, {carried} FROM ({inner}) s{place} WINDOW ahead AS "
            f"(PARTITION BY {key} ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"
        )
    names = ", ".join(f"e{place}" for place in range(1, last + 1))
    return (
        f"SELECT {names}, e1 AS match_start, e{last} AS match_end FROM ({inner}) found "
        f"WHERE e{last} IS NOT NULL AND e{last} - e1 < {window}"
    )
