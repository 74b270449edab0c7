"""Each story's query, run on the story's events, finds what the simulation says is true."""

import pytest

import cepheid
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.simulate import SCENARIOS, clinic_doses, retail_visits, supply_chain


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_query_fits_the_events(name: str) -> None:
    simulation = SCENARIOS[name](200, seed=1)
    bound = bind(check(parse(simulation.query)), Schema.from_arrow(simulation.events.schema), text=simulation.query)
    assert bound.window is not None


def test_overdoses() -> None:
    simulation = clinic_doses(600, patients=20, extra=0.3, seed=1)
    assert simulation.truth is not None
    found = cepheid.match(simulation.events, simulation.query, engine="reference").to_pylist()
    pairs = sorted((row["x"]["name"], row["x"]["ts"], row["y"]["ts"]) for row in found)
    assert pairs
    assert pairs == sorted((row["name"], row["first_ts"], row["second_ts"]) for row in simulation.truth.to_pylist())


@pytest.mark.parametrize("timestamps", [False, True])
def test_thefts_when_no_reading_is_lost(timestamps: bool) -> None:
    simulation = retail_visits(150, loss=0.0, theft=0.2, stay=0.1, timestamps=timestamps, seed=1)
    assert simulation.truth is not None
    found = cepheid.match(simulation.events, simulation.query, engine="reference").to_pylist()
    thefts = [(row["tag_id"], row["shelf_ts"], row["exit_ts"]) for row in simulation.truth.to_pylist() if row["stolen"]]
    assert thefts
    assert sorted((row["x"]["tag_id"], row["x"]["ts"], row["z"]["ts"]) for row in found) == thefts


def test_tainted_shipments() -> None:
    simulation = supply_chain(300, sites=20, alerts=0.05, seed=1)
    assert simulation.truth is not None
    found = cepheid.match(simulation.events, simulation.query, engine="reference").to_pylist()
    reached = {(row["a"]["ts"], row["b"][-1]["ts"]) for row in found}
    assert len({len(row["b"]) for row in found}) > 1
    assert reached == {(row["alert_ts"], row["shipment_ts"]) for row in simulation.truth.to_pylist()}
