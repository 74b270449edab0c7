"""What is said of unsure matches is true as often as it says: small versions of the worlds of `bench calibration`."""

from __future__ import annotations

import pytest

from bench.calibration import WORLDS, World, judge, numbers_of

# The fit of a small history is off by a few hundredths itself; the bench has the full sizes.
SMALL = {"route": 0.02, "bypassed stops": 0.06, "several visits": 0.05, "last event missing": 0.05}


@pytest.mark.parametrize("world", [world for world in WORLDS if world.name in SMALL], ids=lambda world: world.name)
def test_a_world(world: World) -> None:
    judged, _, _ = judge(world, world.tags // 8)
    found = numbers_of(judged)["all"]
    assert found["matches"] > 2_000
    assert found["calibration_error"] <= SMALL[world.name]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_world_at_full_size(world: World) -> None:
    judged, model, live = judge(world, world.tags)
    found = numbers_of(judged)["all"]
    assert found["matches"] >= 20_000
    assert found["calibration_error"] <= (0.02 if world.assumptions_hold else 0.05)
    if world.name != "exit waits for the payment":
        assert model.check(live.events, live.query, time_unit="s").fits == world.assumptions_hold
