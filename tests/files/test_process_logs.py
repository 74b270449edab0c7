"""XES and OCEL: the logs of process mining."""

import gzip
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, DataError

XES = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <global scope="event"><string key="concept:name" value="__INVALID__"/></global>
  <string key="concept:name" value="the log"/>
  <trace>
    <string key="concept:name" value="case &lt;1&gt;"/>
    <int key="amount" value="500"/>
    <event>
      <string key="concept:name" value="register"/><date key="time:timestamp" value="2024-05-04T09:00:00.000+02:00"/>
      <string key="org:resource" value="Ann"/><string key="lifecycle:transition" value="complete"/>
      <boolean key="urgent" value="true"/><int key="cost" value="1"/><string key="type" value="own"/>
      <list key="notes"><string key="concept:name" value="nested"/></list>
    </event>
    <event>
      <string key="concept:name" value="decide"><string key="concept:name" value="meta"/></string>
      <date key="time:timestamp" value="2024-05-04T10:00:00Z"/><float key="cost" value="1.5"/>
    </event>
  </trace>
  <trace><event><string key="concept:name" value="x"/><date key="time:timestamp" value="2024-05-04T11:00:00"/></event>
  </trace>
</log>
"""


def test_xes_with_types_and_cases(tmp_path: Path) -> None:
    path = tmp_path / "log.xes.gz"
    path.write_bytes(gzip.compress(XES.encode()))
    table = cepheid.read(path)
    one, two, three = table.to_pylist()
    assert one["ts"] == datetime(2024, 5, 4, 7, tzinfo=UTC)
    assert (one["type"], one["case"], one["case:amount"], one["resource"]) == ("register", "case <1>", 500, "Ann")
    assert (one["urgent"], one["cost"], one["event:type"]) == (True, 1.0, "own")
    assert (two["type"], two["cost"], three["case"]) == ("decide", 1.5, None)
    assert table.schema.field("cost").type == pa.float64()
    found = cepheid.match(table, "PATTERN SEQ(register a, decide b) WHERE [case] WITHIN 1 day")
    assert found.num_rows == 1


def test_xes_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    path.write_text(XES.replace("2024-05-04T10:00:00Z", "noon"))
    with pytest.raises(DataError, match=r"event that has time:timestamp = 'noon', which is not of type date"):
        cepheid.read(path)
    assert cepheid.read(path, bad_records="drop").num_rows == 2
    path.write_text(XES.replace('value="500"', 'value="many"'))
    with pytest.raises(DataError, match="line 8 has amount = 'many', which is not of type int, of a trace"):
        cepheid.read(path)
    path.write_text(XES.replace("</log>", ""))
    with pytest.raises(DataError, match="as XML: no element found, in line"):
        cepheid.read(path)
    path.write_text("<html></html>")
    with pytest.raises(DataError, match="begins with <html>"):
        cepheid.read(path)


def test_entities_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    path = tmp_path / "log.xes"
    path.write_text(XES.replace("<log ", bomb + "<log ", 1))
    with pytest.raises(DataError, match="document type"):
        cepheid.read(path)


OCEL2 = {
    "objectTypes": [{"name": "order", "attributes": []}, {"name": "item", "attributes": []}],
    "eventTypes": [
        {"name": "place", "attributes": [{"name": "price", "type": "float"}, {"name": "n", "type": "integer"}]}
    ],
    "events": [
        {
            "id": "e1",
            "type": "place",
            "time": "2024-05-04T09:00:00Z",
            "attributes": [{"name": "price", "value": "9.5"}, {"name": "n", "value": "2"}],
            "relationships": [{"objectId": o, "qualifier": "q"} for o in ("o1", "i1", "i2")],
        },
        {"id": "e2", "type": "ship", "time": "2024-05-04T10:00:00Z", "relationships": [{"objectId": "i1"}]},
    ],
    "objects": [{"id": "o1", "type": "order"}, {"id": "i1", "type": "item"}, {"id": "i2", "type": "item"}],
}
OCEL1 = {
    "ocel:global-log": {"ocel:version": "1.0"},
    "ocel:events": {
        "e1": {
            "ocel:activity": "place",
            "ocel:timestamp": "2024-05-04 09:00:00+00:00",
            "ocel:omap": ["o1", "i1", "i2"],
            "ocel:vmap": {"price": 9.5, "n": 2},
        },
        "e2": {"ocel:activity": "ship", "ocel:timestamp": "2024-05-04T10:00:00Z", "ocel:omap": ["i1"], "ocel:vmap": {}},
    },
    "ocel:objects": {"o1": {"ocel:type": "order"}, "i1": {"ocel:type": "item"}, "i2": {"ocel:type": "item"}},
}


def as_json(folder: Path, log: object) -> Path:
    path = folder / "log.jsonocel"
    path.write_text(json.dumps(log, indent=1))
    return path


def as_sqlite(folder: Path) -> Path:
    path = folder / "log.sqlite"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as log:
        log.executescript("""
            CREATE TABLE event (ocel_id TEXT, ocel_type TEXT);
            CREATE TABLE event_map_type (ocel_type TEXT, ocel_type_map TEXT);
            CREATE TABLE event_Place (ocel_id TEXT, ocel_time TIMESTAMP, price REAL, n INTEGER);
            CREATE TABLE event_Ship (ocel_id TEXT, ocel_time TIMESTAMP);
            CREATE TABLE object (ocel_id TEXT, ocel_type TEXT);
            CREATE TABLE event_object (ocel_event_id TEXT, ocel_object_id TEXT, ocel_qualifier TEXT);
            INSERT INTO event_map_type VALUES ('ship', 'Ship'), ('place', 'Place');
            INSERT INTO event_Place VALUES ('e1', '2024-05-04 09:00:00', 9.5, 2);
            INSERT INTO event_Ship VALUES ('e2', '2024-05-04T10:00:00Z');
            INSERT INTO object VALUES ('o1', 'order'), ('i1', 'item'), ('i2', 'item');
            INSERT INTO event_object VALUES ('e1', 'o1', 'q'), ('e1', 'i1', 'q'), ('e1', 'i2', 'q'), ('e2', 'i1', '');
        """)
    log.close()
    return path


@pytest.mark.parametrize("form", ["2", "1", "sqlite"])
def test_ocel_in_its_forms(tmp_path: Path, form: str) -> None:
    path = as_sqlite(tmp_path) if form == "sqlite" else as_json(tmp_path, OCEL2 if form == "2" else OCEL1)
    table = cepheid.read(path)
    assert sorted(table.column_names) == sorted(["ts", "type", "id", "item", "order", "price", "n"])
    one, two = table.to_pylist()
    assert (one["ts"], one["type"], one["id"]) == (datetime(2024, 5, 4, 9, tzinfo=UTC), "place", "e1")
    assert (one["order"], sorted(one["item"]), two["order"], two["item"]) == (["o1"], ["i1", "i2"], [], ["i1"])
    assert (one["price"], one["n"], two["price"]) == (9.5, 2, None)
    items = cepheid.read(path, "ocel:item")
    assert sorted(zip(items["id"].to_pylist(), items["item"].to_pylist(), strict=True)) == (
        [("e1", "i1"), ("e1", "i2"), ("e2", "i1")]
    )
    assert cepheid.match(items, "PATTERN SEQ(place a, ship b) WHERE [item] WITHIN 2 hours").num_rows == 1
    with pytest.raises(CepheidError, match="no objects of type 'itm'; did you mean 'item'"):
        cepheid.read(path, "ocel:itm")


def test_ocel_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not an OCEL log"):
        cepheid.read(as_json(tmp_path, {"a": [1]}))
    broken = json.loads(json.dumps(OCEL2))
    broken["events"][0]["time"] = "noon"
    with pytest.raises(DataError, match="has the time 'noon'"):
        cepheid.read(as_json(tmp_path, broken))
    broken = json.loads(json.dumps(OCEL2))
    broken["events"][0]["attributes"][1]["value"] = "two"
    with pytest.raises(DataError, match="has n = 'two', which is no integer"):
        cepheid.read(as_json(tmp_path, broken))
    broken = json.loads(json.dumps(OCEL2))
    broken["events"][1]["relationships"][0]["objectId"] = "i9"
    with pytest.raises(DataError, match="is about 'i9', which is not an object of the log"):
        cepheid.read(as_json(tmp_path, broken))
    path = as_json(tmp_path, OCEL2)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(DataError, match="as JSON: there is an error in the value that begins in line"):
        cepheid.read(path)
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE a (b)")
    other.close()
    with pytest.raises(DataError, match=r"is not an OCEL 2\.0 log"):
        cepheid.read(path)


def test_large_json_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.files.json_members._BLOCK", 7)
    assert cepheid.read(as_json(tmp_path, OCEL2)).num_rows == 2
    assert cepheid.read(as_json(tmp_path, OCEL1)).num_rows == 2
