"""The report of one run: what was asked, what was found, how sure it is, and what it cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.draw.text import counted, event_parts, events_of, is_event, shared_attributes, value_text, with_durations
from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.printing import to_text
from cepheid.model.check import Check
from cepheid.model.forecast_check import ForecastCheck
from cepheid.model.model_html import notes_html
from cepheid.plan.drawing import Arc, query_svg
from cepheid.report import charts
from cepheid.report.matches import MOST_MATCHES, Shown, calibration, numbers
from cepheid.report.page import Section, numbers_html, page, table_html

_ROWS = 50  # of the table of matches
_COMPARISONS = 12  # of the model with the events


@dataclass(frozen=True)
class Run:
    """All that is known of a run."""

    query: s.QuerySyntax | str  # the text of a row pattern, which has no such syntax
    shown: Shown
    title: str = "Cepheid report"
    events: int | None = None  # how many were read
    truth: npt.NDArray[np.bool_] | None = None  # per match: was it real?
    missed: int | None = None  # real ones that were not found
    arcs: Sequence[Arc] = ()  # ways past unseen events
    counters: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)  # per stage
    explained: str = ""  # the plan
    check: Check | None = None  # what the model predicts, beside what the events show
    notes: Sequence[str] = ()  # what the model's own history did not tell, or did not fit


def write_report(path: str | Path, run: Run) -> None:
    """Writes the page; its directory must exist."""
    try:
        Path(path).write_text(report_html(run), encoding="utf-8")
    except OSError as error:
        raise CepheidError(f"cannot write the report {path}: {error.strerror}") from None


def report_html(run: Run) -> str:
    """The page as text."""
    found = run.shown.result.num_rows
    lead = counted(found, run.shown.noun)
    lead += f" in {run.events:,} events" if run.events is not None else ""
    sections = [Section("summary", "", html=numbers_html(_figures(run)))]
    text = run.query if isinstance(run.query, str) else to_text(run.query)
    sections.append(Section("query", "The query", html=f"<pre>{escape(text)}</pre>"))
    if not isinstance(run.query, str):
        sections.append(_automaton(run.query, run.arcs))
    if found and run.shown.is_timed:
        sections += _matches(run, run.query)
    elif found:
        sections.append(_table(run))
    if run.check is not None or run.notes:
        sections.append(_model(run.check or Check(()), run.notes))
    if run.check is not None and run.check.forecasts is not None:
        sections += _forecasts(run.check.forecasts)
    if run.counters:
        text = "What the engine counted, from the events it scanned to the matches it built."
        sections.append(
            Section("operators", "Operators", text, _timings(run), charts.operator_counts(dict(run.counters)))
        )
    elif run.seconds:
        sections.append(Section("operators", "Time", html=_timings(run)))
    if run.explained:
        plan = f"<details><summary>How it was run</summary><pre>{escape(run.explained)}</pre></details>"
        sections.append(Section("plan", "The plan", html=plan))
    return page(run.title, lead, sections)


def _automaton(query: s.QuerySyntax, arcs: Sequence[Arc]) -> Section:
    drawing = f'<div class="scroll" tabindex="0" role="region" aria-label="automaton">{query_svg(query, arcs)}</div>'
    how = "Events move it from left to right; events in red must not happen in between."
    if arcs:
        how += " Dashed edges skip unseen events; the label is the highest probability still possible."
    return Section("automaton", "The automaton", how, drawing)


def _table(run: Run) -> Section:
    """The result as a table."""
    shown = run.shown
    first = f"The first {_ROWS} of {shown.result.num_rows:,}." if shown.result.num_rows > _ROWS else ""
    title = "Totals" if shown.noun == "total" else "Matches" if shown.noun == "match" else "Rows"
    return Section("matches", title, first, matches_html(shown, _ROWS, run.truth))


def _model(check: Check, notes: Sequence[str]) -> Section:
    """Does the model fit? The deviations first, and what is known of it since it was made."""
    deviating = sum(each.deviates for each in check.comparisons)
    text = "Predictions of the model compared with these events: no deviation is significant."
    if deviating:
        text = (
            f"The model does not fit these events, so the probabilities may be off: {deviating} of "
            f"{len(check.comparisons)} comparisons deviate. Fit it again with `cepheid fit`."
        )
    ranked = sorted(check.comparisons, key=lambda each: (not each.deviates, -each.off))[:_COMPARISONS]
    rows = [["deviates" if each.deviates else "fits", escape(each.text)] for each in ranked]
    text = text if check.comparisons else "These events were not compared with the model."
    table = table_html(["", "seen and predicted"], rows, "model") if rows else ""
    return Section("model", "The model", text, table + notes_html(notes))


def _forecasts(found: ForecastCheck) -> list[Section]:
    """Were they true, and which threshold reports early enough and is right often enough?"""
    text = (
        "Of the partial matches said to complete with 70 %, about 70 % should. "
        f"{found.text[0].upper()}{found.text[1:]} on average."
    )
    said = "What FORECAST with a threshold would have reported: the share of the reports that completed (precision), "
    said += "the share of the matches that were reported before they were complete (recall), and how long before."
    rows = [
        [f"{each.threshold:.0%}", f"{each.reports:,}", f"{each.precision:.1%}", f"{each.recall:.1%}", f"{each.lead:,g}"]
        for each in found.thresholds
    ]
    table = table_html(["threshold", "reports", "precision", "recall", "median lead time"], rows, "thresholds")
    bins = [{"said": each.predicted, "true": each.observed, "matches": each.count} for each in found.bins]
    chart = charts.forecast_reliability(bins)
    return [
        Section("forecasts", "Forecasts", text, chart=chart),
        Section("thresholds", "Thresholds", said, table, charts.thresholds(found.thresholds)),
    ]


def _figures(run: Run) -> list[tuple[str, str]]:
    shown = run.shown
    figures = [(counted(0, shown.noun).removeprefix("0 "), f"{shown.result.num_rows:,}")]
    if run.events is not None:
        figures.append(("events read", f"{run.events:,}"))
    if shown.likelihood is not None and shown.result.num_rows:
        expected = float(numbers(shown.result.column(shown.likelihood)).sum())
        figures.append(("real ones expected", f"{expected:,.1f}"))
    if run.truth is not None:
        figures.append(("real ones", f"{int(run.truth.sum()):,}"))
    if run.missed is not None:
        figures.append(("real ones not found", f"{run.missed:,}"))
    if run.seconds:
        figures.append(("seconds", f"{sum(run.seconds.values()):.1f}"))
    return figures


def _matches(run: Run, query: s.QuerySyntax | str) -> list[Section]:
    shown = run.shown
    text = "One row per match. Dots are events; hollow dots are events that were not seen."
    if shown.upper is not None:
        text = "One row per match. Bars are the intervals in which events may have happened."
    found = shown.result.num_rows
    if found > charts.ROWS:
        held = f"all {found:,}" if found <= MOST_MATCHES else f"{MOST_MATCHES:,} of the {found:,}, evenly spread"
        text += f" {charts.ROWS} matches are drawn at a time; the page holds {held}: turn pages, or search for a match."
    if found > MOST_MATCHES:
        text += " All of them are in the result itself: `cepheid run` with --output writes it."
    sections = [Section("timeline", "Timeline", text, chart=charts.timeline(shown))]
    sections.append(Section("over-time", "Matches over time", chart=charts.match_counts(shown)))
    if shown.likelihood is not None and not isinstance(query, str):
        title = shown.likelihood.capitalize()
        threshold = query.threshold if shown.likelihood == "probability" else query.confidence
        line = " The dashed line is the threshold." if threshold is not None else ""
        text = f"Distribution of match {shown.likelihood}.{line}"
        sections.append(Section("likelihood", title, text, chart=charts.likelihoods(shown, threshold)))
        if run.truth is not None:
            found = calibration(numbers(shown.result.column(shown.likelihood)), run.truth)
            text = (
                "Of the matches said to be 70 % likely, about 70 % should be real. "
                f"Calibration error {found.error:.3f}, Brier score {found.brier:.3f}."
            )
            chart = charts.reliability(found, shown.likelihood)
            sections.append(Section("calibration", "Calibration", text, chart=chart))
    return [*sections, _table(run)]


def matches_html(shown: Shown, limit: int, truth: npt.NDArray[np.bool_] | None = None) -> str:
    """The first matches as a table."""
    result = with_durations(shown.result.slice(0, limit))
    rows = result.to_pylist()
    variables = shown.variables
    shared = shared_attributes([events_of(row, variables) for row in rows], {shown.time, shown.type})
    hidden = {shown.type, *shared}
    columns = [*shared, *shown.result.column_names, *(["real"] if truth is not None else [])]
    lines = []
    for number, row in enumerate(rows):
        events = events_of(row, variables)
        line = [escape(value_text(events[0][name])) if events else "" for name in shared]
        line += [_cell(row[f.name], f, row.get("match_start"), shown.time, hidden) for f in result.schema]
        if truth is not None:
            line.append("yes" if truth[number] else "no")
        lines.append(line)
    return table_html(columns, lines, "matches")


def _cell(value: Any, column: pa.Field, start: object, time: str, hidden: Collection[str | None]) -> str:
    if value is None:
        return '<span class="unseen">○ not seen</span>' if is_event(column.type) else ""
    if is_event(column.type):
        events = value if isinstance(value, list) else [value]
        texts = [" ".join(f"{n}={v}" if n else v for n, v in event_parts(e, time, hidden, start)) for e in events]
        if len(texts) > 4:
            texts = [*texts[:2], f"… {len(texts) - 3} more …", texts[-1]]
        return "<br/>".join(escape(text) for text in texts)
    if column.name in ("probability", "confidence"):
        return f"{value:.3f}"
    return escape(value_text(value, None if column.name == "match_start" else start))


def _timings(run: Run) -> str:
    if not run.seconds:
        return ""
    rows = [[escape(name), f"{seconds:.2f} s"] for name, seconds in run.seconds.items()]
    return table_html(["stage", "time"], rows, "time per stage")
