"""The console in a real browser: one writes, it completes and points at errors; matches, why and streams are drawn.

Needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver); left out of `make test`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.cli.progress import StreamNumbers
from cepheid.cli.stream_console import console_watch
from cepheid.console.server import Server
from cepheid.console.workspace import Workspace
from cepheid.files.roles import Roles
from cepheid.simulate import retail_visits
from console_page.browser import KEYS, Browser

pytestmark = pytest.mark.slow

DAY = retail_visits(600, loss=0.0, theft=0.2, timestamps=True, seed=1)
THEFT = "PATTERN SEQ(Shelf x, !(Register y), Exit z)\nWHERE [tag_id]\nWITHIN 12 hours"
HOSTILE = '<img src=x onerror="document.title=1">'
HOSTILE_EVENTS = pa.table({"ts": [1, 2], "type": [HOSTILE, "B"], "id": [HOSTILE] * 2, HOSTILE: ["</svg>", "&amp;"]})
# What is drawn must have a role and a name, or be for the eye only; what can be used must have a name.
DRAWN = """return [...document.querySelectorAll('svg')].filter(svg => svg.getAttribute('aria-hidden') !== 'true' &&
  !(svg.getAttribute('role') === 'img' && svg.getAttribute('aria-label'))).length"""
NAMELESS = """return [...document.querySelectorAll('input, select, button, textarea')].filter(control =>
  !control.labels?.length && !control.getAttribute('aria-label') && !control.getAttribute('aria-labelledby') &&
  !control.textContent.trim()).map(control => control.id)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    workspace = Workspace()
    workspace.add("day", DAY.events)
    workspace.add("hostile", HOSTILE_EVENTS)
    folder = tmp_path_factory.mktemp("incoming")
    pq.write_table(DAY.events.slice(0, 300), folder / "part-0.parquet")
    workspace.open(str(folder))
    running = Server(workspace).start()
    running.folder = folder  # type: ignore[attr-defined]
    yield running
    running.stop()


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(server: Server, window: Browser) -> Browser:
    window.open(server.address)
    window.run("sessionStorage.clear()")
    window.open(server.address)
    window.until("return document.documentElement.dataset.ready")
    window.messages()
    return window


def write(page: Browser, text: str) -> None:
    """Writes a query as a user does, without taking offers."""
    page.run("document.querySelector('#text').value = ''")
    page.type("#text", text + KEYS["Escape"])


def clean(page: Browser) -> None:
    page.until("return document.querySelector('#errors .clean') && !document.querySelector('#run').disabled")


def choose(page: Browser, table: str) -> None:
    page.run(
        "const t = document.querySelector('#table'); t.value = arguments[0]; t.dispatchEvent(new Event('change'))",
        table,
    )


def test_completion_and_errors_while_one_writes(page: Browser) -> None:
    page.type("#text", "PATTERN SEQ(Shelf x, !(Regi")
    page.until("return document.querySelector('#offers li')?.innerText.startsWith('Register')")
    page.type("#text", KEYS["Tab"] + " y), Exit z) WHERE x.categry = 'a' WITHIN 2 hours")
    page.until("return document.querySelector('#errors .error')?.innerText.includes('categry')")
    assert "!(Register y)" in page.run("return document.querySelector('#text').value")
    assert "did you mean 'category'?" in page.text("#errors")
    page.click("#errors .place")  # goes to the place
    assert page.run(
        "const t = document.querySelector('#text'); return t.value.slice(t.selectionStart, t.selectionEnd)"
    ) == ("x.categry")
    assert page.text("#painted .wrong").startswith("x")  # the squiggle stands where the error is
    assert page.run("return document.querySelector('#run').disabled")
    assert page.messages() == []


def test_a_run_is_drawn_and_every_match_can_be_reached(page: Browser) -> None:
    write(page, THEFT)
    clean(page)
    page.click("#run")
    page.until("return document.querySelectorAll('#timeline g.row').length === 40")
    total = int(page.text("#numbers li b").replace(",", ""))
    assert page.text("#place") == f"1 to 40 of {total}"
    page.click("#later")
    page.until("return document.querySelector('#place').innerText.startsWith('41 ')")
    assert page.run(DRAWN) == 0
    page.click("#explain")
    page.until("return document.querySelector('#panel-plan pre')?.innerText.includes('sequence')")
    page.click("#tab-matches")
    assert "tag_id=" in page.text("#panel-matches")
    assert page.messages() == []


