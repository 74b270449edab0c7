"""`cepheid report`: a query's matches as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

import cepheid
from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading, Records, Search
from cepheid.cli.messages import explaining_delay, out
from cepheid.cli.outputs import ASIDE, check_outputs, replacing
from cepheid.cli.query_argument import arguments_of, query_files, time_column
from cepheid.cli.stages import Stages
from cepheid.errors import CepheidError
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files
from cepheid.files.roles import Roles
from cepheid.model.check import Check
from cepheid.pattern_query import PatternQuery
from cepheid.report.matches import truth_of

_Page = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Output path of the page.")]
_Title = Annotated[str | None, typer.Option(metavar="TEXT", help="The page's heading.")]
_Truth = Annotated[
    str | None, typer.Option("--truth", metavar="PATH", help="A table of the true matches, for calibration.")
]
_TruthKey = Annotated[str | None, typer.Option(metavar="COLUMN", help="The attribute that identifies a match.")]
_TruthColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that is true for real matches.")]


def report(
    query: o.QueryArgument,
    input: o.Inputs,
    output: _Page = Path("report.html"),
    title: _Title = None,
    truth: _Truth = None,
    truth_key: _TruthKey = None,
    truth_column: _TruthColumn = None,
    *,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
    search: Search,
    engine: o.EngineName = "auto",
    records: Records,
) -> None:
    """Run a query and write its matches as one HTML page that works offline.

    The page has a timeline, counts over time, probabilities, the automaton, and the events of each step. With --truth,
    it also shows whether the probabilities are calibrated.

    Example:

        cepheid report shoplifting.cepheid -i events.parquet -o thefts.html --model store.json
    """
    if truth is not None and (truth_key is None or truth_column is None):
        hint = "for example --truth-key tag_id --truth-column stolen"
        raise CepheidError("--truth needs --truth-key and --truth-column", hint=hint)
    if output.is_dir():
        raise CepheidError(f"--output {output} is a directory", hint=f"write {output / 'report.html'}")
    files = reading.files(input)
    reads = [*files.addresses, *query_files(query), search.model, truth, settings.functions]
    check_outputs({"--output": output, ASIDE: records.aside}, reads)
    if output.suffix.lower() not in (".html", ".htm"):
        raise CepheidError(
            f"--output {output}: a report is a page of HTML", hint=f"write {output.with_suffix('.html')}"
        )
    parsed = settings.read(query)
    if truth is not None and (not isinstance(parsed, cepheid.Query) or parsed.unit == "total"):
        raise CepheidError("--truth is a list of single matches", hint="leave out --truth, or SUMMARISE")
    stages, roles = Stages(), columns.roles()
    with stages.timed("read"):
        events = reading.events(files, time_column(parsed, roles), parse_times=records.parse_times)
    given = {"engine": engine, **records.options(reading.time_format), **search.given()}
    known = None
    if truth is not None and truth_key is not None and truth_column is not None:
        known = read_truth(truth, truth_key, truth_column)
    if isinstance(parsed, cepheid.Query):
        write_page(
            output, parsed, events, roles, given, stages, title or f"Matches of {_name(query)}", truth_key, known
        )
    else:
        write_pattern_page(output, parsed, events, arguments_of(parsed, roles, given), stages, title)
    out.print(f"the report is in {output}", soft_wrap=True)


def write_pattern_page(
    output: Path, query: PatternQuery, events: pa.Table, given: dict[str, Any], stages: Stages, title: str | None
) -> None:
    """The page of a clause or a Flink pattern: its text, its rows and how it was run."""
    from cepheid.report.matches import Shown
    from cepheid.report.report import Run, write_report

    with stages.timed("match"), explaining_delay():
        result = query.match(events, **given)
    run = Run(
        str(query),
        Shown(result, unit=query.unit),
        title or ("Matches of the pattern" if query.unit == "match" else "Rows of the clause"),
        events.num_rows,
        seconds=dict(stages.seconds),
        explained=query.explain(events, **given),
    )
    with replacing(output) as beside:
        write_report(beside, run)


def _name(query: str) -> str:
    path = Path(query)
    return path.stem if path.suffix == ".cepheid" else "the query"


def read_truth(path: str, key: str, column: str) -> dict[object, bool]:
    """Which keys are real."""
    return truth_of(read_events(find_files([path]), parse_times=False), key, column)


def check_of(query: cepheid.Query, events: pa.Table, roles: Roles, given: dict[str, Any]) -> Check | None:
    """What the model predicts of the events beside what they show; None where there is nothing to compare."""
    if given.get("model") is None or roles.lower is not None or roles.existence is not None:
        return None
    options = {name: value for name, value in given.items() if name not in ("model", "scoring", "engine")}
    try:
        check: Check = given["model"].check(events, query, **roles.arguments(), **options)
    except CepheidError:  # a page about matches does not fail because the model cannot be judged
        return None
    return check if check.comparisons else None


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
    from cepheid.report.matches import Shown, keys_of
    from cepheid.report.report import Run, write_report
    from cepheid.runners.local import prepare
    from cepheid.runners.options import Options

    if result is None:
        with stages.timed("match"), explaining_delay():
            result = cepheid.match(events, query, **roles.arguments(), **given)
    plan = prepare(query, events, Options.from_keywords({**roles.arguments(), **given})).plan
    shown = Shown(result, roles.time, roles.type, roles.lower, roles.upper, plan.bound.equivalence)
    real, missed = None, None
    if truth is not None and truth_key is not None:
        keys = keys_of(shown, truth_key)
        real = np.array([truth.get(key, False) for key in keys], bool)
        missed = sum(truth.values()) - len({key for key, yes in zip(keys, real, strict=True) if yes})
    with stages.timed("check"):
        check = check_of(query, events, roles, given)
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
            check,
            given["model"].notes if given.get("model") is not None else (),
        )
        with replacing(output) as beside:
            write_report(beside, run)
    return result
