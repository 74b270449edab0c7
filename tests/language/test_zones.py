"""The query's time zone: literals, parts of times, casts and truncation follow it in every language, and in one way."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cepheid
import cepheid.flink
from cepheid.language.match_recognize.zone_use import zone_matters
from cepheid.language.zones import to_instants, to_walls, zone_called
from cepheid.runners.rows import bound_to

ZONES = ("America/New_York", "Etc/UTC", "Asia/Kolkata", "Australia/Lord_Howe", "-03:30")
BEGIN = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)  # New York's clocks go forward at 07:00 of the next day
CLAUSE = """MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x, hour(A.ts) AS h, CAST(A.ts AS string) AS shown,
date_trunc('day', A.ts) AS day, CAST(A.ts AS date) AS on_day, CAST('2026-03-08 01:30:00' AS timestamp) AS fixed,
timestampdiff(HOUR, TIMESTAMP '2026-03-08 00:00:00', A.ts) AS since
ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A) DEFINE A AS {})"""
CONDITIONS = {
    "literal": ("e.ts >= '2026-03-08 01:30:00'", "ts >= TIMESTAMP '2026-03-08 01:30:00'"),
    "text": ("e.ts >= '2026-03-08 01:30:00'", "ts >= '2026-03-08 01:30:00'"),
    "offset": ("e.ts >= '2026-03-08 01:30:00-05:00'", "ts >= TIMESTAMP '2026-03-08 01:30:00-05:00'"),
    "date": ("e.ts < '2026-03-08'", "ts < DATE '2026-03-08'"),
    "hour": ("hour(e.ts) BETWEEN 1 AND 3", "hour(ts) BETWEEN 1 AND 3"),
    "trunc": ("date_trunc('day', e.ts) = '2026-03-08'", "date_trunc('day', ts) = TIMESTAMP '2026-03-08 00:00:00'"),
    "cast": ("e.ts >= CAST('2026-03-08 01:30:00' AS timestamp)", "ts >= CAST('2026-03-08 01:30:00' AS timestamp)"),
}


def shown(at: datetime, zone: str) -> datetime:
    """What the clocks of a zone show, by Python's own means."""
    called = zone_called(zone)
    known = timezone(timedelta(hours=-3, minutes=-30)) if called[0] in "+-" else ZoneInfo(called)
    return at.astimezone(known).replace(tzinfo=None)


def holds(name: str, at: datetime, zone: str) -> bool:
    clock = shown(at, zone)
    match name:
        case "literal" | "text" | "cast":
            return clock >= datetime(2026, 3, 8, 1, 30)
        case "offset":
            return at >= datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
        case "date":
            return clock < datetime(2026, 3, 8)
        case "hour":
            return 1 <= clock.hour <= 3
    return clock.date() == date(2026, 3, 8)


def events(zone: str = "UTC") -> pa.Table:
    times = [BEGIN + timedelta(minutes=30 * step) for step in range(60)]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", zone)), "type": ["E"] * 60, "x": list(range(60))})


@pytest.mark.some(7)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("labelled", [True, False])
def test_conditions_of_all_languages_follow_the_zone(name: str, zone: str, labelled: bool) -> None:
    """By the zone of the time column, or by `tz`; the reference says the same."""
    text, row = CONDITIONS[name]
    table = events(zone_called(zone) if labelled else "UTC")
    options = {} if labelled else {"tz": zone}
    expected = [x for x, at in enumerate(events()["ts"].to_pylist()) if holds(name, at, zone)]
    assert 0 < len(expected) < 60
    for engine in ("auto", "reference"):
        found = cepheid.match(table, f"PATTERN E e WHERE {text} RETURN e.x AS x", engine=engine, **options)
        assert found["x"].to_pylist() == expected
        assert cepheid.match(table, CLAUSE.format(row), engine=engine, **options)["x"].to_pylist() == expected
        step = cepheid.flink.Pattern.begin("e").where(text.replace("e.ts", "ts"))
        one = cepheid.match(table, step, engine=engine, **options)
        assert [row["x"] for row in one["e"].to_pylist()] == expected


