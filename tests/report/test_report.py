"""The page: complete, self-contained, safe."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.cli import exit_code
from cepheid.errors import CepheidError
from cepheid.model.check import Check, Comparison
from cepheid.model.forecast_check import AtThreshold, ForecastBin, ForecastCheck
from cepheid.report.matches import Shown
from cepheid.report.report import Run, report_html, write_report

EVENTS = pa.table(
    {"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"], "id": ["<i>k</i>", "<i>k</i>", "</script><b>", "</script><b>"]}
)
QUERY = cepheid.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5")


def html(result: pa.Table, **known: object) -> str:
    return report_html(Run(QUERY.syntax, Shown(result, keys=("id",)), "A <title>", **known))  # type: ignore[arg-type]


def specs(page: str) -> dict[str, dict[str, object]]:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    charts: dict[str, dict[str, object]] = json.loads(found[1])
    return charts


def test_the_page_holds_all_it_needs() -> None:
    page = html(
        cepheid.match(EVENTS, QUERY), events=4, counters={"scanned": 4}, seconds={"match": 0.5}, explained="plan"
    )
    assert set(specs(page)) == {"chart-timeline", "chart-over-time", "chart-operators"}
    outside = re.findall(r'(?:src|href)="(?!#)[^"]+"', re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert outside == []
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "2 matches in 4 events" in page


def test_what_users_wrote_is_escaped() -> None:
    page = html(cepheid.match(EVENTS, QUERY), explained="<plan>")
    assert "<i>k</i>" not in page
    assert "&lt;i&gt;k&lt;/i&gt;" in page
    assert page.count("</script>") == 3  # the light, the data and the code
    assert "<title>A &lt;title&gt;</title>" in page
    assert "&lt;plan&gt;" in page


def test_no_matches_is_a_page_too() -> None:
    page = html(cepheid.match(EVENTS.slice(0, 1), QUERY))
    assert "0 matches" in page
    assert "charts" not in page.split("</style>")[1]


def test_probabilities_and_truth() -> None:
    result = cepheid.match(EVENTS, QUERY).append_column("probability", pa.array([0.9, 0.2]))
    import numpy as np

    page = html(result, truth=np.array([True, False]), missed=3)
    assert {"chart-likelihood", "chart-calibration"} <= set(specs(page))
    assert "real ones not found" in page
    assert "Brier score 0.025" in page


def test_returned_columns_need_no_events() -> None:
    query = cepheid.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.id AS who")
    page = report_html(Run(query.syntax, Shown(cepheid.match(EVENTS, query))))
    assert "who" in page


def test_a_place_that_cannot_be_written() -> None:
    with pytest.raises(CepheidError, match="cannot write the report"):
        write_report("/no/such/place.html", Run(QUERY.syntax, Shown(cepheid.match(EVENTS, QUERY))))


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    from cepheid.simulate import retail_visits

    day = retail_visits(300, loss=0.0, theft=0.1, seed=1)
    pq.write_table(day.events, tmp_path / "events.parquet")
    pq.write_table(day.truth, tmp_path / "truth.parquet")
    target = tmp_path / "page.html"
    arguments = ["report", day.query, "-i", str(tmp_path / "events.parquet"), "-o", str(target)]
    truth = ["--truth", str(tmp_path / "truth.parquet"), "--truth-key", "tag_id", "--truth-column"]
    assert exit_code([*arguments, *truth, "stolen"]) == 0
    assert "real ones not found" in target.read_text()
    assert exit_code([*arguments, *truth, "stole"]) == 1
    assert "did you mean stolen?" in capfd.readouterr().err
    assert exit_code([*arguments, "--truth", "x"]) == 1


@pytest.mark.slow
def test_the_page_says_whether_the_model_fits() -> None:
    fits = Comparison("share seen", "v1", 0.6, 0.61, 900, 0.01, 0.5)
    off = Comparison("share seen", "v2", 0.8, 0.3, 900, 0.5, 1e-9)
    result = cepheid.match(EVENTS, QUERY)
    assert "no deviation is significant" in html(result, check=Check((fits,)))
    page = html(result, check=Check((fits, off)))
    assert "1 of 2 comparisons deviate" in page
    assert page.index("&#x27;v2&#x27;: 30.0% seen") < page.index("&#x27;v1&#x27;: 61.0% seen")
    assert "The model" not in html(result)


@pytest.mark.slow
def test_the_page_judges_forecasts() -> None:
    bins = (ForecastBin(0.2, 0.25, 40), ForecastBin(0.8, 0.75, 60))
    thresholds = (AtThreshold(0.5, 120, 0.8, 0.9, 30.0), AtThreshold(0.99, 0, 0.0, 0.0, 0.0))
    check = Check((), forecasts=ForecastCheck(bins, thresholds, 100, 12))
    page = html(cepheid.match(EVENTS, QUERY), check=check)
    assert "100 forecasts in 12 moments: predicted and observed differ by 0.050 on average" in page
    assert {"chart-forecasts", "chart-thresholds"} <= specs(page).keys()
    assert "80.0%" in page
    assert "90.0%" in page
