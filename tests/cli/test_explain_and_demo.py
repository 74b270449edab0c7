"""`cepheid explain` and `cepheid demo`."""

from pathlib import Path

import pytest

from cli.conftest import THEFT, Cepheid


def test_explain_without_and_with_events(cepheid_command: Cepheid, shop: Path) -> None:
    without = cepheid_command("explain", THEFT)
    assert without.code == 0, without.err
    assert "Plan" in without.out
    counted = cepheid_command("explain", THEFT, "-i", shop, "--analyze")
    assert counted.code == 0, counted.err
    assert counted.out.split()[-2:] == ["matches", "1"]


def test_demo_finds_thefts_and_says_how_sure_it_is(cepheid_command: Cepheid, tmp_path: Path) -> None:
    ran = cepheid_command("demo", "--local", "--tags", "2000", "--output", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert "WHERE [tag_id]" in ran.out
    assert "○ not seen" in ran.out
    assert "90% to 100%" in ran.out
    assert "Calibration" in (tmp_path / "demo" / "report.html").read_text()
    assert (tmp_path / "demo" / "model.json").is_file()


@pytest.mark.slow
@pytest.mark.spark
def test_the_stream_on_spark_finds_what_the_batch_finds(cepheid_command: Cepheid, tmp_path: Path) -> None:
    pages = []
    for place in ("spark", "local"):
        flags = ["--local"] if place == "local" else []
        ran = cepheid_command("demo", *flags, "--tags", "1500", "--output", tmp_path / place)
        assert ran.code == 0, ran.err
        pages.append(ran.out[ran.out.index("Some of the matches") : ran.out.index("The report is in")])
    assert pages[0] == pages[1]
