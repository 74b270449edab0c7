"""The Model: forms of loss, absent components, saving, printing, drawing."""

import json
import math
from dataclasses import replace

import pytest

from cepheid.errors import ModelError
from cepheid.model import (
    ByAttribute,
    ByHour,
    ComponentModel,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Model,
    Uniform,
    Weibull,
    load_model,
    model_from_json,
    model_to_json,
)

GAPS = {"y": Exponential(60, 0.9), "z": Gamma(0.5, 20)}


def test_one_loss_for_all():
    model = Model(loss=0.05, gaps=GAPS)
    assert model.for_component("y") == ComponentModel(0.05, Exponential(60, 0.9))
    assert model.for_component("z").loss == 0.05


def test_loss_by_variable_and_for_all_others():
    model = Model(loss={"y": 0.1, "*": 0.02}, gaps=GAPS)
    assert model.loss_of("y") == 0.1
    assert model.loss_of("z") == 0.02
    with pytest.raises(ModelError, match="no loss for 'z'"):
        Model(loss={"y": 0.1}, gaps=GAPS).for_component("z")


def test_loss_by_attribute_holds_where_the_query_fixes_it():
    by_reader = ByAttribute("reader", {"A": 0.1, 7: 0.2}, default=0.05)
    model = Model(loss=by_reader, gaps=GAPS)
    assert model.loss_of("y", {"reader": "A"}) == 0.1
    assert model.loss_of("y", {"reader": 7}) == 0.2
    assert model.loss_of("y", {"reader": "7"}) == 0.05
    assert model.loss_of("y", {"shelf": "A"}) == 0.05
    assert model.loss_of("y") == 0.05
    mixed = Model(loss={"y": by_reader, "*": 0.3}, gaps=GAPS)
    assert mixed.loss_of("y", {"reader": "A"}) == 0.1
    assert mixed.loss_of("z", {"reader": "A"}) == 0.3
    without = Model(loss=ByAttribute("reader", {"A": 0.1}), gaps=GAPS)
    with pytest.raises(ModelError, match="no loss for 'y' with no fixed 'reader'"):
        without.loss_of("y")
    with pytest.raises(ModelError, match="reader='B'"):
        without.loss_of("y", {"reader": "B"})


def test_an_absent_gap_is_named_unless_the_component_leads():
    model = Model(loss=0.05, gaps={"register": Exponential(60)})
    assert model.gap_of("x", leading_window=300) == Uniform(0, 300)
    assert model.gap_of("register", leading_window=300) == Exponential(60)
    with pytest.raises(ModelError, match=r"no gap distribution for 'x'; add gaps=\{'x': ...\}"):
        model.for_component("x")
    with pytest.raises(ModelError, match="did you mean 'register'"):
        model.for_component("regster")


@pytest.mark.parametrize("loss", [1.0, 1.5, -0.1, math.nan, "0.1", None, True, 5])
def test_impossible_losses(loss):
    for make in (
        lambda: Model(loss=loss),
        lambda: Model(loss={"y": loss}),
        lambda: ByAttribute("reader", {"A": loss}),
    ):
        with pytest.raises(ModelError, match=r"outside \[0, 1\)"):
            make()


def test_percentages_are_recognised():
    with pytest.raises(ModelError, match=r"did you mean 0.05\?"):
        Model(loss=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Model(gaps={"y": 60}), "the gap of 'y' is 60"),
        (lambda: Model(gaps=Exponential(60)), "a distribution per variable"),
        (lambda: Model(loss={3: 0.1}), "ByAttribute"),
        (lambda: Model(unit=3), "not the name of a unit"),
        (lambda: Model(loss_intervals={"y": (0.5, 0.1)}), "impossible"),
        (lambda: ByAttribute("reader", {}), "no value and no default"),
        (lambda: ByHour({18: 0.5}), "midnight"),
        (lambda: ByHour({0: 0.1, 24: 0.5}), "not an hour of the day"),
        (lambda: ByHour({0: 0.1, 18: 50}), "0.5"),
    ],
)
def test_bad_models(make, message):
    with pytest.raises(ModelError, match=message):
        make()


