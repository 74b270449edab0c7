"""The automaton as SVG: well-formed, complete, readable by a screen reader."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from cepheid.draw.automaton import Arc, automaton_svg
from cepheid.language.check import check
from cepheid.language.sase.parse import parse

SVG = "{http://www.w3.org/2000/svg}"
QUERIES = sorted(Path("tests/queries").glob("*.cepheid"))


def drawn(text: str, *arcs: Arc) -> ET.Element:
    return ET.fromstring(automaton_svg(check(parse(text)), arcs))


def texts(svg: ET.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_query_of_the_papers_can_be_drawn(path: Path) -> None:
    svg = drawn(path.read_text(encoding="utf-8"))
    assert svg.get("role") == "img"
    assert (svg.get("aria-label") or "").startswith("automaton of the query: ")


def test_states_conditions_and_what_must_not_happen() -> None:
    svg = drawn("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] AND a.x > 1 AND b.till < 3 WITHIN 12 hours")
    assert texts(svg)[:3] == ["start", "a", "c"]
    assert {"Shelf a", "Exit c", "a.x > 1", "[tag]", "all within 12 hours"} <= set(texts(svg))
    assert any(text.startswith("no Register b with") for text in texts(svg))


def test_kleene_has_a_loop_and_edges_of_the_window_have_a_place() -> None:
    svg = drawn("PATTERN SEQ(!(X x), A+ a[], !(Y y)) WITHIN 5")
    assert "more" in texts(svg)
    assert {"no X x", "no Y y"} <= set(texts(svg))


def test_arcs_bear_their_scores() -> None:
    svg = drawn("PATTERN SEQ(A a, B b, C c) WITHIN 5", Arc(0, 2, "b unseen: at most 0.1"), Arc(-1, 1, "a unseen", True))
    assert "b unseen: at most 0.1" in texts(svg)
    assert len([path for path in svg.iter(f"{SVG}path") if path.get("stroke-dasharray")]) == 2
    top = min(float(text.get("y") or 0) for text in svg.iter(f"{SVG}text"))
    assert top > 8


def test_text_is_escaped() -> None:
    svg = drawn("PATTERN SEQ(`<b>` a, B b) WHERE a.x < 1 AND a.s = '<script>' WITHIN 5")
    assert "`<b>` a" in texts(svg)
