"""`cepheid report`: a query's matches as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

import cepheid
from cepheid.cli import options as o
from cepheid.cli.messages import explaining_delay, out
from cepheid.cli.outputs import check_outputs, replacing
from cepheid.cli.query_argument import load_functions, parse_parameters, query_files, read_query
from cepheid.cli.stages import Stages
from cepheid.errors import CepheidError, closest
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files
from cepheid.files.roles import Roles

_Page = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Where to write the page.")]
_Title = Annotated[str | None, typer.Option(metavar="TEXT", help="The page's heading.")]
_Truth = Annotated[
    str | None,
    typer.Option("--truth", metavar="PATH", help="A table that says which matches are real, for calibration."),
]
_TruthKey = Annotated[str | None, typer.Option(metavar="COLUMN", help="The attribute that tells matches apart in it.")]
_TruthColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that is true for real ones.")]


def report(
    query: o.QueryArgument,
    input: o.Inputs,
    output: _Page = Path("report.html"),
    title: _Title = None,
    truth: _Truth = None,
    truth_key: _TruthKey = None,
    truth_column: _TruthColumn = None,
    format: o.InputFormat = None,
    time_format: o.TimeFormat = None,
    time: o.Time = "ts",
    type: o.Type = "type",
    untyped: o.Untyped = False,
    time_unit: o.TimeUnit = None,
    tiebreak: o.Tiebreak = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    parameter: o.Parameters = None,
    model: o.ModelPath = None,
    scoring: o.Scoring = "exact",
    engine: o.EngineName = "auto",
    option: o.MatchOptions = None,
    functions: o.FunctionsPath = None,
) -> None:
    """Run a query and write its matches as one HTML page that opens offline.

    Timeline, counts over time, probabilities, the automaton, and what each step saw. With --truth also whether the
    probabilities are honest.

    Example:

        cepheid report shoplifting.cepheid -i events.parquet -o thefts.html --model store.json
    """
    if truth is not None and (truth_key is None or truth_column is None):
        hint = "for example --truth-key tag_id --truth-column stolen"
        raise CepheidError("--truth needs to know how it is read", hint=hint)
    if output.is_dir():
        raise CepheidError(f"--output {output} is a directory", hint=f"write {output / 'report.html'}")
    files = find_files(input, format)
    check_outputs({"--output": output}, [*files.addresses, *query_files(query), model, truth, functions])
    load_functions(functions)
    parsed = read_query(query, parameter or ())
    stages = Stages()
    with stages.timed("read"):
        events = read_events(files, time=lower or time, time_format=time_format)
    roles = o.roles(time, type, untyped, time_unit, tiebreak, lower, upper)
    loaded = cepheid.load_model(model) if model is not None else None
    given = {"model": loaded, "scoring": scoring, "engine": engine, **parse_parameters(option or ())}
    known = None
    if truth is not None and truth_key is not None and truth_column is not None:
        known = read_truth(truth, truth_key, truth_column)
    write_page(output, parsed, events, roles, given, stages, title or f"Matches of {_name(query)}", truth_key, known)
    out.print(f"the report is in {output}", soft_wrap=True)


def _name(query: str) -> str:
    path = Path(query)
    return path.stem if path.suffix == ".cepheid" else "the query"


def read_truth(path: str, key: str, column: str) -> dict[Any, bool]:
    """Which keys are real."""
    table = read_events(find_files([path]), time="")
    for name in (key, column):
        if name not in table.column_names:
            near = closest(name, table.column_names)
            hint = f"did you mean {near}?" if near else f"the columns are {', '.join(table.column_names)}"
            raise CepheidError(f"{path} has no column '{name}'", hint=hint)
    return truth_of(table, key, column)


def truth_of(table: pa.Table, key: str, column: str) -> dict[Any, bool]:
    """Which keys of a table of truth are real."""
    pairs = zip(table.column(key).to_pylist(), table.column(column).to_pylist(), strict=True)
    return {name: bool(real) for name, real in pairs}


def write_page(
    output: Path,
    query: cepheid.Query,
    events: pa.Table,
    roles: Roles,
    given: dict[str, Any],
    stages: Stages,
    title: str,
    truth_key: str | None = None,
    truth: dict[Any, bool] | None = None,
    result: pa.Table | None = None,
) -> pa.Table:
    """Runs the query, unless its result is given, and writes the page."""
    from cepheid.report.arcs import arcs_of
    from cepheid.report.facts import facts
    from cepheid.report.matches import Shown
    from cepheid.report.report import Run, write_report
    from cepheid.runners.local import prepare
    from cepheid.runners.options import Options

    if result is None:
        with stages.timed("match"), explaining_delay():
            result = cepheid.match(events, query, **roles.arguments(), **given)
    plan = prepare(query, events, Options.from_keywords({**roles.arguments(), **given})).plan
    real = None if truth is None or truth_key is None else _real(result, truth, truth_key)
    missed = None
    if real is not None and truth is not None and truth_key is not None:
        found = {key for key, yes in zip(_keys(result, truth_key), real, strict=True) if yes}
        missed = sum(truth.values()) - len(found)
    shown = Shown(result, roles.time, roles.type, roles.lower, roles.upper, plan.bound.equivalence)
    with stages.timed("draw"):
        run = Run(
            query.syntax,
            shown,
            title,
            events.num_rows,
            real,
            missed,
            arcs_of(plan),
            facts(result).get("counters", {}),
            dict(stages.seconds),
            query.explain(events, **roles.arguments(), **given),
        )
        with replacing(output) as beside:
            write_report(beside, run)
    return result


def _real(result: pa.Table, truth: dict[Any, bool], key: str) -> npt.NDArray[np.bool_]:
    return np.array([truth.get(value, False) for value in _keys(result, key)], bool)


def _keys(result: pa.Table, key: str) -> list[Any]:
    """The attribute's value for each match: a column of the result, or of any of its events."""
    from cepheid.report.text import events_of, is_event

    if key in result.column_names:
        return list(result.column(key).to_pylist())
    variables = [field.name for field in result.schema if is_event(field.type)]
    found = []
    for row in result.select(variables).to_pylist():
        values = [event[key] for event in events_of(row, variables) if event.get(key) is not None]
        if not values:
            raise CepheidError(f"the matches have no attribute '{key}'", hint="name one with --truth-key")
        found.append(values[-1])
    return found
