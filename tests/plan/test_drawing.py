"""The automaton as SVG: well-formed, complete, readable by a screen reader."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.flink import Pattern
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.plan.drawing import Arc, query_svg

SVG = "{http://www.w3.org/2000/svg}"
QUERIES = sorted(Path("tests/queries").glob("*.cepheid"))


def drawn(text: str, *arcs: Arc) -> ET.Element:
    return ET.fromstring(query_svg(check(parse(text)), arcs))


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


def edges(svg: ET.Element) -> int:
    return len([path for path in svg.iter(f"{SVG}path") if path.get("marker-end")])


def test_kleene_has_a_loop_and_edges_of_the_window_have_a_place() -> None:
    svg = drawn("PATTERN SEQ(!(X x), A+ a[], !(Y y)) WITHIN 5")
    assert edges(svg) == 2
    assert {"A+ a[]", "no X x", "then no Y y"} <= set(texts(svg))


def test_any_order_of_many_parts_has_an_edge_for_each_two() -> None:
    parts = ", ".join(f"T{number} x{number}" for number in range(9))
    assert edges(drawn(f"PATTERN AND({parts}) WITHIN 5")) == 9 + 9 * 8


def test_a_clause_and_a_flink_pattern_are_drawn_by_the_same_hand() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B* C?) DEFINE B AS B.x > 1, C AS C.x < 2)"
    svg = ET.fromstring(cepheid.query(clause).svg())
    assert texts(svg)[:4] == ["start", "A", "B", "C"]
    assert "B.x > 1" in texts(svg)
    assert edges(svg) == 5
    pattern = Pattern.begin("a").where("x > 1").not_followed_by("n").where("x = 9").followed_by("b").one_or_more()
    svg = ET.fromstring(cepheid.query(pattern).svg(pa.table({"ts": [1], "x": [1]})))
    assert texts(svg)[:3] == ["start", "a", "b"]
    assert {"x > 1", "no n with x = 9"} <= set(texts(svg))
    assert edges(svg) == 3


def test_arcs_bear_their_scores() -> None:
    svg = drawn("PATTERN SEQ(A a, B b, C c) WITHIN 5", Arc(0, 2, "b unseen: at most 0.1"), Arc(-1, 1, "a unseen", True))
    assert "b unseen: at most 0.1" in texts(svg)
    assert len([path for path in svg.iter(f"{SVG}path") if path.get("stroke-dasharray")]) == 2
    top = min(float(text.get("y") or 0) for text in svg.iter(f"{SVG}text"))
    assert top > 8


def test_text_is_escaped() -> None:
    svg = drawn("PATTERN SEQ(`<b>` a, B b) WHERE a.x < 1 AND a.s = '<script>' WITHIN 5")
    assert "`<b>` a" in texts(svg)