EVERYTHING = Model(
    loss={"y": ByAttribute("reader", {"A": 0.1, 7: 0.2}, 0.05), "z": 0.01, "w": ByHour({0: 0.1, 18: 0.5}), "*": 0.03},
    gaps={
        "a": Exponential(60, 0.9),
        "b": Gamma(0.5, 20),
        "c": LogNormal(2, 1),
        "d": Weibull(2, 5),
        "e": Uniform(0, 9),
        "f": Empirical((0, 1, 5), (0.3, 0.7), 0.5),
    },
    unit="seconds",
    loss_intervals={"z": (0.005, 0.02)},
    happens={"x": 0.9},
    happens_intervals={"x": (0.8, 0.95)},
    goes_on={"z": 0.7},
)


@pytest.mark.parametrize("model", [EVERYTHING, Model(), Model(0.2), Model(ByAttribute("r", {"A": 0.1}))], ids=range(4))
def test_saved_models_come_back(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    assert load_model(path) == model
    assert json.loads(path.read_text())["version"] == 4


def test_models_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelError, match="cannot read"):
        load_model(tmp_path / "absent.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ModelError, match="not JSON"):
        load_model(broken)
    good = model_to_json(EVERYTHING)
    with pytest.raises(ModelError, match="is not a model"):
        model_from_json({"format": "something else"})
    with pytest.raises(ModelError, match="version 5, this package reads 4"):
        model_from_json(good | {"version": 5})
    with pytest.raises(ModelError, match="did you mean 'gaps'"):
        model_from_json(good | {"gap": {}})
    old = {key: value for key, value in good.items() if not key.startswith(("happens", "goes"))} | {"version": 1}
    assert model_from_json(old) == replace(EVERYTHING, happens={}, happens_intervals={}, goes_on={})
    with pytest.raises(ModelError, match="damaged"):
        model_from_json({key: value for key, value in good.items() if key != "gaps"})
    with pytest.raises(ModelError, match="not a loss by attribute"):
        model_from_json(good | {"loss": {"y": {"attribute": "reader"}}})
    with pytest.raises(ModelError, match="outside"):
        model_from_json(good | {"loss": {"y": 2.0}})
    with pytest.raises(ModelError, match="cannot be saved"):
        Model(ByAttribute("r", {("a", "b"): 0.1})).save(broken)


def test_a_model_prints_as_a_table():
    lines = str(EVERYTHING).splitlines()
    assert lines[0] == "loss and gap model (gaps in seconds)"
    assert lines[1].split() == ["component", "loss", "mean", "gap", "happens", "gap"]
    assert "by reader: A 0.1, 7 0.2, else 0.05" in str(EVERYTHING)
    assert "0.01 [0.005, 0.02]" in str(EVERYTHING)
    assert any(line.startswith("f ") and line.endswith("Empirical(3 edges, 2 masses)") for line in lines)
    assert lines[-2].split() == ["*", "0.03"]
    assert lines[-1] == "share of trips that go on to: z 0.7"


def test_a_model_can_be_drawn():
    chart = EVERYTHING.plot().to_dict()
    rows = [row for data in chart.get("datasets", {}).values() for row in data] or _inline_rows(chart)
    assert {row["component"] for row in rows} == set("abcdef")
    for name, gap in EVERYTHING.gaps.items():
        own = [row for row in rows if row["component"] == name]
        assert max(row["come by then"] for row in own) == pytest.approx(gap.happens, rel=0.02)
        assert all(math.isfinite(row["density"]) for row in own)
    with pytest.raises(ModelError, match="no gap distributions to plot"):
        Model(0.1).plot()


def _inline_rows(chart):
    found = chart.get("data", {}).get("values") or []
    for part in chart.get("hconcat", []):
        found = found or _inline_rows(part)
    return found
