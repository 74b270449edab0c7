"""The charts of a report, as Vega-Lite. Colours of text and lines are the page's, set when it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cepheid.errors import CepheidError
from cepheid.model.forecast_check import AtThreshold
from cepheid.report.matches import Calibration, Shown, counts_over_time, likelihood_counts, numbers, timeline_rows

Chart = Any  # an altair chart; altair is an extra
ROWS = 40  # matches that the timeline draws at a time
WIDTH = 520  # of charts that stand above each other, which cannot fill the page
_BAR = "#7aa6c2"
# One way to write times, the tables' own: 24 hours, dates as in ISO 8601; a tick says what changes there.
CLOCK = {
    "year": "%Y",
    "quarter": "%Y-%m",
    "month": "%Y-%m",
    "week": "%Y-%m-%d",
    "date": "%Y-%m-%d",
    "day": "%Y-%m-%d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
    "milliseconds": "%H:%M:%S.%L",
}


def altair() -> Any:
    """The altair module, or an error that says how to get it."""
    try:
        import altair
    except ImportError:
        hint = "pip install 'cepheid[report]'"
        raise CepheidError("reports need the packages altair and vl-convert-python", hint=hint) from None
    return altair


def timeline(shown: Shown, interactive: bool = True) -> Chart:
    """One row per match: a bar from its first event to its last, its events on it; unseen ones are hollow.

    An interactive one has controls to look for a match, to turn to further ones, and to leave out unlikely ones.
    """
    alt = altair()
    bars, marks = timeline_rows(shown)
    kind = "T" if shown.is_timestamp else "Q"
    find = alt.param(name="find", value="", bind=alt.binding(input="search", name="Find a match ", placeholder="key"))
    params = [find] if interactive else []
    wanted = "find == '' || indexof(lower(datum.match), lower(find)) >= 0"
    pages = -(-len(bars) // ROWS)
    if interactive and pages > 1:  # the way to the rest
        numbered = alt.binding_range(min=1, max=pages, step=1, name="Page ")
        params.append(alt.param(name="page", value=1, bind=numbered))
    if interactive and shown.likelihood is not None:
        slider = alt.binding_range(min=0, max=1, step=0.01, name=f"Smallest {shown.likelihood} ")
        params.append(alt.param(name="smallest", value=0, bind=slider))
    names = list(dict.fromkeys(mark["variable"] for mark in marks))
    likely = {bar["match"]: bar.get("likely") for bar in bars}
    for mark in marks:
        mark["likely"] = likely[mark["match"]]

    def rows(values: list[dict[str, Any]]) -> Chart:
        chart = alt.Chart(alt.InlineData(values=values))
        if not interactive:
            return chart
        chart = chart.transform_filter(wanted)
        if shown.likelihood is not None:
            chart = chart.transform_filter("datum.likely >= smallest")
        ranked = [alt.WindowFieldDef(op="dense_rank", **{"as": "place"})]
        here = f"ceil(datum.place / {ROWS}) == page" if pages > 1 else "true"
        return chart.transform_window(ranked, sort=[alt.SortField("rank")]).transform_filter(here)

    y = alt.Y("match:N", sort=alt.EncodingSortField("rank", order="ascending"), title=None)
    x = alt.X(f"from:{kind}", title=shown.lower or shown.time, **_clock(alt, shown, ticks=5))
    tips = ["match:N", "begins:N", "ends:N"] + (["likely:Q"] if shown.likelihood else [])
    spans = (
        rows(bars).mark_bar(height=4, color=_BAR).encode(x=x, x2="to", y=y, tooltip=[_tip(alt, tip) for tip in tips])
    )
    if shown.likelihood is not None:  # the less likely, the paler
        spans = spans.encode(
            opacity=alt.Opacity("likely:Q", scale=alt.Scale(domain=[0, 1], range=[0.2, 1]), legend=None)
        )
    colour = alt.Color("variable:N", sort=names, title="event", legend=alt.Legend(orient="top"))
    tip = [alt.Tooltip("variable:N", title="event"), alt.Tooltip("event:N", title="what")]
    layers = [spans]
    if shown.upper is not None:
        intervals = rows([mark for mark in marks if mark["seen"]])
        layers.append(
            intervals.mark_bar(height=10, opacity=0.35).encode(
                x=f"from:{kind}", x2="to", y=y, color=colour, tooltip=tip
            )
        )
    points = rows(marks).encode(x=f"at:{kind}", y=y, color=colour, tooltip=tip)
    layers.append(points.transform_filter("datum.seen").mark_point(filled=True, size=70, opacity=1))
    layers.append(points.transform_filter("!datum.seen").mark_point(filled=False, size=90, strokeWidth=2, opacity=1))
    return (
        alt.layer(*layers)
        .add_params(*params)
        .properties(
            width="container",
            height=alt.Step(20),
            description="Timeline: one row per match, a bar from its first event to its last, and a dot for each event",
        )
    )


def _clock(alt: Any, shown: Shown, ticks: int) -> dict[str, object]:
    """The axis of time. The scale is UTC: times have no zone here, and the reader's own would move them."""
    axis = {"labelOverlap": True, "tickCount": ticks}
    if not shown.is_timestamp:
        return {"axis": alt.Axis(**axis)}
    return {"axis": alt.Axis(**axis, format=CLOCK), "scale": alt.Scale(type="utc")}


