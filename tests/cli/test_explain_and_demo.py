"""`cepheid explain` and `cepheid demo`."""

from pathlib import Path

from cli.conftest import THEFT, Cepheid


def test_explain_without_and_with_events(cepheid_command: Cepheid, shop: Path) -> None:
    without = cepheid_command("explain", THEFT)
    assert without.code == 0, without.err
    assert "Physical plan" in without.out
    counted = cepheid_command("explain", THEFT, "-i", shop, "--analyze")
    assert counted.code == 0, counted.err
    assert counted.out.split()[-2:] == ["matches", "1"]


def test_demo_finds_the_thefts(cepheid_command: Cepheid) -> None:
    ran = cepheid_command("demo", "--tags", "200")
    assert ran.code == 0, ran.err
    assert "WHERE [tag_id]" in ran.out
    assert "wrongly accused: 0" in ran.out