def test_why_beside_it(page: Browser) -> None:
    write(page, THEFT.replace("12 hours", "1 second"))
    clean(page)
    page.click("#why")
    page.until("return document.querySelector('#panel-why table')")
    assert "WITHIN 1 second is too short" in page.text("#panel-why")


def test_matches_of_a_stream_arrive(page: Browser) -> None:
    write(page, THEFT)
    clean(page)
    page.run("document.querySelector('#per-second').value = '4000'")
    page.click("#start")
    page.until(
        "return document.querySelectorAll('#timeline circle').length > 20 && document.querySelector('#stop').disabled"
    )
    numbers = page.text("#numbers")
    for name in ("late events", "state", "events per second", "events kept"):
        assert name in numbers
    assert f"{DAY.events.num_rows:,}" in numbers


def test_a_directory_is_watched(page: Browser, server: Server) -> None:
    folder: Path = server.folder  # type: ignore[attr-defined]
    choose(page, str(folder))
    write(page, THEFT)
    clean(page)
    page.click("#watch")
    page.click("#start")
    page.until("return document.querySelector('#numbers b')?.innerText === '300'")
    pq.write_table(DAY.events.slice(300), folder / "part-1.parquet")
    page.until("return document.querySelector('#numbers b').innerText === arguments[0]", f"{DAY.events.num_rows:,}")
    page.click("#stop")


def test_a_stream_that_runs_elsewhere_is_shown(window: Browser) -> None:
    watch = console_watch(Roles(), THEFT)
    watch.matches(cepheid.match(DAY.events, THEFT))
    watch.numbers(StreamNumbers(1, 1658, 3, 142, 800.0, "2024-01-01T09:00:00.000Z", 2000, 3))
    window.open(watch.server.address)
    window.until("return document.querySelectorAll('#timeline circle').length > 20")
    assert window.run("return document.querySelector('#text').value") == THEFT
    assert "2024-01-01 09:00:00.000" in window.text("#numbers")
    watch.end()
    window.messages()


def test_hostile_names_and_values_stay_text(page: Browser) -> None:
    choose(page, "hostile")
    write(page, f"PATTERN SEQ(`{HOSTILE}` a, B b) WHERE [id] WITHIN 5")
    clean(page)
    for button, done in (("#run", "#timeline circle"), ("#why", "#panel-why table"), ("#explain", "#panel-plan pre")):
        page.click(button)
        page.until("return document.querySelector(arguments[0])", done)
    page.type("#text", KEYS["End"] + " AND a.")
    assert page.run("return document.title") == "Cepheid console"
    assert page.run("return document.querySelectorAll('main img').length") == 0
    assert HOSTILE in page.run("return document.querySelector('#timeline').textContent")
    assert page.messages() == []


def test_nothing_is_fetched_from_elsewhere(page: Browser, server: Server) -> None:
    found = page.run("return JSON.stringify(performance.getEntriesByType('resource').map(r => r.name))")
    assert all(name.startswith(f"http://127.0.0.1:{server.port}/") for name in json.loads(found))


