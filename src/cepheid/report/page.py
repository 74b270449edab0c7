"""The page: everything in one file, so that it opens offline and can be sent by mail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from cepheid.report.charts import altair


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, a sentence, and HTML or a chart."""

    name: str  # of the element, as in #timeline
    title: str
    text: str = ""
    html: str = ""
    chart: object = None  # an altair chart


STYLE = """
:root { color-scheme: light; --text: #1d2329; --muted: #5b6670; --line: #d5dbe1; --back: #ffffff;
  --panel: #f5f7f9; --never: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root:not([data-light]) { color-scheme: dark; --text: #e6e9ec; --muted: #9aa5af; --line: #3a434c; --back: #14181c;
    --panel: #1d2329; --never: #ff8a7a; }
}
:root[data-light="dark"] { color-scheme: dark; --text: #e6e9ec; --muted: #9aa5af; --line: #3a434c; --back: #14181c;
  --panel: #1d2329; --never: #ff8a7a; }
#light { float: right; font: inherit; font-size: .85rem; color: var(--text); background: var(--panel);
  border: 1px solid var(--line); border-radius: 5px; padding: .15rem .6rem; cursor: pointer; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; color: var(--text); background: var(--back);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
p { margin: .25rem 0 .75rem; color: var(--muted); }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow-x: auto; }
figure { margin: 0; } .chart { width: 100%; min-height: 3rem; } .scroll { overflow-x: auto; }
.numbers { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0; padding: 0; list-style: none; }
.numbers li { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .5rem .75rem; }
.numbers b { display: block; font-size: 1.3rem; line-height: 1.2; }
.numbers span { color: var(--muted); font-size: .85rem; }
table { border-collapse: collapse; font-size: .875rem; } th, td { text-align: left; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; } td.number { text-align: right; }
.unseen { color: var(--muted); font-style: italic; } .negative { fill: var(--never); }
.controls { margin: .25rem 0 .5rem; display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; }
.vega-bind { display: flex; align-items: center; gap: .4rem; } .vega-bind input { font: inherit; }
.vega-embed { width: 100%; } .vega-embed details { display: none; }
"""

# Draws every chart with the page's own colours, again when the reader's light changes; failures are shown, not hidden.
DRAW = """
const charts = JSON.parse(document.getElementById("charts").textContent);
const light = window.matchMedia("(prefers-color-scheme: dark)");
function colours() {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--text").trim(), line = style.getPropertyValue("--line").trim();
  const axis = {labelColor: text, titleColor: text, gridColor: line, domainColor: line, tickColor: line,
                titleFontWeight: "normal"};
  return {background: "transparent", axis, legend: {labelColor: text, titleColor: text}, title: {color: text},
          view: {stroke: line}, font: "system-ui, sans-serif"};
}
async function draw() {
  let drawn = 0;
  for (const [name, spec] of Object.entries(charts)) {
    const place = document.getElementById(name);
    try {
      const controls = document.getElementById(name.replace("chart-", "controls-"));
      controls.replaceChildren();
      const options = {config: colours(), renderer: "svg", actions: false, bind: controls};
      await vegaEmbed(place, spec, options);
      const drawing = place.querySelector("svg");
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", spec.description);
      drawn += 1;
    } catch (error) {
      place.textContent = "This chart could not be drawn: " + error;
      document.documentElement.dataset.failed = name + ": " + error;
    }
  }
  document.documentElement.dataset.drawn = drawn;
}
document.addEventListener("light", draw);
window.addEventListener("error", event => { document.documentElement.dataset.failed = event.message; });
light.addEventListener("change", draw);
draw();
"""


# The button that turns the light on and off, beside what the reader's system prefers.
LIGHT = """
const button = document.getElementById("light"), preferred = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.light ?? (preferred.matches ? "dark" : "bright")) === "dark";
const show = () => button.setAttribute("aria-pressed", isDark() ? "true" : "false");
button.addEventListener("click", () => {
  document.documentElement.dataset.light = isDark() ? "bright" : "dark";
  show();
  document.dispatchEvent(new Event("light"));
});
preferred.addEventListener("change", show);
show();
"""


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole page as HTML."""
    charts = {f"chart-{section.name}": _spec(section.chart) for section in sections if section.chart is not None}
    body = "\n".join(_section(section) for section in sections)
    scripts = ""
    if charts:
        data = json.dumps(charts, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        scripts = (
            f'<script type="application/json" id="charts">{data}</script>\n'
            f'<script type="module">{_bundle()}\n{DRAW}</script>'
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        '<button id="light" type="button" aria-pressed="false">Dark</button>\n'
        f"<h1>{escape(title)}</h1>\n<p>{escape(lead)}</p>\n{body}\n</main>\n"
        f'<script type="module">{LIGHT}</script>\n{scripts}\n</body>\n</html>\n'
    )


def _section(section: Section) -> str:
    text = f"<p>{escape(section.text)}</p>\n" if section.text else ""
    chart = ""
    if section.chart is not None:
        controls = f'<div class="controls" id="controls-{section.name}"></div>'
        place = f'{controls}<div class="chart" id="chart-{section.name}"></div>'
        chart = f'<figure aria-labelledby="{section.name}-title">{place}</figure>\n'
    heading = f'<h2 id="{section.name}-title">{escape(section.title)}</h2>\n' if section.title else ""
    return f'<section id="{section.name}">\n{heading}{text}{chart}{section.html}\n</section>'


def _spec(chart: Any) -> dict[str, object]:
    spec: dict[str, object] = chart.to_dict()
    spec.pop("config", None)  # the page sets its own
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the package: nothing is loaded from the network."""
    altair()  # the error that names both packages
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version="6.4")
    return bundle.replace("</script", "<\\/script")


def numbers_html(numbers: Sequence[tuple[str, str]]) -> str:
    """Figures with what they count, side by side."""
    items = "".join(f"<li><b>{escape(value)}</b><span>{escape(name)}</span></li>" for name, value in numbers)
    return f'<ul class="numbers">{items}</ul>'


def table_html(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table that scrolls sideways on its own where the screen is narrow. Cells are HTML already."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    name = escape(caption, quote=True)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
