"""`cepheid forecast` on the terminal and as JSON."""

import json
from pathlib import Path

import pytest

from cepheid import Exponential, Model
from cli.conftest import Cepheid

ORDERS = "PATTERN SEQ(Ordered a, Paid b) WHERE [id] WITHIN 60"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("ts,type,id\n0,Ordered,1\n10,Paid,1\n20,Ordered,2\n40,Ordered,3\n")
    Model(gaps={"b": Exponential(mean=30)}).save(tmp_path / "model.json")
    return path


def test_open_partial_matches(cepheid_command: Cepheid, orders: Path) -> None:
    ran = cepheid_command("forecast", ORDERS, "-i", orders, "--model", orders.parent / "model.json")
    assert ran.code == 0, ran.err
    assert "2 open partial matches" in ran.out
    assert "86%" in ran.out


def test_json_at_a_moment(cepheid_command: Cepheid, orders: Path) -> None:
    model = orders.parent / "model.json"
    ran = cepheid_command("forecast", ORDERS, "-i", orders, "--model", model, "--at", "5", "--json")
    (row,) = [json.loads(line) for line in ran.out.splitlines()]
    assert (row["a"]["id"], row["waiting_for"], row["forecast_at"]) == (1, "b", 5)


def test_without_a_model(cepheid_command: Cepheid, orders: Path) -> None:
    ran = cepheid_command("forecast", ORDERS, "-i", orders)
    assert ran.code == 1
    assert "cepheid fit" in ran.err