def _tip(alt: Any, field: str) -> Any:
    name = field.split(":")[0]
    return alt.Tooltip(field, format=".3f", title="probability") if name == "likely" else alt.Tooltip(field)


def match_counts(shown: Shown) -> Chart:
    """How many matches ended when."""
    alt = altair()
    kind = "T" if shown.is_timestamp else "Q"
    return (
        alt.Chart(alt.InlineData(values=counts_over_time(shown)))
        .mark_bar(color=_BAR)
        .encode(
            x=alt.X(f"from:{kind}", title="end of the match", **_clock(alt, shown, ticks=6)),
            x2="to",
            y=alt.Y("matches:Q", title="matches"),
            y2=alt.datum(0),
            tooltip=["begins:N", "ends:N", "matches:Q"],
        )
        .properties(width="container", height=160, description="Number of matches over time")
    )


def likelihoods(shown: Shown, threshold: float | None = None) -> Chart:
    """How many matches are how likely, and where the threshold lies."""
    alt = altair()
    assert shown.likelihood is not None
    values = likelihood_counts(numbers(shown.result.column(shown.likelihood)))
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(color=_BAR)
        .encode(
            x=alt.X("from:Q", title=shown.likelihood, scale=alt.Scale(domain=[0, 1])),
            x2="to",
            y=alt.Y("matches:Q", title="matches"),
            y2=alt.datum(0),
            tooltip=["from:Q", "to:Q", "matches:Q"],
        )
    )
    if threshold is not None:
        line = alt.Chart(alt.InlineData(values=[{"from": threshold}])).mark_rule(strokeDash=[4, 3], color="#c0392b")
        bars = bars + line.encode(x="from:Q")
    return bars.properties(
        width="container", height=160, description=f"Distribution of the {shown.likelihood} of matches"
    )


def reliability(found: Calibration, likelihood: str) -> Chart:
    """What was said against what was true; on the diagonal lies the truth."""
    return _reliability(found.bins, f"{likelihood} reported", "share that was true")


def forecast_reliability(bins: list[dict[str, Any]]) -> Chart:
    """The same of forecasts, against the share that completed."""
    return _reliability(bins, "forecast", "share that completed")


def _reliability(bins: list[dict[str, Any]], said: str, true: str) -> Chart:
    alt = altair()
    diagonal = alt.Chart(alt.InlineData(values=[{"said": 0, "true": 0}, {"said": 1, "true": 1}]))
    points = alt.Chart(alt.InlineData(values=bins)).encode(
        x=alt.X("said:Q", title=said, scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("true:Q", title=true, scale=alt.Scale(domain=[0, 1])),
        tooltip=[alt.Tooltip("said:Q", format=".3f"), alt.Tooltip("true:Q", format=".3f"), "matches:Q"],
    )
    size = alt.Size("matches:Q", legend=alt.Legend(orient="top"), scale=alt.Scale(range=[30, 400]))
    return alt.layer(
        diagonal.mark_line(strokeDash=[4, 3], color="#888", clip=True).encode(x="said:Q", y="true:Q"),
        points.mark_line(color=_BAR),
        points.mark_circle(color=_BAR, opacity=1).encode(size=size),
    ).properties(width="container", height=240, description=f"Reported probabilities against the {true}")


def thresholds(found: Sequence[AtThreshold]) -> Chart:
    """Precision, recall and lead time by threshold."""
    alt = altair()
    shares = [
        {"threshold": each.threshold, "share": getattr(each, name), "what": name}
        for each in found
        if each.reports
        for name in ("precision", "recall")
    ]
    leads = [{"threshold": each.threshold, "lead": each.lead} for each in found if each.reports]
    x = alt.X("threshold:Q", title="threshold", scale=alt.Scale(domain=[0.5, 1.0]), axis=alt.Axis(format="%"))
    upper = (
        alt.Chart(alt.InlineData(values=shares))
        .mark_line(point=True)
        .encode(
            x=x,
            y=alt.Y("share:Q", title="share", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
            color=alt.Color("what:N", title=None, legend=alt.Legend(orient="top")),
            tooltip=["what:N", alt.Tooltip("threshold:Q", format=".0%"), alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=WIDTH, height=180)
    )
    lower = (
        alt.Chart(alt.InlineData(values=leads))
        .mark_line(point=True, color=_BAR)
        .encode(x=x, y=alt.Y("lead:Q", title="median lead time"), tooltip=["threshold:Q", "lead:Q"])
        .properties(width=WIDTH, height=120)
    )
    return alt.vconcat(upper, lower).properties(description="Precision, recall and lead time by threshold")


def operator_counts(counters: dict[str, int]) -> Chart:
    """How many events or combinations each step of the engine saw."""
    alt = altair()
    values = [{"step": name.replace("_", " "), "count": number} for name, number in counters.items() if number > 0]
    return (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(color=_BAR)
        .encode(
            x=alt.X(
                "count:Q", scale=alt.Scale(type="symlog"), title="count (logarithmic)", axis=alt.Axis(labelOverlap=True)
            ),
            y=alt.Y("step:N", sort=None, title=None),
            tooltip=["step:N", alt.Tooltip("count:Q", format=",")],
        )
        .properties(width="container", height=alt.Step(22), description="What each step of the engine counted")
    )
