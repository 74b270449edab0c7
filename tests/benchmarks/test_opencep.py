"""OpenCEP's worker against a stand-in for its interface: OpenCEP itself is fetched by whoever runs the comparison."""

import json
from pathlib import Path

import pytest

import cepheid
from bench.experiments import rivals
from bench.harness.calls import inspect_result
from bench.harness.experiment import Unavailable
from bench.rivals import setup

STAND_IN = {
    "base/DataFormatter.py": "class DataFormatter: pass",
    "base/Pattern.py": """
class Pattern:
    def __init__(self, structure, condition, window):
        self.structure, self.condition, self.window = structure, condition, window
""",
    "base/PatternStructure.py": """
class PrimitiveEventStructure:
    def __init__(self, type, name):
        self.type, self.name = type, name
class SeqOperator:
    def __init__(self, *args):
        self.args = args
""",
    "condition/Condition.py": """
class Variable:
    def __init__(self, name, read):
        self.name, self.read = name, read
""",
    "condition/BaseRelationCondition.py": """
class EqCondition:
    def __init__(self, left, right):
        self.left, self.right = left, right
    def holds(self, event):
        return self.left.read(event[self.left.name].payload) == self.right.read(event[self.right.name].payload)
""",
    "condition/CompositeCondition.py": """
class AndCondition:
    def __init__(self, *parts):
        self.parts = parts
    def holds(self, event):
        return all(part.holds(event) for part in self.parts)
""",
    "stream/Stream.py": """
class Stream:
    def __init__(self):
        self.items = []
    def add_item(self, item):
        self.items.append(item)
    def close(self):
        self.items.append(None)
    def __iter__(self):
        return iter(self.items[:-1])
""",
    "CEP.py": """
import itertools
class Event:
    def __init__(self, raw, formatter):
        self.payload = formatter.parse_event(raw)
        self.type = formatter.get_event_type(self.payload)
        self.timestamp = formatter.get_event_timestamp(self.payload)
class Match:
    def __init__(self, events):
        self.events = events
class CEP:
    def __init__(self, patterns):
        self.pattern = patterns[0]
    def run(self, events, matches, formatter):
        steps = self.pattern.structure.args
        read = [Event(raw, formatter) for raw in events]
        places = [[event for event in read if event.type == step.type] for step in steps]
        for chosen in itertools.product(*places):
            times = [event.timestamp for event in chosen]
            named = {step.name: event for step, event in zip(steps, chosen)}
            rising = all(a < b for a, b in zip(times, times[1:]))
            if rising and times[-1] - times[0] <= self.pattern.window and self.pattern.condition.holds(named):
                matches.add_item(Match(list(chosen)))
""",
}


def test_it_finds_what_cepheid_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in STAND_IN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(setup, "HOME", tmp_path)
    (tmp_path / "opencep.json").write_text(json.dumps({"path": str(tmp_path)}))
    monkeypatch.setattr(rivals, "WINDOW", 400)
    table = rivals.stream(900, "smoke").select(["ts", "type", rivals.KEY])
    found = rivals.opencep(table)
    expected = cepheid.match(table, rivals.text("any", 400), engine="reference")
    outcome = found.inspect(found.run())
    assert expected.num_rows > 3
    assert (outcome.matches, outcome.digest) == (expected.num_rows, inspect_result(expected).digest)


def test_without_a_checkout_it_is_skipped_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "HOME", tmp_path)
    with pytest.raises(Unavailable, match="--opencep DIR"):
        rivals.opencep(rivals.stream(10, "smoke"))
