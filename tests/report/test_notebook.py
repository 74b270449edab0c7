"""What notebooks show: well-formed, without scripts, and safe for names and values of all kinds."""

import copy
import pickle
import xml.etree.ElementTree as ET
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.language.schema import Schema
from cepheid.runners.options import Options

HOSTILE = '<script>alert("x")</script>'
NAME = "`<img src=x onerror=alert(1)>`"


def shown(thing: Any) -> str:
    """What a notebook would show; it must be XML, too, so that nothing in it was opened by a name."""
    html: str = thing._repr_html_()
    root = ET.fromstring(html)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "img", "iframe", "a", "link"}
    handlers = [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert not handlers
    return html


def hostile_query(**clauses: str) -> cepheid.Query:
    text = f"PATTERN SEQ({NAME} a, !(B b), C+ c[]) WHERE [`</svg>`] AND a.s = '{HOSTILE}' WITHIN 10"
    return cepheid.query(text)


EVENTS = pa.table(
    {
        "ts": [1, 2, 3],
        "type": ["<img src=x onerror=alert(1)>", "C", "C"],
        "</svg>": [1, 1, 1],
        "s": [HOSTILE, "b & c", None],
    }
)


def test_a_query_shows_its_text_and_its_automaton() -> None:
    query = cepheid.query("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 12 hours")
    html = shown(query)
    assert query.svg() in html
    assert "WITHIN 12 hours" in html
    assert "no Register b" in html


def test_hostile_names_and_texts_stay_text() -> None:
    query = hostile_query()
    plan, _ = make_plan(query.bind(Schema.from_arrow(EVENTS.schema)))
    view = cepheid.show(query.match(EVENTS, engine="reference"))
    for thing in (query, plan, query.explain(EVENTS), view, cepheid.why(EVENTS, query)):
        assert "<script>alert" not in shown(thing)
    model = cepheid.Model(loss={HOSTILE: 0.1}, gaps={HOSTILE: cepheid.Exponential(mean=5)}, unit="<b>")
    assert "&lt;script&gt;alert" in shown(model)


def test_a_plan_says_which_engine_and_why() -> None:
    events = pa.table({"ts": [1], "type": ["A"], "id": [1]})
    query = cepheid.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5")
    from cepheid.runners.local import prepare

    html = shown(prepare(query, events, Options.from_keywords({})).plan)
    assert "sequence" in html
    assert "partitioned by [id]" in html


def test_an_explanation_is_a_text_and_more() -> None:
    told = cepheid.query("PATTERN SEQ(A a, B b) WITHIN 5 minutes").explain()
    assert told.startswith("Query\n")
    assert repr(told) == str(told)
    html = shown(told)
    assert "Plan" in html
    assert html.count("PATTERN SEQ") == 1
    for same in (copy.copy(told), pickle.loads(pickle.dumps(told))):
        assert (same, same.syntax) == (told, told.syntax)


def test_a_model_shows_losses_and_curves() -> None:
    gaps = {"y": cepheid.Exponential(mean=60, happens=0.9), "z": cepheid.Gamma(shape=2.0, scale=30.0)}
    html = shown(cepheid.Model(loss={"y": 0.1, "*": 0.05}, gaps=gaps, unit="seconds"))
    assert html.count("<polyline") == 2
    assert "gaps in seconds" in html


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_results_show_unseen_events(kind: str) -> None:
    events = pa.table({"ts": [1, 5], "type": ["A", "C"]})
    model = cepheid.Model(loss=0.1, gaps={"b": cepheid.Exponential(mean=4), "c": cepheid.Exponential(mean=4)})
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 10 THRESHOLD 0.05 OUTPUT MAXIMAL"
    table = events if kind == "arrow" else events.to_pandas()
    view = cepheid.show(cepheid.match(table, text, model=model, engine="reference"))
    assert "○ not seen" in shown(view)
    assert "○ not seen" in repr(view)


def test_a_long_result_says_how_long_it_is() -> None:
    events = pa.table({"ts": list(range(30)), "type": ["A"] * 30})
    view = cepheid.show(cepheid.match(events, "EVENT A a", engine="reference"), limit=3)
    assert view._repr_html_().count("<tr>") == 4
    assert "30 matches, the first 3 of them shown" in repr(view)


def test_show_refuses_what_is_no_result() -> None:
    with pytest.raises(cepheid.DataError, match=r"not a result of match.*it has events, in 'ts' and 'type'"):
        cepheid.show(pd.DataFrame({"ts": [1], "type": ["A"]}))
    with pytest.raises(cepheid.DataError, match="takes a pyarrow, pandas or polars table"):
        cepheid.show([1, 2])
