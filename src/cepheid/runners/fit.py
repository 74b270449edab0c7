"""`fit`: a loss and gap model from a history, local or on Spark. Only counts travel to the driver."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import unbounded, within_budget
from cepheid.engine.cold import answer
from cepheid.engine.data.table import ordered, times_of
from cepheid.engine.fitting.checking import check_history, check_stream
from cepheid.engine.fitting.history import History, gather
from cepheid.engine.fitting.learn import learn
from cepheid.engine.fitting.stretches import with_histories
from cepheid.engine.worth.losses import gap_scale
from cepheid.errors import CepheidError, DataError, ModelError, ModelWarning
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType, Schema
from cepheid.model import Model
from cepheid.model.check import MISSING_TOGETHER, Check
from cepheid.runners.dispatch import is_spark
from cepheid.runners.options import Options
from cepheid.runners.records import read_records, without_null_keys, write_aside
from cepheid.runners.tables import as_local
from cepheid.runners.ties import in_row_order, with_rows


def fit_model(
    history: Any,
    query: Any,
    *,
    loss: Any = None,
    happens: Mapping[str, float] | None = None,
    negatives: str = "pooled",
    loss_by: str | None = None,
    loss_by_hour: bool = False,
    **keywords: Any,
) -> Model:
    """The loss and gap model of a query from a table of past events; see `cepheid.fit`."""
    options = Options.from_keywords(keywords)
    if is_spark(history):
        if history.isStreaming:
            raise ModelError("a stream has no end to learn from", hint="fit on a table of past events")
        with unbounded():
            bound, seen = _from_spark(history, query, options)
    else:
        local = as_local(history)
        if local is None:
            raise DataError(f"history must be a pyarrow, pandas, polars or PySpark table, not {type(history).__name__}")
        records = read_records(query, local.arrow, options)
        options, columns = in_row_order(options, records.table.schema)
        bound = _bound(query, columns, options)
        records = without_null_keys(bound, records, options)
        write_aside(records.bad, options.aside)
        events = ordered(with_rows(records.table, options, records.kept), bound.schema)
        with within_budget(options.timeout, options.max_bytes):
            seen = answer("fitting.history", len(events), lambda: gather(bound, events, _scale(bound)))
    if seen.events == 0:
        raise ModelError("the history is empty", hint="give events from the past, of the same kind as the stream")
    model = learn(
        bound,
        seen,
        loss=loss,
        happens=happens,
        negatives=negatives,
        loss_by=loss_by,
        loss_by_hour=loss_by_hour,
        unit=_unit(bound),
        resolution=seen.step * _scale(bound),
        window=bound.window.length * _scale(bound) if bound.window is not None else 0.0,
    )
    return _with_note(bound, model, seen)


def _with_note(bound: BoundQuery, model: Model, seen: History) -> Model:
    """The model with a note of what does not fit its own history, of which a warning tells, too.

    Where components are missing together, it also learns what happened between those that were seen.
    """
    try:
        check = check_history(bound, model, seen)
        if not model.hours and any(each.deviates and each.what == MISSING_TOGETHER for each in check.comparisons):
            model = with_histories(bound, model, seen)
            check = check_history(bound, model, seen)
    except CepheidError as error:
        return replace(model, notes=(*model.notes, f"the model could not be checked: {error}"))
    if check.fits:
        return model
    warnings.warn(
        f"{check}\nso its probabilities may be off; docs/missing-events.md says what the model assumes",
        ModelWarning,
        stacklevel=4,
    )
    return replace(model, notes=(*model.notes, str(check)))


def check_model(model: Model, events: Any, query: Any, **keywords: Any) -> Check:
    """What a model predicts of a table of events, beside what it shows; see `Model.check`."""
    options = Options.from_keywords(keywords)
    if is_spark(events):
        if events.isStreaming:
            raise ModelError("a stream has no end to check", hint="check a table of its events")
        bound, seen = _from_spark(events, query, options)
        return check_history(bound, model, seen)
    local = as_local(events)
    if local is None:
        raise DataError(f"events must be a pyarrow, pandas, polars or PySpark table, not {type(events).__name__}")
    records = read_records(query, local.arrow, options)
    options, columns = in_row_order(options, records.table.schema)
    table = with_rows(records.table, options, records.kept)
    bound = _bound(query, columns, options)
    return check_stream(bound, model, ordered(table, bound.schema))


def _bound(query: Any, schema: pa.Schema, options: Options) -> BoundQuery:
    bound: BoundQuery = query.bind(Schema.from_arrow(schema, **options.roles()))
    if bound.window is None or bound.window.events:
        raise ModelError("fitting needs a query with a window of time", hint="add WITHIN, for example WITHIN 12 hours")
    return bound


def _unit(bound: BoundQuery) -> str | None:
    """Gaps count seconds where the time column is a timestamp, and its own steps otherwise."""
    return "seconds" if bound.schema.type_of(bound.schema.time) is DataType.TIME else bound.schema.time_unit


def _scale(bound: BoundQuery) -> float:
    return gap_scale(bound, Model(loss=0.0, unit=_unit(bound)))


def _from_spark(frame: Any, query: Any, options: Options) -> tuple[BoundQuery, History]:
    """Each partition gathers its own counts; the driver adds them up."""
    from pyspark.sql import functions as F

    from cepheid.runners.spark.session import arrow_schema, with_nested_columns
    from cepheid.runners.spark.short_errors import short_errors
    from cepheid.runners.spark.workers import prepare_workers

    prepare_workers(frame.sparkSession)
    frame = with_nested_columns(frame, [query])
    bound = _bound(query, arrow_schema(frame), options)
    needed = sorted(
        {bound.schema.time, *bound.attributes(), *filter(None, [bound.schema.type]), *bound.schema.tiebreak}
    )
    scale, timeout, max_bytes = _scale(bound), options.timeout, options.max_bytes
    row = frame.agg(F.min(bound.schema.time).alias("begins"), F.max(bound.schema.time).alias("ends"))
    edges = row.mapInArrow(_edges, "begins long, ends long").collect()[0]
    if edges["begins"] is None:
        return bound, History({})
    span = (edges["begins"], edges["ends"])

    @short_errors
    def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if parts:
            table = pa.Table.from_batches(parts)
            with within_budget(timeout, max_bytes):  # what each task may spend
                counts = gather(bound, ordered(table, bound.schema), scale, span)
            yield pa.RecordBatch.from_pydict({"counts": [pickle.dumps(counts)]})

    selected = frame.select(*needed)
    parted = selected.repartition(*bound.equivalence) if bound.equivalence else selected.repartition(1)
    rows = parted.mapInArrow(gathered, "counts binary").collect()
    # Rows come from our own code in this job, so unpickling them is as safe as running it.
    return bound, reduce(History.merge, (pickle.loads(bytes(each["counts"])) for each in rows), History({}))


def _edges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        known = [
            None if pc.all(column.is_null()).as_py() else times_of(table, name)[0]
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays([pa.array([value], pa.int64()) for value in known], names=["begins", "ends"])
