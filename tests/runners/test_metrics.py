"""The page of numbers that Prometheus reads, and the board that shows them."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from cepheid import metrics

TOLD = {"read": 10, "used": 4, "irrelevant": 3, "late": 1, "malformed": 1, "duplicates": 1, "shed": 0, "lost": 0.5}
TOLD |= {
    "matches": 2,
    "state_bytes": 100,
    "retained": 3,
    "newest": 50,
    "watermark": 39,
    'matches[a "b"]': 2,
    'used[a "b"]': 4,
    'shed[a "b"]': 3,
    "shed_for_search": 3,
}


def test_numbers_add_up_over_batches_and_are_served():
    served = metrics.serve(None, port=0)
    try:
        for _ in range(2):
            served.numbers.take({"id": "x", "durationMs": {"triggerExecution": 500}, "observedMetrics": {"mine": TOLD}})
        served.numbers.take({"id": "y", "observedMetrics": {"other": {"rows": 1}}})  # another query of the session
        page = urllib.request.urlopen(served.address).read().decode()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(served.address + "/other")
    finally:
        served.close()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert values['cepheid_read_total{stream="x"}'] == "20"
    parts = [float(value) for name, value in values.items() if name.startswith("cepheid_events_total")]
    assert sum(parts) == 20
    assert values['cepheid_matches_total{query="a \\"b\\"",stream="x"}'] == "4"
    assert values['cepheid_query_shed_total{query="a \\"b\\"",stream="x"}'] == "6"
    assert values['cepheid_shed_total{reason="search",stream="x"}'] == "6"
    assert values['cepheid_state_bytes{stream="x"}'] == "100"
    assert values['cepheid_watermark_lag{stream="x"}'] == "11"
    assert values['cepheid_batch_seconds_total{stream="x"}'] == "1"
    assert '"y"' not in page


def test_the_board_shows_metrics_that_exist():
    board = (Path(metrics.__file__).parents[2] / "docs" / "grafana-board.json").read_text()
    named = set(re.findall(r"cepheid_[a-z_]+", json.dumps([panel["targets"] for panel in json.loads(board)["panels"]])))
    assert named <= set(metrics.HELP)
