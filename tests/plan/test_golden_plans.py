"""The plans of the papers' queries are what they were; `python tests/plan/golden.py` writes them anew."""

import pytest

from plan.golden import FOLDER, PLANS, Planned


@pytest.mark.parametrize("planned", PLANS, ids=[planned.path.stem for planned in PLANS])
def test_a_plan_is_what_it_was(planned: Planned) -> None:
    assert planned.text() == planned.path.read_text(encoding="utf-8"), "rewrite: python tests/plan/golden.py"


def test_every_file_is_of_a_plan() -> None:
    assert {path.name for path in FOLDER.glob("*.txt")} == {planned.path.name for planned in PLANS}
