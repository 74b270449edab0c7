"""`cepheid simulate`: every scenario, every option."""

import inspect
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.cli.simulate import EXAMPLES, parse_gap
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files
from cepheid.simulate import SCENARIOS, retail_visits
from cli.conftest import Cepheid


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_scenario_writes_events_and_its_query(cepheid_command: Cepheid, tmp_path: Path, name: str) -> None:
    events, query = tmp_path / "events.parquet", tmp_path / "query.cepheid"
    ran = cepheid_command("simulate", name, "200", "-o", events, "--query", query, "--seed", "3")
    assert ran.code == 0, ran.err
    expected = SCENARIOS[name](200, seed=3)
    assert pq.read_table(events).equals(expected.events)
    assert str(cepheid.query(query.read_text())) == str(cepheid.query(expected.query))
    assert str(expected.events.num_rows) in ran.out


def test_options_reach_the_generator(cepheid_command: Cepheid, tmp_path: Path) -> None:
    events, truth = tmp_path / "events.parquet", tmp_path / "truth.parquet"
    ran = cepheid_command(
        "simulate", "rfid", "100", "-o", events, "--truth", truth, "--loss", "Register=0.5,Exit=0.1", "--theft", "0.3",
        "--to-exit", "gamma:mean=90,shape=3", "--exit-clock", "shelf", "--timestamps", "--seed", "5",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    expected = retail_visits(
        100,
        loss={"Register": 0.5, "Exit": 0.1},
        theft=0.3,
        to_exit=parse_gap("gamma:mean=90,shape=3"),
        exit_clock="shelf",
        timestamps=True,
        seed=5,
    )
    assert pq.read_table(events).equals(expected.events)
    assert pq.read_table(truth).equals(expected.truth)


def test_lists_and_whole_numbers(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    ran = cepheid_command("simulate", "sase", "50", "-o", path, "--types", "4", "--domains", "3,7")
    assert ran.code == 0, ran.err
    assert read_events(find_files([str(path)])).column_names == ["ts", "type", "attr1", "attr2"]


def test_every_scenario_and_option_is_on_offer(cepheid_command: Cepheid) -> None:
    assert set(EXAMPLES) <= set(SCENARIOS)
    for name, generate in SCENARIOS.items():
        shown = cepheid_command("simulate", name, "--help").out
        for parameter in list(inspect.signature(generate).parameters)[1:]:
            assert f"--{parameter.replace('_', '-')}" in shown
