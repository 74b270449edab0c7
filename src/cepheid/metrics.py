"""Numbers of running streams for Prometheus: a page of text that the driver serves, and a Grafana board for it.

>>> import cepheid.metrics                              # doctest: +SKIP
>>> served = cepheid.metrics.serve(spark, port=9464)    # doctest: +SKIP
>>> served.close()                                      # doctest: +SKIP

docs/grafana-board.json is a Grafana board of them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 9464
OUTCOMES = ("used", "irrelevant", "late", "malformed", "duplicates", "shed")
_OF_QUERY = re.compile(r"(used|irrelevant|late|duplicates|shed|matches)\[(.*)\]", re.DOTALL)
_BY_QUERY = {
    "used": "cepheid_query_events_total",
    "irrelevant": "cepheid_query_irrelevant_total",
    "late": "cepheid_query_late_total",
    "duplicates": "cepheid_query_duplicates_total",
    "shed": "cepheid_query_shed_total",
    "matches": "cepheid_matches_total",
}
_REASON = "shed_for_"
# Of many queries Spark has all numbers in one text, by the number of the query, and their names in another.
OF_EACH, NAMES = "queries", "query_names"
_IN_TEXT = ("used", "late", "duplicates", "shed", "matches")
HELP = {
    "cepheid_read_total": ("counter", "Records read"),
    "cepheid_events_total": ("counter", "Records by outcome; the outcomes add up to the records read"),
    "cepheid_matches_total": ("counter", "Matches reported"),
    "cepheid_query_events_total": ("counter", "Events of the types that a query names, without those that were shed"),
    "cepheid_query_irrelevant_total": ("counter", "Records that do not concern a query"),
    "cepheid_query_late_total": ("counter", "Events of the types that a query names that arrived too late"),
    "cepheid_query_duplicates_total": ("counter", "Events of the types that a query names that are duplicates"),
    "cepheid_query_shed_total": ("counter", "Events of the types that a query names that were shed"),
    "cepheid_shed_total": ("counter", "Events that were shed, by the limit that was reached"),
    "cepheid_lost_matches_estimate_total": ("counter", "Estimate of the matches that shed events would have been in"),
    "cepheid_batches_total": ("counter", "Micro-batches"),
    "cepheid_batch_seconds_total": ("counter", "Time spent in micro-batches"),
    "cepheid_batch_seconds": ("gauge", "Time of the last micro-batch"),
    "cepheid_state_bytes": ("gauge", "Bytes of events that later matches may need"),
    "cepheid_retained_events": ("gauge", "Events that later matches may need"),
    "cepheid_watermark_lag": ("gauge", "Newest time minus watermark, in steps of the time column"),
}


def observed(progress: Any) -> dict[str, dict[str, Any]]:
    """The numbers of each match in a streaming query, by the names of their metrics, from what Spark says of a batch.

    `progress` is a `StreamingQueryProgress`, as a listener or `query.lastProgress` gives it, or the same as a mapping.
    Names are those that were passed as `metrics=`, or `cepheid`, `cepheid_2`, ... in the order of the calls. The
    numbers of each query with a name are there as `matches[name]` and the like, however many queries there are.

    >>> told = {"matches": 2, "state_bytes": 10, "read": 5}
    >>> observed({"observedMetrics": {"cepheid": told, "others": {"rows": 1}}})
    {'cepheid': {'matches': 2, 'state_bytes': 10, 'read': 5}}
    """
    reported = progress["observedMetrics"] if isinstance(progress, Mapping) else progress.observedMetrics
    found = {name: each if isinstance(each, Mapping) else each.asDict() for name, each in (reported or {}).items()}
    return {name: by_query(each) for name, each in found.items() if {"state_bytes", "matches"} <= each.keys()}


def by_query(reported: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of one match, with those of each query under names of their own.

    >>> told = {"queries": "0,3,1,0,0,2;1,4,0,0,0,1;0,2,0,0,0,1", "query_names": '["a", "b"]'}
    >>> by_query({"read": 9, "malformed": 1, **told})  # doctest: +NORMALIZE_WHITESPACE
    {'read': 9, 'malformed': 1,
     'used[a]': 5, 'late[a]': 1, 'duplicates[a]': 0, 'shed[a]': 0, 'matches[a]': 3, 'irrelevant[a]': 2,
     'used[b]': 4, 'late[b]': 0, 'duplicates[b]': 0, 'shed[b]': 0, 'matches[b]': 1, 'irrelevant[b]': 4}
    """
    told = {name: value for name, value in reported.items() if name not in (OF_EACH, NAMES)}
    names = json.loads(reported.get(NAMES) or "[]")
    sums = [[0] * len(_IN_TEXT) for _ in names]
    for each in filter(None, (reported.get(OF_EACH) or "").split(";")):
        query, *numbers = map(int, each.split(","))
        sums[query] = [before + number for before, number in zip(sums[query], numbers, strict=True)]
    records = (reported.get("read") or 0) - (reported.get("malformed") or 0)
    for name, own in zip(names, sums, strict=True):
        if name is not None:
            told |= {f"{part}[{name}]": number for part, number in zip(_IN_TEXT, own, strict=True)}
            told[f"irrelevant[{name}]"] = records - sum(own[:-1])
    return told


