"""Charts from Python: they are drawings that need no network, and say what they show."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, DataError
from cepheid.simulate import retail_visits

DAY = retail_visits(300, loss=0.0, theft=0.3, timestamps=True, seed=1)
FOUND = cepheid.match(DAY.events, DAY.query)
LIKELY = FOUND.append_column("probability", pa.array(np.linspace(0.1, 0.9, FOUND.num_rows)))


def drawing(chart: cepheid.plot.Chart) -> ET.Element:
    """What a notebook shows: a drawing with a role and a name, nothing from elsewhere."""
    svg = chart._repr_mimebundle_()["image/svg+xml"]
    root = ET.fromstring(svg)
    assert (root.get("role"), root.get("aria-label")) == ("img", chart.name)
    assert "http" not in svg.replace("http://www.w3.org", "")
    return root


def test_a_timeline_and_the_way_to_the_rest() -> None:
    first = cepheid.plot.timeline(FOUND, key="tag_id")
    assert first.name == f"Timeline of matches 1 to 40 of {FOUND.num_rows}"
    assert len(list(drawing(first).iter())) > 80
    rest = cepheid.plot.timeline(FOUND.to_pandas(), first=40, limit=10)
    assert rest.name.startswith("Timeline of matches 41 to 50")
    with pytest.raises(DataError, match="no matches to draw from number 9999"):
        cepheid.plot.timeline(FOUND, first=9999)


def test_counts_and_probabilities() -> None:
    assert "matches over time" in cepheid.plot.over_time(FOUND).name
    drawing(cepheid.plot.probabilities(LIKELY, threshold=0.5))
    with pytest.raises(DataError, match="no probability"):
        cepheid.plot.probabilities(FOUND)


def test_calibration_takes_truth_in_three_ways() -> None:
    tags = [row["tag_id"] for row in LIKELY["z"].to_pylist()]
    real = [tag % 2 == 0 for tag in tags]
    by_match = cepheid.plot.calibration(LIKELY, real)
    drawing(by_match)
    by_key = cepheid.plot.calibration(LIKELY, dict(zip(tags, real, strict=True)), key="tag_id")
    table = pd.DataFrame({"tag_id": tags, "real": real})
    by_table = cepheid.plot.calibration(LIKELY, table, key="tag_id", column="real")
    assert by_match.name == by_key.name == by_table.name
    assert f"{FOUND.num_rows:,} matches, {sum(real)} of them real" in by_match.name
    with pytest.raises(DataError, match="values of truth"):
        cepheid.plot.calibration(LIKELY, [True])
    with pytest.raises(CepheidError, match=r"did you mean real\?"):
        cepheid.plot.calibration(LIKELY, table, key="tag_id", column="rael")


def test_a_model_is_drawn_offline_and_saved(tmp_path: Path) -> None:
    model = cepheid.Model(loss=0.1, gaps={"<b>": cepheid.Exponential(mean=5)})
    chart = model.plot()
    drawing(chart)
    for suffix in ("svg", "png", "html", "json"):
        chart.save(tmp_path / f"gaps.{suffix}")
        assert (tmp_path / f"gaps.{suffix}").stat().st_size > 500
    page = (tmp_path / "gaps.html").read_text()
    assert "<script src=" not in page
    with pytest.raises(CepheidError, match=r"use one of \.svg"):
        chart.save(tmp_path / "gaps.docx")
    assert cepheid.plot.gaps(model).name == chart.name
