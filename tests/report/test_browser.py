"""The page in a real browser: every chart is drawn, nothing fails, it fits a phone, it is readable in the dark.

Needs chromium (Debian: apt-get install chromium); left out of `make test`.
"""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.plan.drawing import Arc
from cepheid.report.matches import Shown
from cepheid.report.report import Run, write_report
from cepheid.simulate import retail_visits
from console_page.browser import Browser

pytestmark = pytest.mark.slow

# Looks at the report from outside, in a frame as wide as a phone, and writes what it saw into the title.
WATCHER = """<!doctype html><iframe id="page" src="REPORT" style="width: WIDTHpx; height: 3000px; border: 0"></iframe>
<script>
const label = element => element.getAttribute("aria-label") || "";
const unfilled = mark => ["transparent", "none"].includes(mark.getAttribute("fill"));
const nameless = control => !control.labels?.length && !label(control) && !control.textContent.trim();
const frame = document.getElementById("page");
const wait = setInterval(() => {
  const page = frame.contentDocument, root = page && page.documentElement;
  if (!root || (!root.dataset.drawn && !root.dataset.failed)) return;
  clearInterval(wait);
  const style = frame.contentWindow.getComputedStyle;
  const controls = [...page.querySelectorAll("input, select, button, summary")];
  const seen = {
    drawn: Number(root.dataset.drawn), failed: root.dataset.failed || null,
    width: root.clientWidth, needed: root.scrollWidth,
    charts: [...page.querySelectorAll(".chart svg")].map(svg => svg.getAttribute("role") === "img" ? label(svg) : ""),
    clock: [...page.querySelectorAll("#chart-timeline .role-axis-label text")].map(text => text.textContent),
    marks: page.querySelectorAll("#chart-timeline path").length,
    hollow: [...page.querySelectorAll("#chart-timeline path[aria-label]")].filter(unfilled).length,
    unnamed: controls.filter(nameless).length,
    controls: controls.length,
    text: style(page.body).color, back: style(page.body).backgroundColor,
    axis: page.querySelector("#chart-timeline .role-axis text")?.getAttribute("fill"),
  };
  document.title = JSON.stringify(seen);
}, 50);
</script>"""


def chromium(*arguments: str) -> str:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert browser, "these tests need chromium: apt-get install chromium"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    day = retail_visits(400, loss=0.0, theft=0.2, timestamps=True, seed=1)
    result = cepheid.match(day.events, day.query)
    unseen = pa.array([None, *result["x"].to_pylist()[1:]], result.schema.field("x").type)
    result = result.set_column(result.column_names.index("x"), "x", unseen)
    likely = np.linspace(0.1, 1.0, result.num_rows)
    result = result.append_column("probability", pa.array(likely))
    path = tmp_path_factory.mktemp("report") / "report.html"
    run = Run(
        cepheid.query(day.query).syntax,
        Shown(result, keys=("tag_id",)),
        "A day in the store",
        day.events.num_rows,
        likely > 0.4,
        2,
        [Arc(-1, 1, "x unseen: at most 0.1")],
        {"scanned": 900, "constructed": 20},
        {"match": 0.1},
        "the plan",
    )
    write_report(path, run)
    return path


def watched(report: Path, width: int, *arguments: str) -> dict[str, Any]:
    watcher = report.parent / f"watch-{width}.html"
    watcher.write_text(WATCHER.replace("REPORT", report.name).replace("WIDTH", str(width)))
    page = chromium("--virtual-time-budget=20000", *arguments, "--dump-dom", watcher.as_uri())
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    assert title is not None, "the page was never drawn"
    seen: dict[str, Any] = json.loads(unescape(title[1]))
    return seen


def test_every_chart_is_drawn_and_named(report: Path) -> None:
    seen = watched(report, 1000)
    assert seen["failed"] is None
    assert seen["drawn"] == 5
    assert len(seen["charts"]) == 5
    assert all(seen["charts"]), seen["charts"]
    assert seen["marks"] > 20
    assert seen["hollow"] == 1
    assert [text for text in seen["clock"] if re.fullmatch(r"\d\d:\d\d", text)]
    assert not [text for text in seen["clock"] if "AM" in text or "PM" in text]


def test_controls_have_names(report: Path) -> None:
    seen = watched(report, 1000)
    assert seen["controls"] >= 3
    assert seen["unnamed"] == 0


def test_it_fits_a_phone(report: Path) -> None:
    seen = watched(report, 390)
    assert seen["failed"] is None
    assert seen["needed"] <= seen["width"] <= 390


def brightness(colour: str) -> float:
    if colour.startswith("#"):
        return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) / 3
    red, green, blue = [int(part) for part in re.findall(r"\d+", colour)[:3]]
    return (red + green + blue) / 3


@pytest.mark.parametrize(("scheme", "dark"), [("0", True), ("1", False)])
def test_text_stands_out_in_light_and_dark(report: Path, scheme: str, dark: bool) -> None:
    seen = watched(report, 1000, f"--blink-settings=preferredColorScheme={scheme}")
    assert (brightness(seen["back"]) < 100) is dark
    for colour in (seen["text"], seen["axis"]):
        assert abs(brightness(colour) - brightness(seen["back"])) > 120


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    offline = watched(report, 1000, "--host-resolver-rules=MAP * ~NOTFOUND")
    assert offline["drawn"] == 5


def test_the_light_can_be_switched_and_pages_turned(report: Path, tmp_path: Path) -> None:
    page = Browser(tmp_path)
    try:
        page.open(report.as_uri())
        page.until("return document.documentElement.dataset.drawn === '5'")
        back = "return getComputedStyle(document.body).backgroundColor"
        axis = "return document.querySelector('#chart-timeline .role-axis text').getAttribute('fill')"
        before, ink = page.run(back), page.run(axis)
        page.click("#light")
        page.until(f"{axis} !== arguments[0]", ink)
        assert brightness(page.run(back)) < brightness(before)
        first = page.run("return document.querySelector('#chart-timeline').textContent")
        turn = "const s = document.querySelector('#controls-timeline input[max][step=\"1\"]'); s.value = 2; "
        page.run(turn + "s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change'))")
        page.until("return document.querySelector('#chart-timeline').textContent !== arguments[0]", first)
        assert page.run("return document.documentElement.dataset.failed ?? ''") == ""
        assert [text for text in page.messages() if '"WARN"' not in text] == []  # Vega's own remarks
    finally:
        page.close()