@pytest.mark.parametrize("zone", ZONES)
def test_what_is_returned_follows_the_zone(zone: str) -> None:
    text = """PATTERN E e RETURN e.ts AS ts, hour(e.ts) AS h, CAST(e.ts AS string) AS shown,
    date_trunc('day', e.ts) AS day, CAST('2026-03-08 01:30:00' AS timestamp) AS fixed,
    timestampdiff(HOUR, CAST('2026-03-08 00:00:00' AS timestamp), e.ts) AS since"""
    by_text = cepheid.match(events(), text, tz=zone).to_pylist()
    by_rows = [
        cepheid.match(events(), CLAUSE.format("true"), tz=zone, engine=e).to_pylist() for e in ("auto", "reference")
    ]
    assert by_rows[0] == by_rows[1]
    for one, other in zip(by_text, by_rows[0], strict=True):
        clock = shown(one["ts"], zone)
        assert one["h"] == other["h"] == clock.hour
        assert one["shown"] == other["shown"] == clock.isoformat(sep=" ")
        midnight = clock.replace(hour=0, minute=0)
        assert shown(one["day"], zone) == shown(other["day"].astimezone(UTC), zone) == midnight
        assert shown(one["fixed"], zone) == datetime(2026, 3, 8, 1, 30)
        assert one["fixed"] == other["fixed"]
        assert other["on_day"] == clock.date()
        assert one["since"] == other["since"]


def test_conditions_between_events_follow_the_zone() -> None:
    """Compiled, as the reference says; both sides of the change of clocks."""
    text = "PATTERN SEQ(E a, E b) WHERE hour(b.ts) = hour(a.ts) + 2 AND b.x < a.x + 9 RETURN a.x AS a, b.x AS b"
    row = """MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(A.x) AS a, LAST(B.x) AS b AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A C* B) DEFINE C AS hour(C.ts) < hour(A.ts) + 2,
    B AS hour(B.ts) = hour(A.ts) + 2 AND B.ts - A.ts < INTERVAL '3' HOUR)"""
    for query in (text, row):
        one = cepheid.match(events(), query, tz="America/New_York").sort_by([("a", "ascending"), ("b", "ascending")])
        other = cepheid.match(events(), query, tz="America/New_York", engine="reference")
        assert one.equals(other.sort_by([("a", "ascending"), ("b", "ascending")]))
        assert one.num_rows > 0
        assert not one.equals(cepheid.match(events(), query).sort_by([("a", "ascending"), ("b", "ascending")]))


def test_times_without_a_zone_stay_what_clocks_show() -> None:
    plain = events().set_column(0, "ts", events()["ts"].cast(pa.timestamp("us")))
    text = "PATTERN E e WHERE hour(e.ts) = 5 AND e.ts >= '2026-03-08 05:20:00' RETURN e.x AS x"
    row = CLAUSE.format("hour(ts) = 5 AND ts >= TIMESTAMP '2026-03-08 05:20:00'")
    assert cepheid.match(plain, text)["x"].to_pylist() == cepheid.match(plain, row)["x"].to_pylist() == [35]
    # With tz they are instants of that zone, and windows are as long as time is.
    pairs = "PATTERN SEQ(E a, E b) WITHIN 31 minutes"
    assert cepheid.match(plain, pairs).num_rows == 59
    early = pa.table({"ts": pa.array([datetime(2026, 3, 8, 1, 59), datetime(2026, 3, 8, 3, 1)]), "type": ["E", "E"]})
    assert cepheid.match(early, pairs).num_rows == 0
    found = cepheid.match(early, pairs, tz="America/New_York")
    assert found.num_rows == 1
    assert found.schema.field("match_start").type.tz == "America/New_York"
    texts = early.set_column(0, "ts", pa.array(["2026-03-08 01:59:00", "2026-03-08T03:01:00"]))
    assert cepheid.match(texts, pairs).num_rows == 0
    assert cepheid.match(texts, pairs, tz="America/New_York").num_rows == 1
    mixed = texts.set_column(0, "ts", pa.array(["2026-03-08 01:59:00", "2026-03-08T03:01:00+01:00"]))
    assert cepheid.match(mixed, pairs).num_rows == 1  # 01:59 and 02:01 in UTC


def test_instants_and_clocks_agree_with_arrow() -> None:
    rng = np.random.default_rng(1)
    times = rng.integers(1_400_000_000, 1_900_000_000, 20_000) * 1_000_000
    for zone in ("America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Berlin", "+05:30"):
        known = pa.array(times).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
        assert (to_walls(times, zone) == pc.local_timestamp(known).cast(pa.int64()).to_numpy()).all()
        again = to_instants(to_walls(times, zone), zone)
        assert (to_walls(again, zone) == to_walls(times, zone)).all()