def test_it_fits_a_phone_and_the_dark(page: Browser) -> None:
    page.click("#light")
    back = page.run("return getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(20, 24, 28)"
    page.click("#light")
    assert page.run(NAMELESS) == []
    write(page, THEFT)
    clean(page)
    page.click("#run")
    page.until("return document.querySelector('#timeline circle')")
    page.resize(390, 844)
    try:
        needed, there = page.run("const r = document.documentElement; return [r.scrollWidth, r.clientWidth]")
        assert needed <= there <= 390
        page.click("#tab-matches")  # every column of a match can be read without scrolling sideways
        edges = page.run(
            "return [...document.querySelectorAll('.cards td')].map(cell => cell.getBoundingClientRect().right)"
        )
        assert len(edges) > 4
        assert max(edges) <= there
    finally:
        page.resize(0, 0)


def test_another_table_clears_what_was_found(page: Browser) -> None:
    write(page, THEFT)
    clean(page)
    page.click("#run")
    page.until("return document.querySelector('#timeline circle')")
    choose(page, "hostile")
    page.until("return !document.querySelector('#timeline circle')")
    assert page.text("#numbers") == ""
    assert "No query has run" in page.text("#timeline")


def test_who_begins_gets_an_example_columns_and_help(page: Browser, tmp_path: Path) -> None:
    write(page, "")
    page.until("return !document.querySelector('#start-here').hidden && document.querySelector('#example-query')")
    assert "tag_id" in page.text("#column-list")
    assert "SUMMARISE" in page.run("return document.querySelector('#help').textContent")
    page.click("#example-query")
    clean(page)
    page.click("#run")
    page.until("return document.querySelector('#timeline circle')")
    running = Server(Workspace()).start()
    page.open(running.address)
    page.until("return document.querySelector('#example-data')")
    page.click("#example-data")
    page.until("return document.querySelector('#table').value.startsWith('example')")
    running.stop()
    page.messages()


def test_the_timeline_zooms(page: Browser) -> None:
    write(page, THEFT)
    clean(page)
    page.click("#run")
    page.until("return document.querySelector('#timeline circle')")
    place = "return document.querySelector('#timeline rect.span').getAttribute('width')"
    whole = float(page.run(place))
    page.click("#closer")
    assert float(page.run(place)) > 1.5 * whole
    page.click("#whole")
    assert float(page.run(place)) == whole
    page.run("""const chart = document.querySelector('#timeline svg'), box = chart.getBoundingClientRect();
      const at = (kind, x) => chart.dispatchEvent(new PointerEvent(kind, {clientX: x, clientY: box.top + 20}));
      chart.setPointerCapture = () => null;
      at('pointerdown', box.left + box.width * 0.4); at('pointermove', box.left + box.width * 0.5);
      at('pointerup', box.left + box.width * 0.5);""")
    assert float(page.run(place)) > 5 * whole
    assert page.messages() == []


def test_ties_totals_and_row_patterns(window: Browser) -> None:
    workspace = Workspace()
    workspace.add("log", pa.table({"ts": [1, 1, 2], "type": ["A", "B", "C"], "id": [7, 7, 7]}))
    running = Server(workspace).start()
    window.open(running.address)
    window.until("return document.documentElement.dataset.ready")
    write(window, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5")
    clean(window)
    window.click("#run")
    window.until("return !document.querySelector('#remark').hidden")
    window.click("#row-order")
    window.until("return document.querySelectorAll('#timeline circle').length === 2")
    assert window.run("return document.querySelector('#ties').value") == "row"
    write(window, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 SUMMARISE count(*) AS n BY id")
    clean(window)
    window.click("#run")
    window.until("return document.querySelector('#tab-matches').textContent === 'Totals'")
    window.until("return document.querySelector('#panel-matches td')")
    write(window, "MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS t PATTERN (A) DEFINE A AS type = 'C')")
    clean(window)
    window.click("#run")
    window.until("return document.querySelector('#panel-matches th')?.innerText === 't'")
    assert window.messages() == []
    running.stop()


def test_without_its_token_the_page_says_where_it_is(window: Browser, server: Server, tmp_path: Path) -> None:
    other = Server(Workspace()).start()
    window.open(f"http://127.0.0.1:{other.port}/")
    assert "token" in window.text("body")
    window.type("input[name=token]", other.token + KEYS["Enter"])
    window.until("return document.documentElement.dataset.ready")
    other.stop()
    window.messages()


def test_open_partial_matches_have_bars_and_lines(window: Browser, tmp_path: Path) -> None:
    gaps = {"b": cepheid.Exponential(30, happens=0.9), "c": cepheid.Exponential(20)}
    workspace = Workspace(given={"model": cepheid.Model(gaps=gaps)})
    rows = {"ts": [0, 30, 40, 50, 55], "type": ["Order", "Order", "Pay", "Order", "Ship"], "id": [1, 2, 2, 3, 9]}
    workspace.add("orders", pa.table(rows))
    running = Server(workspace).start()
    try:
        window.open(running.address)
        window.run("sessionStorage.clear()")
        window.open(running.address)
        window.until("return document.documentElement.dataset.ready")
        write(window, "PATTERN SEQ(Order a, Pay b, Ship c) WHERE [id] WITHIN 100")
        clean(window)
        window.click("#forecast")
        window.until("return document.querySelectorAll('#panel-open .bar').length === 3")
        assert window.run("return document.querySelectorAll('#panel-open .when').length") == 3
        assert "3 open partial matches at 55" in window.text("#panel-open")
        assert window.run(DRAWN) == 0
        widths = window.run("return [...document.querySelectorAll('.bar .part')].map(r => +r.getAttribute('width'))")
        assert widths == sorted(widths, reverse=True)
        window.screenshot(tmp_path / "open.png")
    finally:
        running.stop()
