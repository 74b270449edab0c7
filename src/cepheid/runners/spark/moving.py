"""A query that moves between Spark and `cepheid.live`: the state of a checkpoint as bytes, and bytes as a first state.

Imported only when a state is moved: it needs PySpark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.runners.arrow_bytes import decoded, encoded
from cepheid.runners.checksums import text_with_checksum
from cepheid.runners.spark.chunks import stored
from cepheid.runners.spark.session import DataFrame, Session
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.stream.clock import Clock, parsed, signed
from cepheid.runners.stream.identity import VERSION, Fingerprint
from cepheid.runners.stream.saved import Saved
from cepheid.runners.stream.totals import is_slot

STATE = "shard int, kind string, number long, packed binary"


def read_checkpoint(session: Session, checkpoint: str) -> bytes:
    """The state of a stopped stream, as `cepheid.live(..., state=...)` takes it.

    The stream has one query, or several whose events are parted by the same keys: others keep a state each.
    """

    def rows(name: str) -> list[Any]:
        reader = session.read.format("statestore").option("path", checkpoint).option("stateVarName", name)
        try:
            found: list[Any] = reader.load().collect()
        except Exception as error:
            if name == "ended":  # only where a query carries something
                return []
            message = str(error).splitlines()[0]
            raise CepheidError(f"the state of checkpoint {checkpoint} cannot be read: {message}") from None
        return found

    def parts(name: str) -> list[tuple[int, bytes]]:
        found = [(row["user_map_key"]["number"], bytes(row["user_map_value"]["packed"])) for row in rows(name)]
        return [(number, stored(name, number, packed)) for number, packed in found]

    texts = [row["value"]["told"] for row in rows("clock")]
    clocks = [parsed(told) for told in texts]
    if not clocks:
        raise DataError(f"checkpoint {checkpoint} holds no state", hint="start a live query without one")
    _check_levels(clocks)
    if len({(clock["until"], clock["newest"]) for clock in clocks}) > 1:
        raise CepheidError(
            "the shards of this stream are at different positions", hint="let it finish a batch, then stop it"
        )
    chunks = [decoded(part) for _, part in parts("chunks")]
    for told in texts:
        chunks += [decoded(small) for small in signed(told)[1].values()]
    ended: dict[int, list[pa.Table]] = {}
    for place, part in parts("ended"):
        ended.setdefault(place, []).append(decoded(part))
    events = encoded(pa.concat_tables(chunks).combine_chunks()) if chunks else None
    kept = sum(table.num_rows for table in chunks)
    clock = {**clocks[0], "arrived": None, "chunks": []}
    clock |= {"version": min(VERSION, clock["version"])}
    clock.pop("small", None)
    clock |= {"shards": 1} if "shards" in clock else {}
    for name in ("used", "found"):
        if name in clock:
            clock[name] = sum(each[name] for each in clocks)
    if events is not None:
        clock["chunks"] = [_chunk(0, kept, len(events))]
    places = {place: encoded(pa.concat_tables(tables).combine_chunks()) for place, tables in ended.items()}
    return Saved(clock, {0: events} if events is not None else {}, places).packed()


def first_state(df: DataFrame, state: bytes, keys: Sequence[str], narrow: pa.Schema, known: Fingerprint) -> DataFrame:
    """A saved state dealt to the shards of a stream: what each of them begins with."""
    from pyspark.sql import functions as F

    saved = Saved.read(state)
    _check_levels([saved.clock])
    clock = {**saved.clock, "shards": known.shards, "arrived": None}
    Clock.read(json.dumps({**clock, "chunks": []}), known)  # an error now if it belongs to another query
    session = df.sparkSession
    events = pa.concat_tables([narrow.empty_table(), *(_fitted(table, narrow) for table in saved.events())])
    types = {name: df.schema[name].dataType for name in keys}

    def dealt(table: pa.Table) -> list[pa.Table]:
        """The rows of each shard; all of them in the first, if they do not have the keys."""
        shard = np.zeros(table.num_rows, np.int64)
        if keys and table.num_rows and set(keys) <= set(table.column_names):
            # Spark's own hash of Spark's own types: that is how the events to come are dealt.
            frame = session.createDataFrame(table.select(list(keys)))
            columns = [F.col(quoted(name)).cast(types[name]) for name in keys]
            number = F.pmod(F.xxhash64(*columns), F.lit(known.shards)).alias("shard")
            shard = np.array([row["shard"] for row in frame.select(number).collect()], np.int64)
        return [table.filter(pa.array(shard == own)).combine_chunks() for own in range(known.shards)]

    parts = dealt(events)
    # Where matches ended does no harm in the shards of other keys; sums would be counted in each (totals.py).
    sums = {place: dealt(decoded(sum_)) for place, sum_ in saved.ended.items() if is_slot(place)}
    rows: list[tuple[int, str, int, bytes]] = []
    for own, part in enumerate(parts):
        packed = encoded(part)
        chunks = [_chunk(0, part.num_rows, len(packed))] if part.num_rows else []
        rows.append((own, "clock", 0, text_with_checksum(json.dumps({**clock, "chunks": chunks})).encode()))
        rows += [(own, "chunk", 0, packed)] if part.num_rows else []
        rows += [(own, "ended", place, ended) for place, ended in saved.ended.items() if not is_slot(place)]
        rows += [(own, "ended", place, encoded(each[own])) for place, each in sums.items()]
    return session.createDataFrame([(own, kind, number, bytearray(part)) for own, kind, number, part in rows], STATE)


def _check_levels(clocks: Sequence[Mapping[str, object]]) -> None:
    """Matches that wait to be read lie in shards of their own, and are not dealt anew."""
    if any(clock.get("levels") for clock in clocks):
        message = "the state of queries that read each other's matches (FROM) cannot be moved"
        raise CepheidError(message, hint="start over there, or run the queries one by one")


def _chunk(number: int, rows: int, size: int) -> dict[str, Any]:
    return {"number": number, "rows": rows, "size": size, "middle": None, "newest": None}


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Saved events in the columns and types of a stream."""
    for name in schema.names:
        if name not in table.column_names:
            raise DataError(f"the saved state has no column '{name}', which the query needs")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the saved state does not have the types of the stream: {error}") from None