@dataclass
class Numbers:
    """What streams have told so far, by metric and labels."""

    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, progress: Mapping[str, Any]) -> None:
        """Adds what Spark says about one micro-batch."""
        stream = {"stream": str(progress.get("name") or progress.get("id"))}
        matches = observed({"observedMetrics": progress.get("observedMetrics")})
        if not matches:
            return
        seconds = float((progress.get("durationMs") or {}).get("triggerExecution") or 0) / 1000
        with self.lock:
            self._add("cepheid_batches_total", stream, 1)
            self._add("cepheid_batch_seconds_total", stream, seconds)
            self._set("cepheid_batch_seconds", stream, seconds)
            for name, reported in matches.items():
                # A union or a chain holds several, which are told apart by the names of their metrics.
                self._take(reported, stream if len(matches) == 1 else {**stream, "match": name})

    def _take(self, reported: Mapping[str, Any], stream: Mapping[str, str]) -> None:
        """Adds what one match of a streaming query told."""
        self._add("cepheid_read_total", stream, reported.get("read"))
        for outcome in OUTCOMES:
            self._add("cepheid_events_total", {**stream, "outcome": outcome}, reported.get(outcome))
        self._add("cepheid_lost_matches_estimate_total", stream, reported.get("lost"))
        for name, value in reported.items():
            if found := _OF_QUERY.fullmatch(name):
                self._add(_BY_QUERY[found[1]], {**stream, "query": found[2]}, value)
            elif name.startswith(_REASON):
                self._add("cepheid_shed_total", {**stream, "reason": name.removeprefix(_REASON)}, value)
        if not any(_OF_QUERY.fullmatch(name) for name in reported):
            self._add("cepheid_matches_total", {**stream, "query": ""}, reported.get("matches"))
        self._set("cepheid_state_bytes", stream, reported.get("state_bytes"))
        self._set("cepheid_retained_events", stream, reported.get("retained"))
        if reported.get("newest") is not None and reported.get("watermark") is not None:
            self._set("cepheid_watermark_lag", stream, reported["newest"] - reported["watermark"])

    def _add(self, metric: str, labels: Mapping[str, str], value: Any) -> None:
        kept = self.values.setdefault(metric, {})
        key = tuple(sorted(labels.items()))
        kept[key] = kept.get(key, 0.0) + float(value or 0)

    def _set(self, metric: str, labels: Mapping[str, str], value: Any) -> None:
        if value is not None:
            self.values.setdefault(metric, {})[tuple(sorted(labels.items()))] = float(value)

    def text(self) -> str:
        """As Prometheus reads it.

        >>> numbers = Numbers()
        >>> numbers.take({"name": "shop", "observedMetrics": {"cepheid": {"matches": 2, "state_bytes": 10, "read": 5}}})
        >>> [line for line in numbers.text().splitlines() if line.startswith(("cepheid_read", "cepheid_match"))]
        ['cepheid_read_total{stream="shop"} 5', 'cepheid_matches_total{query="",stream="shop"} 2']
        """
        lines = []
        with self.lock:
            for metric, (kind, meaning) in HELP.items():
                if metric in self.values:
                    lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} {kind}"]
                    for labels, value in sorted(self.values[metric].items()):
                        listed = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels)
                        lines.append(f"{metric}{{{listed}}} {value:.10g}")
        return "\n".join([*lines, ""])


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Served:
    """A page of numbers that is being served; `close` ends it."""

    def __init__(self, session: Any, listener: object, server: ThreadingHTTPServer, numbers: Numbers) -> None:
        self._session, self._listener, self._server, self.numbers = session, listener, server, numbers

    @property
    def address(self) -> str:
        """Where Prometheus finds it."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def close(self) -> None:
        """Stops serving."""
        if self._session is not None:
            self._session.streams.removeListener(self._listener)
        self._server.shutdown()
        self._server.server_close()


def serve(session: Any, port: int = PORT, host: str = "127.0.0.1") -> Served:
    """Serves the numbers of all streams of a Spark session, at /metrics. Port 0 takes any that is free."""
    numbers = Numbers()
    listener = None
    if session is not None:
        from pyspark.sql.streaming.listener import StreamingQueryListener

        class Progress(StreamingQueryListener):
            def onQueryStarted(self, event: object) -> None: ...
            def onQueryProgress(self, event: Any) -> None:
                numbers.take(json.loads(event.progress.json))

            def onQueryIdle(self, event: object) -> None: ...
            def onQueryTerminated(self, event: object) -> None: ...

        listener = Progress()
        session.streams.addListener(listener)
    server = ThreadingHTTPServer((host, port), _page(numbers))
    threading.Thread(target=server.serve_forever, daemon=True, name="cepheid-metrics").start()
    return Served(session, listener, server, numbers)


def _page(numbers: Numbers) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] not in ("/", "/metrics"):
                self.send_error(404)
                return
            body = numbers.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None: ...

    return Page
