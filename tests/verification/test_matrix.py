"""Cells of the matrix, drawn: a cell agrees with the reference or is refused with a clear error."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.engine.engines import ENGINES
from verification import kept_cells, page
from verification.areas import AREAS
from verification.matrix import DATA, IN_MEMORY, Cell, cells, outcome_of
from verification.run import FEWEST, cases_of_next_round, keep_failure

CELLS = {runner: [cell for cell in cells() if cell.runner == runner] for runner in IN_MEMORY}


@pytest.mark.parametrize("runner", IN_MEMORY)
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 2**20))
def test_a_cell_agrees_or_is_refused(runner: str, data: Any, seed: int) -> None:
    outcome = outcome_of(data.draw(st.sampled_from(CELLS[runner])), seed)
    assert outcome.state in ("agrees", "refused"), outcome.detail


def test_every_engine_has_cells_that_agree() -> None:
    """Each engine runs some query of the matrix: a cell that is always refused would verify nothing."""
    kinds = {"queues": {"uncertainty": "missing"}, "forecast": {"output": "FORECAST"}}
    kinds |= {name: {"uncertainty": "imprecise"} for name in ("intervals", "points")}
    for name in ENGINES:
        cell = Cell(engine=name)._replace(**kinds.get(name, {}))
        assert outcome_of(cell, 3).state == "agrees", name


def test_the_record_goes_on() -> None:
    """The number of cases follows from how long the newest round took, and the page adds up what was recorded."""
    area = AREAS[0]
    assert cases_of_next_round(area, []) == {}
    line = {"area": area.name, "property": "p", "cases": 40, "asked": 40, "seconds": 20.0, "seed": 1, "failed": False}
    line |= {"processor": 15.0}
    assert cases_of_next_round(area, [line]) == {"p": 160}
    slow = {**line, "property": "q", "processor": 120.0}
    assert cases_of_next_round(area, [line, slow]) == {"p": 160, "q": 50}
    assert cases_of_next_round(area, [line, {**slow, "processor": 12_000.0}])["q"] == FEWEST
    kept: dict[str, Any] = {"areas": {}, "reasons": {}}
    page.add_cases(kept["areas"], [{**line, "at": "2026-01-02 03:04", "commit": "c"}] * 2)
    cell = {"cell": Cell(), "at": "2026-01-02", "commit": "c", "detail": "", "state": "agrees"}
    refused = {"state": "refused", "detail": "why"}
    lines = [cell, *({**cell, "cell": Cell(engine="queues", data=data), **refused} for data in DATA)]
    page.add_reasons(kept["reasons"], lines)
    by_cell: kept_cells.Kept = {each: Counter() for each in cells() if each.uncertainty == "none"}
    kept_cells.add(by_cell, lines)
    text = page.page_of(json.loads(json.dumps(kept)), by_cell, {})
    assert "| engines, plain | 80 | 10,000 | 1 | 80 | 0 | 160 | 2026-01-02 | 2026-01-02 | c |" in text
    assert "query text, queues, none: why" not in text, "not all cells are run"
    assert "| query text, auto | 1 (" in text
    by_cell = {each: counts for each, counts in by_cell.items() if each in {Cell(*line["cell"]) for line in lines}}
    assert "- query text, queues, rows: why" in page.page_of(kept, by_cell, {})


def test_changes_of_the_source_are_listed_unless_caught() -> None:
    line: dict[str, Any] = {
        "module": "src/cepheid/engine/x.py",
        "function": "f",
        "before": "a <\n b",
        "after": "a",
        "target": "runs",
    }
    line |= {"low": 1}
    kept: dict[str, Any] = {}
    page.add_mutations(kept, [{**line, "caught": None}])
    assert "| runs | 1 | 0 | 0 | 1 |\n\nNot caught:\n\n- engine/x.py, f: `a < b` -> `a`. Open.\n" in page.mutations_of(
        kept
    )
    kept["engine/x.py, f: `a < b` -> `a`"]["reason"] = "Speed only."
    page.add_mutations(kept, [{**line, "caught": None}, {**line, "function": "g", "caught": "test_g"}])
    text = page.mutations_of(kept)
    assert "| runs | 2 | 1 | 1 | 0 |" in text
    assert "Speed only." in text
    assert "x.py, g" not in text


def test_what_became_of_cells_is_kept(tmp_path: Path) -> None:
    kept = kept_cells.read(tmp_path / "none.txt")
    assert not any(kept.values())
    kept_cells.add(kept, [{"cell": Cell(), "state": "agrees"}, {"cell": Cell(data="ties"), "state": "refused"}] * 2)
    kept_cells.add(kept, [{"cell": Cell(data="ties"), "state": "differs"}])
    kept_cells.write(kept, tmp_path / "cells.txt")
    again = kept_cells.read(tmp_path / "cells.txt")
    assert again == kept
    assert again[Cell(data="ties")] == Counter(refused=2, differs=1)
    kept_cells.add(again, [{"cell": Cell(data="ties"), "state": "agrees"}])
    assert again[Cell(data="ties")] == Counter(refused=2, agrees=1)


def test_a_failure_is_kept_with_its_command(tmp_path: Path) -> None:
    line = {"property": "tests/conftest.py::test_y", "asked": 5, "seed": 7, "failure": "Falsifying example"}
    keep_failure(AREAS[0], line, tmp_path)
    (file,) = (tmp_path / "failures").iterdir()
    assert file.read_text().startswith("NUMBA_DISABLE_JIT=1 PYTHONPATH=tests pytest")
    assert "--hypothesis-seed=7 'tests/conftest.py::test_y'" in file.read_text()
