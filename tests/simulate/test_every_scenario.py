"""What every scenario promises: the same seed gives the same stream, ordered by time, of the size asked for."""

import inspect

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cepheid.errors import DataError
from cepheid.simulate import SCENARIOS, Simulation

EVENT_COLUMNS = {
    "sase": ["ts", "type", "attr1", "attr2", "attr3", "attr4", "attr5"],
    "stocks": ["ts", "type", "symbol", "price", "volume"],
    "correlated": ["ts", "type", "ticker", "sector", "price", "history"],
    "time": ["ts", "value", "lower", "upper", "type"],
    "cluster": ["ts", "lower", "upper", "true_ts", "type", "nodeId", "taskId", "value"],
    "rfid": ["ts", "type", "tag_id", "category"],
    "route": ["ts", "type", "parcel"],
    "clinic": ["ts", "type", "name", "medicine", "amount"],
    "stops": ["ts", "type", "tag"],
    "supply-chain": ["ts", "type", "kind", "site", "from", "to"],
}

every_scenario = pytest.mark.parametrize("name", sorted(SCENARIOS))


def test_all_scenarios_are_described_here() -> None:
    assert set(EVENT_COLUMNS) == set(SCENARIOS)


@every_scenario
def test_same_seed_same_stream(name: str) -> None:
    once, again, other = (SCENARIOS[name](500, seed=seed) for seed in (7, 7, 8))
    assert once.events.equals(again.events)
    assert once.description == again.description
    if once.truth is None:
        assert again.truth is None
        assert not once.events.equals(other.events)
    else:
        assert once.truth.equals(again.truth)
        assert not (once.events.equals(other.events) and once.truth.equals(other.truth))


@every_scenario
def test_columns_and_order(name: str) -> None:
    simulation = SCENARIOS[name](300, seed=1)
    assert isinstance(simulation, Simulation)
    assert simulation.events.column_names == EVENT_COLUMNS[name]
    assert simulation.events.schema.field("ts").type == pa.int64()
    assert simulation.events.schema.field("type").type == pa.string()
    ts = simulation.events["ts"].to_pylist()
    assert ts == sorted(ts)
    assert simulation.events["ts"].null_count == 0
    assert simulation.events["type"].null_count == 0


@every_scenario
def test_query_speaks_of_the_event_types(name: str) -> None:
    simulation = SCENARIOS[name](2_000, seed=1)
    seen = set(pc.unique(simulation.events["type"]).to_pylist())
    words = set(simulation.query.replace("(", " ").replace("+", " ").replace(",", " ").split())
    assert seen & words


@every_scenario
@pytest.mark.parametrize("size", [1, 2, 1_000])
def test_sizes(name: str, size: int) -> None:
    simulation = SCENARIOS[name](size, seed=3)
    if name == "cluster":
        types = simulation.events["type"].to_pylist()
        assert types.count("TaskStart") == types.count("TaskFinish") == size
    elif name in ("rfid", "route"):
        readers = 3 if name == "rfid" else 6
        assert simulation.truth is not None
        assert simulation.truth.num_rows == size
        assert simulation.events.num_rows <= readers * size
    elif name == "stops":
        assert simulation.truth is not None
        assert simulation.events.num_rows <= simulation.truth.num_rows == 4 * size
    else:
        assert simulation.events.num_rows == size


@every_scenario
def test_first_argument_is_the_size_and_all_others_have_defaults(name: str) -> None:
    size, *others = inspect.signature(SCENARIOS[name]).parameters.values()
    assert size.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(other.kind is inspect.Parameter.KEYWORD_ONLY for other in others)
    assert all(other.default is not inspect.Parameter.empty for other in [size, *others])
    assert "seed" in {other.name for other in others}


@every_scenario
def test_an_empty_stream_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="at least 1"):
        SCENARIOS[name](0)
