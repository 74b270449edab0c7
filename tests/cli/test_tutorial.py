"""The first steps, in a terminal and as a notebook."""

import json
from pathlib import Path
from typing import Any

import pytest

import cepheid
from cepheid.cli.tutorial import STEPS, as_notebook, matches
from cepheid.errors import CepheidError
from cepheid.notebook import run_cell
from cli.conftest import Cepheid


def test_every_step_finds_something(cepheid_command: Cepheid) -> None:
    ran = cepheid_command("tutorial")
    assert ran.code == 0, ran.err
    for step in STEPS:
        assert step.title in ran.out
    assert [matches(step).num_rows for step in STEPS] == [60, 3, 2, 11]


def test_the_notebook_has_cells_that_run(cepheid_command: Cepheid, tmp_path: Path) -> None:
    path = tmp_path / "first.ipynb"
    assert cepheid_command("tutorial", "--notebook", path).code == 0
    assert json.loads(path.read_text()) == json.loads(json.dumps(as_notebook()))
    assert "exists" in cepheid_command("tutorial", "--notebook", path).err
    assert "ends in .ipynb" in cepheid_command("tutorial", "--notebook", tmp_path / "first.py").err


class Shell:
    """What a notebook's shell does with a magic."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"shop": cepheid.examples.shoplifting()}
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
        self.magics[f"{magic_kind} {magic_name}"] = function


def test_cells_of_queries() -> None:
    shell = Shell()
    cepheid.load_ipython_extension(shell)
    cell = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 2 hours RETURN c.ts - a.ts AS took"
    view = shell.magics["cell cepheid"]("shop --output thefts --limit 2", cell)
    assert "the first 2 of them shown" in view._repr_html_()
    assert " min " in view._repr_html_()
    assert len(shell.user_ns["thefts"]) == 3
    with pytest.raises(CepheidError, match="no variable 'shp'; did you mean shop"):
        run_cell("shp", cell, shell.user_ns)
    with pytest.raises(CepheidError, match="unrecognized arguments: --tme"):
        run_cell("shop --tme x", cell, shell.user_ns)
