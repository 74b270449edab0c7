"""Contestants that are a call of `cepheid.match`, and what is compared of what it returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.harness.experiment import Contestant, Outcome

Hashes = npt.NDArray[np.uint64]
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


def cepheid_call(name: str, table: pa.Table, text: str, *, agrees: bool = True, **options: Any) -> Contestant:
    """A query over a table in memory: preparation, search and output are timed, parsing is not."""
    query = cepheid.query(text)
    time = options.get("time", "ts")
    return Contestant(
        name,
        lambda: query.match(table, **options),
        table.num_rows,
        lambda result: inspect_result(result, time),
        agrees,
    )


def inspect_result(result: Any, time: str = "ts") -> Outcome:
    """Matches, their digest and what the engine counted, of any kind of result."""
    if isinstance(result, int):
        return Outcome(matches=result)
    if isinstance(result, pa.Table):
        return Outcome(result.num_rows, match_digest(result, time), metrics=counters(result))
    return Outcome(matches=int(result.count))


def counters(result: pa.Table) -> dict[str, float]:
    """What the engine counted, from the metadata of the result, and the sum of probabilities, if it has them."""
    facts = json.loads((result.schema.metadata or {}).get(b"cepheid", b"{}"))
    counted = {str(name): float(value) for name, value in facts.get("counters", {}).items()}
    for name in ("probability", "confidence"):
        if name in result.column_names:
            counted[f"total_{name}"] = float(pc.sum(result[name]).as_py() or 0.0)
    return counted


def match_digest(result: pa.Table, time: str = "ts") -> str:
    """A number for the set of matches, whatever their order: each match by the times of its events, all added up."""
    names = [name for name in result.column_names if name not in ("probability", "confidence", "earliest", "latest")]
    each = np.zeros(result.num_rows, np.uint64)
    for name in sorted(names):
        column = result[name].combine_chunks()
        each = mixed(each * MULTIPLIER + column_hashes(column, time))
    return f"{int(each.sum(dtype=np.uint64)) & (2**64 - 1):016x}"


def column_hashes(column: pa.Array, time: str) -> Hashes:
    """A number per row: events by their time, groups by the sum over their events, anything else by its value."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = column_hashes(column.flatten(), time)
        ends = np.cumsum(pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(inner, dtype=np.uint64)])
        return np.asarray(sums[ends] - sums[np.concatenate([[0], ends[:-1]]).astype(np.int64)], np.uint64)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return column_hashes(pc.struct_field(column, time if time in names else names[0]), time)
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return mixed(values.astype(np.uint64))
    codes = column.cast(pa.string()).to_pylist()
    return np.array([int.from_bytes((text or "").encode()[:8].ljust(8), "little") for text in codes], np.uint64)


def mixed(values: Hashes) -> Hashes:
    """Spreads neighbouring numbers over all 64 bits, so that sums of different ones seldom agree."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> SHIFT)) * MULTIPLIER
        return np.asarray(values ^ (values >> SHIFT), np.uint64)


def metric(outcome_metrics: Mapping[str, float], *names: str) -> float:
    """The first of several counters that an engine has: not all of them count alike."""
    return next((outcome_metrics[name] for name in names if name in outcome_metrics), float("nan"))
