"""The supply chain."""

import pytest

from cepheid.simulate import supply_chain


def infected(alert: dict, shipments: list[dict]) -> set[int]:
    """The shipments on some chain from the alert's site, by following the stream once."""
    tainted_sites = {alert["site"]}
    tainted = set()
    for worker_plan in shipments:
        if alert["ts"] < worker_plan["ts"] < alert["ts"] + 3 * 3600 and worker_plan["from"] in tainted_sites:
            tainted.add(worker_plan["ts"])
            tainted_sites.add(worker_plan["to"])
    return tainted


@pytest.mark.parametrize(("sites", "tiers"), [(12, 3), (40, 4), (6, 6)])
def test_truth_is_every_shipment_reached_from_a_contaminated_site(sites: int, tiers: int) -> None:
    simulation = supply_chain(3_000, sites=sites, tiers=tiers, alerts=0.05, seed=1)
    assert simulation.truth is not None
    rows = simulation.events.to_pylist()
    shipments = [row for row in rows if row["type"] == "Shipment"]
    expected = {
        (row["ts"], worker_plan)
        for row in rows
        if row["type"] == "Alert" and row["kind"] == "contaminated"
        for worker_plan in infected(row, shipments)
    }
    truth = simulation.truth.to_pylist()
    assert {(row["alert_ts"], row["shipment_ts"]) for row in truth} == expected
    assert len(truth) == len(expected) > 50
    by_ts = {row["ts"]: row for row in rows}
    for row in truth:
        assert by_ts[row["alert_ts"]]["site"] == row["site"]
        worker_plan = by_ts[row["shipment_ts"]]
        assert (worker_plan["from"], worker_plan["to"]) == (row["from"], row["to"])
    assert any(row["from"] != row["site"] for row in truth), "some taint travels further than one hop"


def test_each_type_has_its_own_columns_and_times_never_repeat() -> None:
    rows = supply_chain(2_000, alerts=0.1, seed=2).events.to_pylist()
    assert len({row["ts"] for row in rows}) == len(rows)
    for row in rows:
        filled = {name for name in ("kind", "site", "from", "to") if row[name] is not None}
        assert filled == ({"kind", "site"} if row["type"] == "Alert" else {"from", "to"})


def test_shipments_go_from_one_tier_to_the_next() -> None:
    rows = supply_chain(2_000, sites=10, tiers=5, alerts=0.0, seed=3).events.to_pylist()
    assert {row["type"] for row in rows} == {"Shipment"}
    routes = {(int(row["from"].split()[1]) // 2, int(row["to"].split()[1]) // 2) for row in rows}
    assert routes == {(0, 1), (1, 2), (2, 3), (3, 4)}


def test_alerts_alone_taint_nothing() -> None:
    simulation = supply_chain(50, alerts=1.0)
    assert simulation.truth is not None
    assert simulation.truth.num_rows == 0
