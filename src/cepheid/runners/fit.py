"""`fit`: a loss and gap model from a history, local or on Spark. Only counts travel to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import unbounded, within_budget
from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import EventTable, ordered, times_of
from cepheid.engine.fitting.checking import check_history, check_stream
from cepheid.engine.fitting.history import History, gather
from cepheid.engine.fitting.learn import Fitting, learn
from cepheid.engine.fitting.unseen_intervals import with_histories
from cepheid.engine.forecast_checking import check_forecasts
from cepheid.engine.jit_fallback import answer
from cepheid.engine.scoring.losses import gap_scale
from cepheid.errors import CepheidError, DataError, ModelError, ModelWarning, warn
from cepheid.language.alternatives import has_alternatives, steps_of_alternatives
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType, Schema
from cepheid.model import Model
from cepheid.model.check import MISSING_TOGETHER, Check
from cepheid.model.fit import FEWEST_GAPS
from cepheid.plan.options import PlanOptions
from cepheid.runners.options import Options
from cepheid.runners.records import read_records, without_null_keys, write_aside
from cepheid.runners.tables import as_local, is_spark
from cepheid.runners.ties import in_row_order, with_rows

OPEN = 0.1  # the share of waits that were still open with the end of the history, from which on that is told


def fit_model(history: Any, query: Any, asked: Fitting, keywords: Mapping[str, object]) -> Model:
    """The loss and gap model of a query from a table of past events; see `cepheid.fit`."""
    if has_alternatives(query.syntax.pattern):
        return _of_alternatives(history, query, asked, keywords)
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
        asked,
        unit=_unit(bound),
        resolution=seen.step * _scale(bound),
        window=bound.window.length * _scale(bound) if bound.window is not None else 0.0,
    )
    return _with_note(bound, _with_open_waits(bound, model, seen, asked.happens or {}), seen)


def _of_alternatives(history: object, query: Any, asked: Fitting, keywords: Mapping[str, object]) -> Model:
    """The gaps of a pattern with alternatives, component by component: each comes after one before it, or never."""
    steps = steps_of_alternatives(query.syntax)
    if isinstance(steps, str):
        hint = "fit one query for each alternative, and put the gaps into one Model(gaps=...)"
        raise ModelError(f"fit does not learn {steps}", hint=hint)
    if asked.loss is None:
        raise ModelError(
            "a history does not determine the losses of alternatives", hint="state them, for example loss=0.0"
        )
    stated = Model(loss=asked.loss)
    models = {}
    for name, step in steps.items():
        names = [component.variable for component in step.components]
        shares = {each: share for each, share in (asked.happens or {}).items() if each in names}
        known = {each: stated.loss_of(each) for each in names}
        own = type(query)(step, query.text, query.parameters)
        models[name] = fit_model(history, own, Fitting(known, shares), keywords)
    notes = dict.fromkeys(note for model in models.values() for note in model.notes)
    return Model(
        loss={component.variable: stated.loss_of(component.variable) for component in query.syntax.components},
        gaps={name: model.gaps[name] for name, model in models.items()},
        unit=next(iter(models.values())).unit,
        notes=tuple(notes),
    )


def _with_open_waits(bound: BoundQuery, model: Model, seen: History, stated: Mapping[str, float]) -> Model:
    """The model with a note where hardly any wait was seen to its end: then nothing tells how many never end."""
    notes = []
    for component in bound.components:
        name, found = component.variable, seen.of(component.variable)
        still = sum(count for _, count in found.gaps.censored)
        every = found.gaps.count + still + found.gaps.never
        if name in stated or found.resolved >= FEWEST_GAPS or still < OPEN * every or not still:
            continue
        note = (
            f"the history ends before its windows do, with {still:.0f} of {every:.0f} waits for {name!r} still open, "
            f"so it does not show how often {name!r} happens at all: give a longer history, or state "
            f"happens={{{name!r}: ...}}"
        )
        warn(note, ModelWarning)
        notes.append(note)
    return replace(model, notes=(*model.notes, *notes))


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
    warn(
        f"{check}\nso its probabilities may be off; docs/missing-events.md lists the assumptions of the model",
        ModelWarning,
    )
    return replace(model, notes=(*model.notes, str(check)))


def check_model(model: Model, events: Any, query: Any, **keywords: object) -> Check:
    """What a model predicts of a table of events, beside what it shows; see `Model.check`."""
    options = Options.from_keywords(keywords)
    if is_spark(events):
        if events.isStreaming:
            raise ModelError("a stream has no end to check", hint="check a table of its events")
        if has_alternatives(query.syntax.pattern):
            raise ModelError("patterns with alternatives are checked on a table in memory", hint="check a part of it")
        bound, counts = _from_spark(events, query, options)
        check = check_history(bound, model, counts)
        if bound.forecast is None:
            return check
        return replace(check, notes=("forecasts are evaluated on a table in memory, not on Spark",))
    local = as_local(events)
    if local is None:
        raise DataError(f"events must be a pyarrow, pandas, polars or PySpark table, not {type(events).__name__}")
    records = read_records(query, local.arrow, options)
    options, columns = in_row_order(options, records.table.schema)
    table = with_rows(records.table, options, records.kept)
    bound = _bound(query, columns, options)
    seen = ordered(table, bound.schema)
    if has_alternatives(bound.pattern):
        check = Check((), notes=("gaps and shares of a pattern with alternatives are not compared",))
    else:
        check = check_stream(bound, model, seen)
    return check if bound.forecast is None else _with_forecasts(check, bound, model, seen)


def _with_forecasts(check: Check, bound: BoundQuery, model: Model, events: EventTable) -> Check:
    """The check with forecasts beside what became of them."""
    plan, _ = make_plan(bound, events, PlanOptions(model=model))
    try:
        found = check_forecasts(plan, events)
    except ModelError as error:
        return replace(check, notes=(*check.notes, f"forecasts could not be evaluated: {error}"))
    compared = found.comparisons()
    if model.is_fitted:
        compared = [each.between_two_histories() for each in compared]
    return replace(check, comparisons=(*check.comparisons, *compared), forecasts=found)


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


def _from_spark(frame: Any, query: object, options: Options) -> tuple[BoundQuery, History]:
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