def test_a_zone_that_is_none() -> None:
    for query in ("PATTERN E e", CLAUSE.format("true"), cepheid.flink.Pattern.begin("e")):
        with pytest.raises(cepheid.DataError, match=r"no time zone 'Mars/Base'.*Europe/Berlin"):
            cepheid.match(events(), query, tz="Mars/Base")
    with pytest.raises(cepheid.DataError, match="has no zone"):
        cepheid.live("PATTERN SEQ(E a, E b) WITHIN 1 hour", {"ts": pa.timestamp("us"), "type": str}, tz="Asia/Tokyo")


def test_zones_by_name_in_every_language() -> None:
    """local_time and its opposite, and hours that clocks show twice."""
    begin = datetime(2026, 11, 1, 4, 0, tzinfo=UTC)  # New York's clocks are put back at 06:00
    times = [begin + timedelta(minutes=30 * step) for step in range(8)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "type": ["E"] * 8})
    text = """EVENT E e RETURN date_trunc('hour', e.ts) AS cut, hour(local_time(e.ts, 'Asia/Tokyo')) AS tokyo,
    local_time_at(local_time(e.ts, 'Asia/Tokyo'), 'Asia/Tokyo') AS again,
    timestamp_at('2026-11-01 01:30:00', 'America/New_York') AS fixed"""
    measures = text.partition("RETURN")[2].replace("e.ts", "A.ts")
    clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES {measures} PATTERN (A) DEFINE A AS true)"
    whole = """MATCH_RECOGNIZE (ORDER BY ts MEASURES max(A.ts) AS top, count(DISTINCT hour(A.ts)) AS hours,
    count(DISTINCT A.ts) AS times, LAST(A.ts) - FIRST(A.ts) AS lasted PATTERN (A+) DEFINE A AS true)"""
    for engine in ("auto", "reference"):
        (row,) = cepheid.match(table, whole, tz="America/New_York", engine=engine).to_pylist()
        assert row["top"].timestamp() == times[-1].timestamp()
        assert (row["hours"], row["times"], row["lasted"]) == (3, 8, timedelta(hours=3, minutes=30))
    for engine in ("auto", "reference"):
        for query in (text, clause):
            rows = cepheid.match(table, query, tz="America/New_York", engine=engine).to_pylist()
            for at, row in zip(times, rows, strict=True):
                assert row["cut"].timestamp() == at.replace(minute=0).timestamp()
                assert row["tokyo"] == at.astimezone(ZoneInfo("Asia/Tokyo")).hour
                assert row["again"].timestamp() == at.timestamp()
                assert row["fixed"].timestamp() == datetime(2026, 11, 1, 5, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("condition", "matters"),
    [
        ("ts > FIRST(ts)", False),
        ("x > 3 AND type LIKE 'E%' AND upper(type) = 'E'", False),
        ("unix_seconds(ts) > 5", False),
        ("hour(ts) = 5", True),
        ("ts >= '2026-03-08 01:30:00'", True),
        ("ts >= TIMESTAMP '2026-03-08 01:30:00'", True),
        ("CAST(ts AS string) LIKE '2026%'", True),
        ("ts >= CAST(type AS timestamp)", True),
    ],
)
def test_a_clause_whose_answer_depends_on_the_zone(condition: str, matters: bool) -> None:
    query = cepheid.query(f"MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS {condition})")
    assert zone_matters(bound_to(query.clause, events().schema, "America/New_York"), ["ts"]) is matters


def test_texts_in_a_live_query() -> None:
    query = "EVENT E e RETURN e.ts AS ts, hour(e.ts) AS h"
    texts = ["2026-03-08 01:30:00", "2026-03-08 02:30:00", "2026-03-08 09:00:00+01:00"]
    for tz in (None, "America/New_York"):
        live = cepheid.live(query, {"ts": str, "type": str}, delay="1 hour", **({} if tz is None else {"tz": tz}))
        sent = [row for text in texts for row in live.send({"ts": text, "type": "E"})] + list(live.finish())
        whole = cepheid.match(pa.table({"ts": texts, "type": ["E"] * 3}), query, **({} if tz is None else {"tz": tz}))
        assert [(row["ts"].timestamp(), row["h"]) for row in sent] == [
            (row["ts"].timestamp(), row["h"]) for row in whole.to_pylist()
        ]
