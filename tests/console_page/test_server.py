"""The console's answers, and whom it answers."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.cli.progress import StreamNumbers
from cepheid.cli.stream_console import console_watch
from cepheid.console.server import Server
from cepheid.console.workspace import Workspace
from cepheid.files.roles import Roles

EVENTS = pa.table(
    {"ts": [1, 2, 3, 4, 5], "type": ["A", "B", "A", "B", "C"], "id": [7, 7, 8, 8, 8], "big": [2**60 + 1] * 5}
)
QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    workspace = Workspace()
    workspace.add("events", EVENTS)
    running = Server(workspace).start()
    yield running
    running.stop()


def request(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    cookie = {"Cookie": f"cepheid-{server.port}={server.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {**cookie, **{k.replace("_", "-"): v for k, v in headers.items()}})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def ask(server: Server, what: str, **question: Any) -> Any:
    status, text, _ = request(server, "POST", f"/api/{what}", question)
    assert status in (200, 400), text
    return json.loads(text)


def test_the_token_opens_the_page_and_becomes_a_cookie(server: Server) -> None:
    status, _, headers = request(server, "GET", f"/?token={server.token}", Cookie="")
    assert (status, headers["location"]) == (303, "/")
    assert "HttpOnly" in headers["set-cookie"]
    assert "samesite=strict" in headers["set-cookie"].lower()
    status, text, headers = request(server, "GET", "/")
    assert status == 200
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "http://" not in text.replace("http://www.w3.org", "")  # nothing from elsewhere
    assert "https://" not in text


@pytest.mark.parametrize("path", ["/", "/static/console.js", "/api/stream/1", "/?token=wrong"])
def test_nobody_else_is_answered(server: Server, path: str) -> None:
    assert request(server, "GET", path, Cookie="")[0] == 403
    assert request(server, "GET", path, Cookie=f"cepheid-{server.port}=guess")[0] == 403


def test_other_sites_and_names_are_refused(server: Server) -> None:
    assert request(server, "GET", "/", Host="evil.example")[0] == 403
    assert request(server, "POST", "/api/tables", {}, Origin="http://evil.example")[0] == 403
    assert request(server, "POST", "/api/tables", {}, Content_Type="text/plain")[0] == 415
    assert request(server, "POST", "/api/tables", {}, Origin=f"http://127.0.0.1:{server.port}")[0] == 200


def test_files_of_the_page_only(server: Server) -> None:
    assert request(server, "GET", "/static/../server.py")[0] == 404
    assert request(server, "GET", "/static/%2e%2e/server.py")[0] == 404
    assert request(server, "GET", "/static/console.js")[0] == 200


def test_errors_have_places(server: Server) -> None:
    told = ask(server, "check", text="PATTERN SEQ(A a, B b) WHERE a.idd = 1", table="events")
    (error,) = told["errors"]
    assert (error["start"], error["end"], error["line"]) == (28, 33, 1)
    assert (error["message"], error["hint"]) == ("no attribute 'idd'", "did you mean 'id'?")
    assert "<svg" in told["svg"]
    assert ask(server, "check", text="", table="events") == {"errors": [], "svg": None}
    assert ask(server, "check", text="PATTERN SEQ(A", table=None)["errors"]


def test_run_more_why_and_explain(server: Server) -> None:
    run = ask(server, "run", text=QUERY, table="events")
    assert (run["matches"], run["events"], len(run["bars"]), len(run["marks"])) == (2, 5, 2, 4)
    assert "big=1152921504606846977" in run["rows"][0][2]  # exact, although JavaScript's numbers are not
    more = ask(server, "more", result=run["result"], first=1)
    assert (more["first"], len(more["bars"])) == (1, 1)
    assert "gone" in ask(server, "more", result=999)["error"]["message"]
    why = ask(server, "why", text="PATTERN SEQ(B b, C c) WHERE [id] AND b.id = 9 WITHIN 5", table="events")
    assert why["verdict"] == ["0 matches", "in 5 events"]
    assert any("b.id = 9 holds for none" in hint["text"] for hint in why["hints"])
    assert "sequence" in ask(server, "explain", text=QUERY, table="events")["plan"]
    wrong = ask(server, "run", text="PATTERN SEQ(A a, B b) WHERE a.idd = 1", table="events")["error"]
    assert "did you mean" in wrong["hint"]
    assert "open a file first" in ask(server, "run", text=QUERY, table="nope")["error"]["shown"]


def test_files_are_opened_and_roles_changed(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("when,kind,id\n2024-05-04 09:00:00,A,1\n2024-05-04 09:00:05,B,1\n")
    assert ask(server, "open", path=str(path))["opened"]["roles"]["time"] == "when"  # the only one that can be
    path.write_text("ts,kind,id\n2024-05-04 09:00:00,A,1\n2024-05-04 09:00:05,B,1\n")
    table = ask(server, "open", path=str(path))["opened"]
    assert (table["rows"], table["roles"]["type"]) == (2, None)
    table = ask(server, "roles", table=str(path), time="ts", type="kind")["opened"]
    assert table["types"] == ["A", "B"]
    assert ask(server, "run", text="PATTERN SEQ(A a, B b) WHERE [id] WITHIN 1 minute", table=str(path))["matches"] == 1
    assert "no such file" in ask(server, "open", path="/nowhere.csv")["error"]["message"]


def test_deep_json_is_an_error(server: Server, tmp_path: Path) -> None:
    """In a file that is opened, in one that is watched, and in a request; the console goes on."""
    deep = "[" * 20_000 + "]" * 20_000
    path = tmp_path / "deep.jsonl"
    path.write_text(f'{{"ts": 1, "type": "A", "v": {deep}}}\n')
    for place in (path, tmp_path):
        assert "nest more than 64 deep" in ask(server, "open", path=str(place))["error"]["message"]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    cookie = {"Cookie": f"cepheid-{server.port}={server.token}", "Content-Type": "application/json"}
    connection.request("POST", "/api/check", f'{{"text": {deep * 2}}}', cookie)
    assert connection.getresponse().status == 400
    assert ask(server, "check", text="", table="events") == {"errors": [], "svg": None}


def test_a_stream_tells_its_news(server: Server) -> None:
    number = ask(server, "stream", text=QUERY, table="events", per_second=8, delay="0")["stream"]
    status, text, headers = request(server, "GET", f"/api/stream/{number}")
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    news = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert [item["kind"] for item in news] == ["step", "step", "step", "step", "end"]
    assert sum(item.get("found", 0) for item in news) == 2
    assert news[-2]["numbers"]["events"] == 5
    assert "unit" in ask(server, "stream", text=QUERY, table="events", delay="5 minutes")["error"]["message"]


def test_a_stream_on_spark_is_told_of() -> None:
    watch = console_watch(Roles(), QUERY)
    found = cepheid.match(EVENTS, QUERY)
    watch.matches(found)
    watch.numbers(StreamNumbers(1, 5, 1, 2, 100.0, "2024-05-04T09:00:00.000Z", 2000, 3))
    watch.numbers(StreamNumbers(1, 5, 1, 2, 100.0, "2024-05-04T09:00:00.000Z", 2000, 3))  # nothing new
    watch.numbers(StreamNumbers(2, 9, 1, 2, 100.0, "2024-05-04T09:00:05.000Z", 2000, 3))
    assert ask(watch.server, "tables")["streams"] == [{"number": watch.stream.number, "query": QUERY}]
    watch.stream.say("end")
    _, text, _ = request(watch.server, "GET", f"/api/stream/{watch.stream.number}")
    news = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert [item["kind"] for item in news] == ["step", "step", "end"]
    assert [item.get("found") for item in news[:2]] == [2, 0]
    assert len(news[0]["bars"]) == 2
    assert news[1]["numbers"]["watermark"] == "2024-05-04T09:00:05.000Z"
    watch.end()


def test_totals_and_rows(server: Server) -> None:
    run = ask(server, "run", text=f"{QUERY} SUMMARISE count(*) AS n BY id", table="events")
    assert (run["found"], run["timed"], run["bars"], run["rows"]) == ("2 totals", False, [], [["7", "1"], ["8", "1"]])
    assert ask(server, "more", result=run["result"], first=1)["rows"] == [["8", "1"]]
    why = ask(server, "why", text=f"{QUERY} SUMMARISE count(*) AS n BY id", table="events")
    assert why["verdict"] == ["2 matches", "in 5 events"]
    clause = "MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS t PATTERN (A B) DEFINE A AS type = 'A')"
    run = ask(server, "run", text=clause, table="events")
    assert (run["found"], run["columns"], run["rows"]) == ("2 matches", ["id", "t"], [["7", "1"], ["8", "3"]])
    checked = ask(server, "check", text=clause, table="events")
    assert checked["errors"] == []
    assert "<svg" in checked["svg"]
    assert ask(server, "check", text=clause.replace("type", "kind"), table="events")["errors"][0]["start"] is not None
    assert "Row pattern" in ask(server, "explain", text=clause, table="events")["plan"]
    statement = ask(server, "check", text="SELECT * FROM events", table="events")["errors"][0]
    assert "with `cepheid sql`" in statement["hint"]


def test_totals_of_a_stream(server: Server) -> None:
    text = f"{QUERY} SUMMARISE count(*) AS n EVERY 2"
    number = ask(server, "stream", text=text, table="events", per_second=20, delay="0")["stream"]
    _, text, _ = request(server, "GET", f"/api/stream/{number}")
    news = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert [item["kind"] for item in news] == ["step", "step", "end"]
    assert sum(item.get("found", 0) for item in news) == 2


def test_ties_are_told_and_can_be_ordered() -> None:
    workspace = Workspace()
    workspace.add("log", pa.table({"ts": [1, 1, 2], "type": ["A", "B", "C"], "id": [7, 7, 7]}))
    running = Server(workspace).start()
    try:
        run = ask(running, "run", text=QUERY, table="log")
        assert (run["matches"], "choose 'row order' under Ties for row order" in run["ties"]) == (0, True)
        assert any("under Ties" in hint["text"] for hint in ask(running, "why", text=QUERY, table="log")["hints"])
        roles = ask(running, "roles", table="log", time="ts", type="type", tiebreak="row")["opened"]["roles"]
        assert roles["tiebreak"] == "row"
        run = ask(running, "run", text=QUERY, table="log")
        assert (run["matches"], run["ties"]) == (1, None)
    finally:
        running.stop()


def test_an_example_to_begin_with(server: Server) -> None:
    query = ask(server, "example", table="events")["query"]
    assert query == "PATTERN SEQ(A a, B b)\nWHERE [id]\nWITHIN 100"
    assert ask(server, "check", text=query, table="events")["errors"] == []
    opened = ask(server, "example")["opened"]
    query = ask(server, "example", table=opened["name"])["query"]
    assert ask(server, "run", text=query, table=opened["name"])["matches"] > 0


def test_who_has_no_token_is_told_where_it_is(server: Server) -> None:
    status, text, headers = request(server, "GET", "/", Cookie="")
    assert (status, headers["content-type"].partition(";")[0]) == (403, "text/html")
    assert "the address that <code>cepheid console</code> printed" in text
    assert 'name="token"' in text
    assert "form-action 'self'" in headers["content-security-policy"]
    assert "<script>" not in request(server, "GET", "/", Host="<script>.example", Cookie="")[1]


def test_errors_are_in_the_words_of_the_page(server: Server, tmp_path: Path) -> None:
    told = ask(server, "open", path=str(tmp_path / "nothing.csv"))["error"]
    assert "--" not in told["shown"]
    path = tmp_path / "day.csv"
    path.write_text("ts,type\n31/12/2024 09:00,A\n")
    assert "under 'Times written as'" in ask(server, "open", path=str(path))["error"]["shown"]
    opened = ask(server, "open", path=str(path), time_format="%d/%m/%Y %H:%M")["opened"]
    assert opened["columns"][0]["type"].startswith("timestamp")
    (error,) = ask(server, "check", text="PATTERN SEQ(A a, B b) WITHIN 5 hours", table="events")["errors"]
    assert error["hint"] == "choose 'ms' under Unit (or what 'ts' counts), or write a plain number"


def test_open_partial_matches_and_when_they_complete() -> None:
    model = cepheid.Model(gaps={"b": cepheid.Exponential(30, happens=0.9)})
    workspace = Workspace(given={"model": model, "scoring": "exact"})
    workspace.add("orders", pa.table({"ts": [0, 40, 50], "type": ["A", "A", "B"], "id": [1, 2, 3]}))
    running = Server(workspace).start()
    try:
        told = ask(running, "forecast", table="orders", text="PATTERN SEQ(A a, B b) WHERE [id] WITHIN 100")
        likely, unlikely = told["rows"]
        assert (told["open"], told["at"]) == (2, "50")
        assert likely["probability"] > unlikely["probability"]
        assert "id=2" in likely["held"][0]
        low, middle, high = likely["line"]
        assert 0 <= low < middle < high <= 1
        done = ask(running, "forecast", table="orders", text="PATTERN SEQ(B a, A b) WHERE [id] WITHIN 1")
        assert "error" not in done
    finally:
        running.stop()
    bare = Workspace()
    bare.add("orders", pa.table({"ts": [0], "type": ["A"], "id": [1]}))
    without = Server(bare).start()
    try:
        told = ask(without, "forecast", table="orders", text="PATTERN SEQ(A a, B b) WHERE [id] WITHIN 100")
        assert "needs a loss and gap model" in told["error"]["message"]
    finally:
        without.stop()
