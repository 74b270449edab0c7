"""Tables in memory: pyarrow, pandas and polars in, the same kind out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.shared import once
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import automaton_text, find
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.checked import CheckedQuery
from cepheid.language.guess import guessed_schema
from cepheid.language.schema import Schema
from cepheid.plan.explain import explain
from cepheid.plan.physical import Plan
from cepheid.plan.statistics import Statistics
from cepheid.runners.composition import in_order, matches_as_events, options_of_matches, united
from cepheid.runners.drift import look_for_drift
from cepheid.runners.options import Options
from cepheid.runners.records import read_records, without_null_keys, write_aside, write_each_once
from cepheid.runners.results import assemble, duration_columns
from cepheid.runners.ties import Ties, in_row_order, warn_of_ties, with_rows, with_ties
from cepheid.runners.totals import find_totals, listing_needed, totals_table
from cepheid.runners.whole_window import whole_window


@dataclass(frozen=True)
class Prepared:
    """A query that is ready to run over a table."""

    bound: BoundQuery
    events: EventTable
    plan: Plan
    statistics: Statistics | None
    counts: dict[str, int] = field(default_factory=dict)  # of records that were left out, by reason


def prepare(query: Any, table: pa.Table, options: Options) -> Prepared:
    """Reads the records as events, binds the query to them, puts them in order and chooses a plan."""
    given = table
    records = read_records(query, table, options)
    table = records.table
    if options.uncertainty is not None:
        from cepheid.engine.data.instants import check_types

        named = [name for component in query.syntax.components for name in component.types or ()]
        check_types(table, options.uncertainty, options.type, named)
    table, options = with_intervals(table, options)
    options, columns = in_row_order(options, table.schema)
    bound = query.bind(Schema.from_arrow(columns, **options.roles()), whole_window(query, table, options))
    records = without_null_keys(bound, replace(records, table=table), options)
    table = with_rows(records.table, options, records.kept)
    write_aside(records.bad, options.aside)
    if bound.schema.is_imprecise:
        from cepheid.engine.data.instants import instants_of

        instants_of(table, bound.schema, options)  # so that errors name rows as the caller counts them
    asked = replace(query.syntax, output=s.Output())
    events = once(given, ("ordered", asked), lambda: ordered(table, bound.schema))
    plan, statistics = make_plan(bound, events, options)
    return Prepared(bound, events, plan, statistics, records.counts)


def with_intervals(table: pa.Table, options: Options) -> tuple[pa.Table, Options]:
    """Where one time column may be off by so much (`uncertainty`), the bounds as columns of their own."""
    if options.uncertainty is None:
        return table, options
    from cepheid.engine.data.instants import with_bounds

    bounded = with_bounds(
        table,
        options.uncertainty,
        time=options.time,
        type=options.type,
        time_unit=options.time_unit,
        unit=options.unit,
    )
    return bounded.table, replace(options, lower=bounded.lower, upper=bounded.upper, uncertainty=None)


def run_table(query: object, table: pa.Table, options: Options) -> pa.Table:
    """All matches in the table: its end counts as time having passed."""
    result, ties = _found(query, table, options)
    warn_of_ties([ties])
    return result


def _found(query: object, table: pa.Table, options: Options) -> tuple[pa.Table, Ties | None]:
    """The same, with the events that are tied."""
    prepared = prepare(query, table, options)
    plan, events = prepared.plan, prepared.events
    look_for_drift(plan, events)

    def run() -> pa.Table:
        summary = prepared.bound.summary
        if summary is None:
            return result_table(plan, events, find(plan, events), prepared.counts)
        return totals_table(prepared.bound, events, find_totals(plan, summary, events), summary)

    result, ties = with_ties(plan, events, run)
    return (result if ties is None else with_fact(result, "ties", str(ties))), ties


def run_each(
    queries: Mapping[str, CheckedQuery],
    table: pa.Table,
    options: Options,
    known: Mapping[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """The matches of several queries, each by itself; they may also read those that are `known`."""
    bad: list[pa.Table] = []
    where, options = options.aside, replace(options, aside=bad.append) if options.aside is not None else options
    found = dict(known or {})
    ties: list[Ties | None] = []
    for name in in_order(queries, found):
        query = queries[name]
        if not query.sources:
            found[name], tied = _found(query, table, options)
            ties.append(tied)
            continue
        read = united([matches_as_events(source, found[source], options) for source in query.sources])
        found[name] = run_table(query, read.replace_schema_metadata(), options_of_matches(options))
    write_each_once(bad, where)
    warn_of_ties(ties)
    return {name: found[name] for name in queries}


def result_table(
    plan: Plan, events: EventTable, matches: Matches, left_out: Mapping[str, int] | None = None
) -> pa.Table:
    """The matches as rows, by completion, with what the engine counted in the schema's metadata."""
    matches = matches.take(np.argsort(matches.completion, kind="stable"))
    table = assemble(plan.bound, events.table, matches)
    facts = {"engine": plan.engine, "truncated": matches.truncated, "counters": matches.counters}
    facts |= {"left_out": dict(left_out)} if left_out else {}
    durations = duration_columns(plan.bound)
    facts |= {"durations": durations} if durations else {}
    return table.replace_schema_metadata({"cepheid": json.dumps(facts)})


def with_fact(result: pa.Table, name: str, fact: object) -> pa.Table:
    """The result with one more of what it carries about its making."""
    known = json.loads((result.schema.metadata or {}).get(b"cepheid", b"{}"))
    return result.replace_schema_metadata({"cepheid": json.dumps({**known, name: fact})})


def explain_table(query: object, table: pa.Table, options: Options, analyze: bool) -> str:
    """What would be done for the query over this table and, with `analyze`, what each step saw."""
    prepared = prepare(query, table, options)
    actual = None
    if analyze:
        actual = _counted(prepared)
    return explain(
        prepared.plan,
        prepared.bound,
        statistics=prepared.statistics,
        automaton=automaton_text(prepared.plan),
        actual=actual,
        more=_summarised(prepared.plan),
    )


def _counted(prepared: Prepared) -> dict[str, int]:
    """What the steps of a run saw."""
    summary = prepared.bound.summary
    if summary is None:
        matches = find(prepared.plan, prepared.events)
        return {**matches.counters, "matches": len(matches)}
    found = find_totals(prepared.plan, summary, prepared.events)
    return {**found.counters, "groups": len(found)}


def _summarised(plan: Plan) -> dict[str, list[str]]:
    """How totals come about, if they are asked for."""
    if plan.bound.summary is None:
        return {}
    why = listing_needed(plan)
    return {"Totals": ["aggregated event by event; no match is listed" if why is None else f"by listing: {why}"]}


def explain_query(query: Any, options: Options) -> str:
    """The same without a table: column types are guessed from how the query uses them."""
    schema = guessed_schema(query.syntax)
    judged = query.syntax.confidence is not None or query.syntax.output.mode is s.OutputMode.TOP
    if judged or options.lower is not None or options.uncertainty is not None:
        schema = replace(schema, lower=options.lower or schema.time, upper=options.upper or schema.time)
    bound = query.bind(schema)
    plan, _ = make_plan(bound, options=options)
    return explain(plan, bound, automaton=automaton_text(plan), more=_summarised(plan))
