"""`cepheid fit`: the model, whether it fits, and what it says when it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import cepheid
from cli.conftest import Cepheid

QUERY = "PATTERN SEQ(A a, B b, C c, D d) WHERE [id] WITHIN 20000"


def history(count: int, *, fits: bool) -> pa.Table:
    """Trips past B; where the model does not fit, those that leave B out take far longer than the others."""
    random = np.random.default_rng(5)
    begins, through = np.arange(count) * 10.0, random.random(count) < 0.6
    middle = begins + random.gamma(2.0, 300.0, count)
    around = random.gamma(2.0, 50.0, count) if fits else random.gamma(2.0, 1_000.0, count)
    third = np.where(through, middle + random.gamma(2.0, 50.0, count), begins + around)
    last = third + random.gamma(2.0, 100.0, count)
    times = np.concatenate([begins, middle[through], third, last])
    every = np.arange(count)
    return pa.table(
        {
            "ts": np.ceil(times).astype(np.int64),
            "type": np.repeat(["A", "B", "C", "D"], [count, int(through.sum()), count, count]),
            "id": np.concatenate([every, every[through], every, every]),
        }
    ).sort_by("ts")


@pytest.mark.parametrize("fits", [True, False])
def test_a_model_that_does_not_fit_is_saved_with_a_warning(
    cepheid_command: Cepheid, tmp_path: Path, fits: bool
) -> None:
    events, saved = tmp_path / "past.csv", tmp_path / "model.json"
    csv.write_csv(history(1_500, fits=fits), events)
    ran = cepheid_command("fit", QUERY, "-i", events, "-o", saved)
    assert ran.code == 0
    assert ("the model fits: " in ran.out) is fits
    assert ("note: the model does not fit" in ran.out) is not fits
    assert ("warning: the model does not fit its own history" in ran.err) is not fits
    model = cepheid.load_model(saved)
    assert any(each.startswith("the model does not fit") for each in model.notes) is not fits
    page = tmp_path / "report.html"
    assert cepheid_command("report", f"{QUERY} THRESHOLD 0.5", "-i", events, "-o", page, "--model", saved).code == 0
    assert ("note: the model does not fit" in page.read_text()) is not fits


def test_fit_warns_and_direct_evidence_wins_over_the_other_components() -> None:
    with pytest.warns(cepheid.ModelWarning, match="'b', trips without it"):
        model = cepheid.fit(history(1_500, fits=False), QUERY)
    assert model.loss_of("b") > 0.3  # what the lengths of trips say, and the note says that they do not fit
    assert model.loss_of("d") < 0.02  # it was seen on all trips
    assert any(each.startswith("'d' takes its own loss") for each in model.notes)
    assert any(each.startswith("the model does not fit") for each in model.notes)
