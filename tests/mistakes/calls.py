"""Mistakes that people make in Python: in queries, options, data and live queries. What they are told: told.txt."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import cepheid

T = pa.table(
    {
        "ts": [1, 2, 3, 4],
        "type": ["A", "B", "A", "B"],
        "id": [1, 1, 2, 2],
        "x": [1.0, 2.0, 3.0, 4.0],
        "name": ["u", "v", "w", "z"],
        "amount": ["1,234.50", "7", "8", "9"],
    }
)
Q = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
S = {"ts": int, "type": str, "id": int}


def m(t: Any = T, q: Any = Q, **options: Any) -> Callable[[], object]:
    """Matches a query in events."""
    return lambda: cepheid.match(t, q, **options)


def bad(**columns: Any) -> pd.DataFrame:
    """The events with other columns."""
    return pd.DataFrame({**T.to_pydict(), **columns})


CASES: dict[str, Callable[[], object]] = {
    # queries
    "q01 empty": m(q=""),
    "q03 lower word": m(q="PATERN SEQ(A a, B b)"),
    "q04 unclosed": m(q="PATTERN SEQ(A a, B b WITHIN 5"),
    "q05 var twice": m(q="PATTERN SEQ(A a, B a) WITHIN 5"),
    "q06 unknown var": m(q="PATTERN SEQ(A a, B b) WHERE c.x > 1 WITHIN 5"),
    "q07 unknown attr": m(q="PATTERN SEQ(A a, B b) WHERE a.xx > 1 WITHIN 5"),
    "q09 string cmp number": m(q="PATTERN SEQ(A a, B b) WHERE a.name > 3 WITHIN 5"),
    "q10 text as number": m(q="PATTERN SEQ(A a, B b) WHERE a.amount < 10 WITHIN 5"),
    "q11 unit w/o time_unit": m(q="PATTERN SEQ(A a, B b) WITHIN 5 minutes"),
    "q12 bad unit": m(q="PATTERN SEQ(A a, B b) WITHIN 5 minits", time_unit="s"),
    "q13 negative window": m(q="PATTERN SEQ(A a, B b) WITHIN -5"),
    "q14 trailing neg": m(q="PATTERN SEQ(A a, !(B b))"),
    "q15 only neg": m(q="PATTERN SEQ(!(A a)) WITHIN 5"),
    "q17 agg no kleene": m(q="PATTERN SEQ(A a, B b) WHERE avg(a.x) > 1 WITHIN 5"),
    "q18 parameter unknown": m(q="PATTERN SEQ(A a, B b) WITHIN T"),
    "q19 parameter type": m(q="PATTERN SEQ(A a, B b) WHERE a.x > T WITHIN 5", parameters={"T": [1]}),
    "q20 threshold >1": m(q=Q + " THRESHOLD 1.5"),
    "q21 output mode": m(q=Q + " OUTPUT ALLL"),
    "q22 return dup": m(q=Q + " RETURN a.x AS v, b.x AS v"),
    "q23 return reserved": m(q=Q + " RETURN a.x AS match_start"),
    "q24 strategy": m(q="PATTERN SEQ(A a, B+ b[]) WHERE skip_till_nxt_match(a, b[]) { [id] } WITHIN 5"),
    "q25 unknown function": m(q="PATTERN SEQ(A a, B b) WHERE abss(a.x) > 1 WITHIN 5"),
    "q26 wrong arity": m(q="PATTERN SEQ(A a, B b) WHERE abs(a.x, 2) > 1 WITHIN 5"),
    "q27 eq unknown": m(q="PATTERN SEQ(A a, B b) WHERE [idd] WITHIN 5"),
    "q28 not a query": lambda: cepheid.query(7),
    "q29 None": lambda: cepheid.query(None),
    "q30 bool arithmetic": m(q="PATTERN SEQ(A a, B b) WHERE a.x + 'u' > 1 WITHIN 5"),
    "q31 quote": m(q='PATTERN SEQ(A a, B b) WHERE a.name = "u WITHIN 5'),
    "q32 two WHERE": m(q="PATTERN SEQ(A a, B b) WHERE a.x > 1 WHERE b.x > 2 WITHIN 5"),
    "q34 SQL select": m(q="SELECT * FROM events"),
    "q35 empty parens": m(q="PATTERN SEQ() WITHIN 5"),
    # options
    "o01 engin": m(engin="auto"),
    "o02 engine": m(engine="sequense"),
    "o03 scoring": m(scoring="bogus"),
    "o04 max_matches text": m(max_matches="10"),
    "o05 max_matches huge": m(max_matches=10**30),
    "o06 max_matches 0": m(max_matches=0),
    "o07 negative": m(max_matches=-1),
    "o08 bool": m(max_matches=True),
    "o09 time col": m(time="tss"),
    "o10 type col": m(type="kind"),
    "o11 time_unit": m(time_unit="parsec"),
    "o12 tiebreak": m(tiebreak="seq"),
    "o13 lower only": m(lower="ts"),
    "o14 lower unknown": m(lower="lo", upper="hi"),
    "o15 uncertainty neg": m(uncertainty=-1),
    "o16 uncertainty text": m(uncertainty="five"),
    "o17 existence": m(existence="p"),
    "o18 lacks": m(lacks={"A": ["nope"]}),
    "o19 lacks type": m(lacks=["A"]),
    "o20 bad_records": m(bad_records="ignore"),
    "o21 aside w/o": m(aside="x.parquet"),
    "o22 dedupe": m(dedupe="idd"),
    "o23 time_format": m(time_format=7),
    "o24 model": m(model=0.1),
    "o25 delay batch": m(delay="5 s"),
    "o26 shards on pandas": m(shards=4),
    "o27 partitions on arrow": m(partitions=4),
    "o28 output": m(output="counts"),
    "o29 timeout": m(timeout="soon"),
    "o30 timeout neg": m(timeout=-1),
    "o31 parameters": m(parameters=["T"]),
    "o32 unused parameter": m(parameters={"T": 5}),
    "o33 dialect": m(dialect="oracle"),
    "o34 queries empty": lambda: cepheid.match(T, {}),
    "o35 query name": lambda: cepheid.match(T, {"match_start": Q}),
    "o36 queries list": lambda: cepheid.match(T, [Q, Q]),
    "o37 swapped": lambda: cepheid.match(Q, T),
    "o39 missing_last no model": m(missing_last=True),
    "o40 confidence": m(confidence=2),
    "o41 engine cannot": m(engine="points"),
    "o42 order": m(order=["a"], engine="lazy-chain"),
    "o43 method": m(method="fast"),
    "o44 decimal": m(decimal="x"),
    "o45 thousands": m(thousands=5),
    "o46 truncate": m(truncate="yes"),
    "o47 max_bytes": m(max_bytes="1GB"),
    "o48 fit loss": lambda: cepheid.fit(T, Q, loss=1.5),
    "o49 fit loss var": lambda: cepheid.fit(T, Q, loss={"z": 0.1}),
    "o50 fit negatives": lambda: cepheid.fit(T, Q, negatives="none"),
    "o51 Model loss": lambda: cepheid.Model(loss=2),
    "o52 Exp": lambda: cepheid.Exponential(mean=-1),
    "o53 load_model": lambda: cepheid.load_model("/nope.json"),
    "o54 match query=": lambda: cepheid.match(events=T, query="PATTERN"),
    # data
    "d01 list": m(t=[1, 2]),
    "d02 dict": m(t={"ts": [1]}),
    "d03 path": m(t="events.csv"),
    "d04 None": m(t=None),
    "d05 no ts": m(t=T.drop_columns(["ts"])),
    "d06 no type": m(t=T.drop_columns(["type"])),
    "d07 float time": m(t=bad(ts=[1.5, 2, 3, 4])),
    "d08 text time": m(t=bad(ts=["a", "b", "c", "d"])),
    "d09 one bad time": m(t=bad(ts=["2026-01-01T00:00:00", "2026-01-01T00:00:01", "soon", "2026-01-01T00:00:03"])),
    "d10 null time": m(t=bad(ts=pd.array([1, 2, None, 4], "Int64"))),
    "d11 NaT": m(t=bad(ts=pd.to_datetime(["2026-01-01", "2026-01-02", None, "2026-01-03"]))),
    "d12 inf time": m(t=bad(ts=[1.0, float("inf"), 3.0, 4.0])),
    "d13 int type": m(t=bad(type=[1, 2, 1, 2])),
    "d15 dup columns": m(t=pd.concat([bad(), bad()[["x"]]], axis=1)),
    "d16 far time": m(t=bad(ts=[1, 2, 3, 2**63 - 1])),
    "d17 date": m(t=bad(ts=[datetime.date(2026, 1, d) for d in range(1, 5)])),
    "d18 lower>upper": m(t=bad(lo=[5, 1, 1, 1], hi=[1, 2, 3, 4]), lower="lo", upper="hi", q=Q),
    "d19 existence 2": m(t=bad(p=[0.5, 2, 1, 1]), existence="p"),
    "d20 NULL existence": m(t=bad(p=[0.5, None, 1, 1]), existence="p"),
    "d21 complex": m(t=bad(x=[1j, 2, 3, 4])),
    "d23 uncertainty column": m(uncertainty="sigma"),
    "d24 sigma neg": m(t=bad(sigma=[1, -1, 1, 1]), uncertainty="sigma"),
    "d25 sigma null": m(t=bad(sigma=[1, None, 1, 1]), uncertainty="sigma"),
    "d26 sensor map": m(uncertainty={"A": "x"}),
    "d27 pandas index": m(t=bad().set_index("ts")),
    "d28 series": m(t=bad()["ts"]),
    "d29 numpy": m(t=np.zeros((3, 3))),
    "d30 list of dicts": m(t=T.to_pylist()),
    "d32 empty frame": m(t=pd.DataFrame()),
    "d33 no columns": m(t=pa.table({})),
    "d34 nested attr": m(t=bad(s=[{"k": 1}] * 4), q="PATTERN SEQ(A a, B b) WHERE a.s > 1 WITHIN 5"),
    "d36 wrong time_format": m(t=bad(ts=["01/02/2026"] * 4), time_format="%Y-%m-%d"),
    # live
    "l01 schema": lambda: cepheid.live(Q, 7),
    "l02 schema type": lambda: cepheid.live(Q, {"ts": "int"}),
    "l03 no within": lambda: cepheid.live("PATTERN SEQ(A a, B b) WHERE [id]", S),
    "l04 event key": lambda: cepheid.live(Q, S).send({"tss": 1}),
    "l05 event value": lambda: cepheid.live(Q, S).send({"ts": 1, "type": "A", "id": "x"}),
    "l06 delay": lambda: cepheid.live(Q, S, delay="5 parsecs"),
    "l07 delay unit": lambda: cepheid.live(Q, S, delay="5 s"),
    "l08 state": lambda: cepheid.live(Q, S, state=b"x"),
    "l09 state type": lambda: cepheid.live(Q, S, state="x"),
    "l10 advance": lambda: cepheid.live(Q, S).advance("soon"),
    "l11 option": lambda: cepheid.live(Q, S, shards=3),
    "l12 send str": lambda: cepheid.live(Q, S).send("A"),
    "l13 on bool ts": lambda: cepheid.live(Q, S).send({"ts": True, "type": "A", "id": 1}),
    "l14 delay neg": lambda: cepheid.live(Q, S, delay=-3),
    # why/explain/show
    "w01 why spark": lambda: cepheid.why("x", Q),
    "w02 why option": lambda: cepheid.why(T, Q, most_event=5),
    "w03 explain opt": lambda: cepheid.query(Q).explain(T, analyse=True),
    "w04 show": lambda: cepheid.show(7),
    "w06 calibration": lambda: cepheid.plot.calibration(T, T),
}
