"""The queries printed in the five papers, each with a schema and the parameters that it needs.

The texts are the `.cepheid` files beside this module; `QUERIES[name]` is one of them, ready to parse and bind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cepheid.language.schema import DataType, Schema

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class PrintedQuery:
    """A query as a paper prints it, and what it needs to run."""

    name: str
    schema: Schema
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file, with its comment on where the query comes from."""
        return (FOLDER / f"{self.name}.cepheid").read_text(encoding="utf-8")


def _schema(type_column: str | None = "type", *, clock: DataType = DataType.TIME, **columns: DataType) -> Schema:
    """Events with a time, a type and these attributes."""
    typed = ((type_column, DataType.STRING),) if type_column else ()
    unit = "microseconds" if clock is DataType.TIME else None
    return Schema((("ts", clock), *typed, *columns.items()), "ts", type_column, unit)


INT, FLOAT, STRING, LIST = DataType.INT, DataType.FLOAT, DataType.STRING, DataType.LIST

READER = _schema(None, reader=STRING, id=STRING)
RETAIL = _schema(id=STRING, shelf_id=INT, category=STRING, manufacturer_id=STRING)
CLINIC = _schema(name=STRING, medicine=STRING, amount=FLOAT)
ABCD = _schema(clock=INT, **{"attr₁": INT, "attr₂": INT, "attr₃": STRING, "attr₄": INT})
SYNTHETIC = _schema(clock=INT, **{"attr₁": INT, "attr₂": INT, "attr₃": INT, "attr₄": INT})
STORE = _schema(tag_id=STRING)
# Query 2 of SASE+ has an attribute called type, so the event type lives in another column.
SUPPLY = _schema("event_type", **{"type": STRING, "site": STRING, "from": STRING, "to": STRING})
STOCK = _schema(symbol=INT, price=FLOAT, volume=INT)
TICKS = _schema(clock=INT, symbol=INT, price=INT, volume=INT)
NASDAQ = _schema(ticker=STRING, price=FLOAT, history=LIST)
CLUSTER = _schema(taskId=INT, nodeId=INT, value=FLOAT)
VALUES = _schema(clock=INT, value=INT)

_T = {"T": 6}
_TICKERS = {"MSFT": "MSFT", "GOOG": "GOOG", "AAPL": "AAPL"}
_CORRELATED = {"Finance": ["JPM", "GS"], "Hi-Tech": ["MSFT", "IBM"], "GOOG": "GOOG", "T": 0.9, "h": "20 minutes"}

QUERIES: dict[str, PrintedQuery] = {
    query.name: query
    for query in (
        PrintedQuery("ayac-shoplifting", READER),
        PrintedQuery("lazy-correlated-stocks", NASDAQ, _CORRELATED),
        PrintedQuery("lazy-correlated-stocks-rarest-first", NASDAQ, _CORRELATED),
        PrintedQuery("lazy-correlated-stocks-rarest-middle", NASDAQ, _CORRELATED),
        PrintedQuery("lazy-figure-1", NASDAQ, _TICKERS),
        PrintedQuery("sase-any-in-sequence", SYNTHETIC),
        PrintedQuery("sase-medicine-overdose", CLINIC),
        PrintedQuery("sase-misplaced-inventory", RETAIL),
        PrintedQuery("sase-negation-at-the-end", ABCD, _T),
        PrintedQuery("sase-negation-at-the-start", ABCD, _T),
        PrintedQuery("sase-negation-in-the-middle", ABCD, _T),
        PrintedQuery("sase-plus-p1-s2", TICKS),
        PrintedQuery("sase-plus-p1-s3", TICKS),
        PrintedQuery("sase-plus-p2-s2", TICKS),
        PrintedQuery("sase-plus-p2-s3", TICKS),
        PrintedQuery("sase-plus-p3-avg-s3", TICKS),
        PrintedQuery("sase-plus-p3-max-s2", TICKS),
        PrintedQuery("sase-plus-p3-min-s3", TICKS),
        PrintedQuery("sase-plus-p3-star-s2", TICKS),
        PrintedQuery("sase-plus-p3-star-s3", TICKS),
        PrintedQuery("sase-plus-q1-shoplifting", STORE),
        PrintedQuery("sase-plus-q2-contamination", SUPPLY),
        PrintedQuery("sase-plus-q3-stock-trend", STOCK),
        PrintedQuery("sase-plus-q3-stock-trend-max", STOCK),
        PrintedQuery("sase-predicates-simple-and-parameterized", SYNTHETIC),
        PrintedQuery("sase-predicates-two-equivalence-tests", SYNTHETIC),
        PrintedQuery("sase-q1-shelf-readings", RETAIL),
        PrintedQuery("sase-q2-shoplifting", RETAIL),
        PrintedQuery("sase-q2-shoplifting-equivalence", RETAIL),
        PrintedQuery("sase-q3-query-plan", ABCD, _T),
        PrintedQuery("sase-sequence-construction", SYNTHETIC),
        PrintedQuery("sase-sequence-construction-long-window", SYNTHETIC),
        PrintedQuery("sase-telegraphcq", SYNTHETIC),
        PrintedQuery("sase-telegraphcq-two-attributes", SYNTHETIC),
        PrintedQuery("time-q1-cluster-monitoring", CLUSTER),
        PrintedQuery("time-synthetic", VALUES),
        PrintedQuery("time-synthetic-next-match", VALUES),
    )
}
