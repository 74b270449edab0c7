"""A model file that was changed by hand, by a fault or by a stranger loads, or says what is wrong; nothing else."""

import copy
import json
import random

import pytest

import cepheid
from cepheid.errors import ModelError
from cepheid.model.loss_model import load_model, model_from_json, model_to_json

STRANGE = [
    None,
    True,
    False,
    0,
    -1,
    2,
    1e308,
    10**30,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    [1],
    {},
    {"a": 1},
    [[1]],
]
MODEL = cepheid.Model(
    loss={"y": 0.1, "z": cepheid.ByAttribute("reader", {"a": 0.2, 7: 0.3}, default=0.1)},
    gaps={"y": cepheid.Exponential(mean=60), "z": cepheid.Uniform(1, 9)},
)


def places(value, path=()):
    """Where something can be changed."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def changed(value, path, new):
    """The same with another value at one place."""
    if not path:
        return new
    found = copy.deepcopy(value)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return found


def test_every_place_of_a_model_may_hold_anything():
    told = json.loads(json.dumps(model_to_json(MODEL)))
    tried = 0
    for path in places(told):
        for new in STRANGE:
            tried += 1
            try:
                model_from_json(changed(told, path, new))
            except ModelError:
                continue
    assert tried > 500


def test_bytes_of_a_model_file_may_be_anything(tmp_path):
    rng, path = random.Random(16), tmp_path / "model.json"
    MODEL.save(path)
    whole = path.read_bytes()
    for _ in range(500):
        some = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            some[rng.randrange(len(some))] = rng.randrange(256)
        path.write_bytes(bytes(some[: rng.choice([len(some), rng.randrange(len(some))])]))
        try:
            load_model(path)
        except ModelError:
            continue
    path.write_text("[" * 100_000)
    with pytest.raises(ModelError, match="not JSON"):
        load_model(path)


@pytest.mark.parametrize("change", [{"version": True}, {"losss": {}}, {"version": 5}])
def test_unknown_keys_and_versions_are_refused(change):
    with pytest.raises(ModelError):
        model_from_json({**model_to_json(MODEL), **change})


def test_models_of_earlier_versions_are_read():
    histogram = {"type": "Empirical", "edges": [0, 2, 9], "masses": [0.5, 0.5], "happens": 0.9}
    told = model_to_json(MODEL)
    old = {key: each for key, each in told.items() if key != "notes"} | {"version": 3, "gaps": {"y": histogram}}
    model = model_from_json(json.loads(json.dumps(old)))
    assert model.gaps["y"] == cepheid.Empirical((0, 2, 9), (0.5, 0.5), 0.9)
    assert model.notes == ()


def test_notes_are_kept_and_shown(tmp_path):
    model = cepheid.Model(loss=0.1, notes=("the model does not fit: <1> of 2",))
    model.save(tmp_path / "noted.json")
    assert load_model(tmp_path / "noted.json") == model
    assert str(model).endswith("note: the model does not fit: <1> of 2")
    assert "note: the model does not fit: &lt;1&gt; of 2" in model._repr_html_()
    with pytest.raises(ModelError, match="a list of texts"):
        cepheid.Model(notes="one")
