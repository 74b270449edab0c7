"""What patterns that are expressions cost beside the sequences they are made of, on the same events in the same run.

`python -m bench.expressions [EVENTS]`. Processor time of whole calls of `match`, the smallest of several rounds that
take turns. `states` is the automaton, `expansion` one search for each linear pattern; the ratio is to the first line of
each block.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.errors import CepheidError

ROUNDS = 5
STRATEGIES = ("skip_till_next_match", "skip_till_any_match")
# Each block: a sequence, then what is compared with it.
BLOCKS: dict[str, tuple[str, ...]] = {
    "alternatives": ("SEQ(A a, B b, D d)", "SEQ(A a, (B b | C c), D d)"),
    "optional": ("SEQ(A a, B b, D d)", "SEQ(A a, B? b, D d)"),
    "rounds": ("SEQ(A+ a[])", "(A a, B b)+", "SEQ(B{2,5} b[])"),
    "by value": ("SEQ(A a, B b, D d)", "SEQ(A a, (B b | C c), D d)"),
    "dense": ("SEQ(A a, B b, D d)", "SEQ(A a, (B b | C c), D d)"),
    "many linear ones": ("SEQ(A a, B b, C c)", "SEQ((A a, B b){1,20}, C c)", "SEQ(AND(A a, B b, C c, D d), E e)"),
}
# Conditions and window, where they are not [id] and 600: an equality instead of a key, and everything with everything.
CLAUSES = {"by value": ("a.id = d.id", 600), "dense": ("", 60)}


def stream(count: int) -> pa.Table:
    """Events of eight types and a hundred keys, one each step."""
    rng = np.random.default_rng(1)
    kinds = np.array(list("ABCDEFGH"))[rng.integers(0, 8, count)]
    return pa.table({"ts": np.arange(count), "type": pa.array(kinds), "id": rng.integers(0, 100, count)})


def seconds(table: pa.Table, text: str, engine: str) -> tuple[float, int]:
    """Processor time of one call, and how many matches it found."""
    begun = time.process_time()
    found = cepheid.match(table, text, engine=engine, max_matches=10_000_000)
    return time.process_time() - begun, found.num_rows


def main(count: int) -> None:
    """Prints a block for each comparison and strategy."""
    table = stream(count)
    for name, (sequence, *expressions) in BLOCKS.items():
        condition, window = CLAUSES.get(name, ("[id]", 600))
        for strategy in STRATEGIES:
            print(f"{name}, {strategy}")
            runs = [(sequence, "auto")]
            runs += [(pattern, engine) for pattern in expressions for engine in ("states", "expansion")]
            best: dict[tuple[str, str], tuple[float, int]] = {}
            for _ in range(ROUNDS):
                for run in [run for run in runs if run not in best or best[run][1] >= 0]:
                    text = f"PATTERN {run[0]} WHERE {strategy} {{ {condition} }} WITHIN {window}"
                    try:
                        taken = seconds(table, text, run[1])
                    except CepheidError:
                        taken = (float("nan"), -1)
                    best[run] = min(best.get(run, taken), taken)
            for (pattern, engine), (taken, matches) in best.items():
                ratio = taken / best[runs[0]][0]
                told = f"{1000 * taken:9.1f} ms{matches:>10,} matches{ratio:7.2f}" if matches >= 0 else "   refused"
                print(f"  {pattern:<36}{engine:<10}{told}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
