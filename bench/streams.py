"""What a stream costs, with others of the same run: `python -m bench.streams PROGRAM`.

- `queries`: the processor time of a micro-batch with 1, 10, 100 and 300 queries that share a state, without Spark.
- `sase`: the same for 1, 10 and 100 sequences of three over 20 types and 1,000 keys, `--events` at a time, in turns.
  They differ in types, windows or constants, under any match and next match.
- `soak`: memory over many micro-batches with windows that pass, and the slope of it with its error, without Spark;
  with `--spark` that of the driver, its JVM and the Python workers.
- `load`: one giant key, a million tiny ones, bursts, silence, disorder: throughput, state, books and a batch beside it;
  without Spark, or with `--spark`.
- `latency`: from the arrival of an event to its match at some rates, beside a stateless query on the same session
  (bench/latency.py, which has more).
- `cost`: the processor time of a micro-batch of some sizes beside pipelines without an engine, in turns
  (bench/stream_cost.py).
- `spark`: the same for those that were asked for, and 10,000 events/s: on an idle machine with two cores about 8
  minutes with `--sizes 200000 1000000 --files 7 --rounds 2 --seconds 12`.
"""

from __future__ import annotations

import argparse

from bench.latency import run_rates
from bench.stream_cost import ALL, ASKED, run_cost, run_trickle
from bench.stream_load import run_load
from bench.stream_soak import run_spark_soak
from bench.stream_steps import run_queries, run_sase, run_soak


def main() -> None:
    """Runs one of the programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=["queries", "sase", "soak", "load", "latency", "cost", "spark"])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600, help="the soak ends after these, wherever it is")
    parser.add_argument("--spacing", type=int, default=1, help="milliseconds of event time between events of the soak")
    parser.add_argument("--spark", action="store_true", help="soak and load on Spark itself")
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--files", type=int, default=9, help="micro-batches of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", nargs="+", choices=ALL)
    chosen = parser.parse_args()
    match chosen.program:
        case "queries":
            run_queries(chosen.batches, chosen.events)
        case "sase":
            run_sase(chosen.batches, chosen.events)
        case "soak" if chosen.spark:
            run_spark_soak(chosen.batches, chosen.events, chosen.minutes)
        case "soak":
            run_soak(chosen.batches, chosen.events, chosen.minutes, chosen.spacing)
        case "load":
            run_load(chosen.spark)
        case "cost":
            run_cost(chosen.sizes, chosen.files, chosen.rounds, chosen.streams or ALL)
        case "spark":
            run_cost(chosen.sizes, chosen.files, chosen.rounds, chosen.streams or ASKED)
            run_trickle(10_000, chosen.seconds)
        case _:
            run_rates(chosen.rates, chosen.seconds)


if __name__ == "__main__":
    main()
