"""One stream whose processes are killed for as long as one likes: `PYTHONPATH=tests python -m spark.kills FOLDER`.

It stops after some time, with another kill, and goes on when it is called again; with the last kill the stream comes to
its end, and what it has written is compared with what a batch finds.
"""

import argparse
import json
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import cepheid
from spark.killing import KINDS, Feed, commits, kill_all, written
from spark.test_stream import ABSENT, rows

SEED = 16


def main() -> None:
    """Kills some more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--finish", action="store_true", help="let the stream end when the time has run out")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    book = chosen.folder / "kills.json"
    kills = Counter(json.loads(book.read_text())) if book.exists() else Counter()
    before = kills.total()
    rng = random.Random(SEED)
    kinds = [rng.choice(KINDS) for _ in range(chosen.kills)][before:][::-1]
    rng = random.Random(f"{SEED} {before}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    given = None
    try:
        given = kill_all(rng, Feed(chosen.folder, SEED, most=5000), kinds, kills, chosen.seconds, chosen.finish)
    finally:
        if given is None:
            kills["driver and all that it started"] += 1  # at the end of the time
        book.write_text(json.dumps(kills))
    print(f"{kills.total()} kills, {commits(chosen.folder) + 1} micro-batches: {dict(kills)}")
    if given is not None:
        found, expected = rows(written(chosen.folder / "out")), rows(cepheid.match(given, {"absent": ABSENT}))
        lost, added = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
        print(
            f"{len(expected)} matches of {given.num_rows} events: {lost.total()} lost, {added.total()} twice or wrong"
        )
        assert found == expected


if __name__ == "__main__":
    main()
