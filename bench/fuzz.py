"""Fuzzing of everything that strangers may write: `python -m bench.fuzz --minutes 5 --seed 16`.

Texts and bytes of a corpus are mutated; each is read by its loader, which must return or raise an error of ours. With
atheris installed (`pip install atheris`), `--atheris` lets coverage guide the mutations.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType

import pyarrow as pa

import cepheid
from cepheid.errors import CepheidError
from cepheid.language.schema import Schema
from cepheid.model.loss_model import model_from_json, model_to_json
from cepheid.runners.stream.changing import Registered, Serving
from cepheid.runners.stream.state import StreamStep

QUERIES = sorted((Path(__file__).parent.parent / "tests" / "queries").glob("*.cepheid"))
COLUMNS = pa.schema(
    [("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())]
)
WORDS = [
    "SEQ(",
    "!(",
    ")",
    "{",
    "}",
    "[id]",
    " AND ",
    " OR ",
    "NOT ",
    "WITHIN 9",
    "1e308",
    "-",
    "a.x",
    "`",
    "'",
    "%",
    "+",
    "é",
    "\0",
]
Reader = Callable[[bytes], object]
READERS = ("cepheid.language", "cepheid.model", "cepheid.runners.stream", "cepheid.runners.arrow_bytes")


def mutated(rng: random.Random, some: bytes, other: bytes) -> bytes:
    """Some bytes with a few of them changed, cut out, doubled, or taken from elsewhere."""
    found = bytearray(some)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(6):
            case 0 if found:
                found[min(at, len(found) - 1)] = rng.randrange(256)
            case 1:
                del found[at : at + rng.randint(1, 20)]
            case 2:
                found[at:at] = rng.choice(WORDS).encode()
            case 3:
                found[at:at] = found[at : at + rng.randint(1, 30)] * rng.randint(1, 4)
            case 4 if other:
                start = rng.randrange(len(other))
                found[at:at] = other[start : start + rng.randint(1, 60)]
            case _:
                found[at:at] = bytes(rng.choices(range(32, 127), k=rng.randint(1, 4)))
    return bytes(found[:4_000])


def read_query(some: bytes) -> object:
    """Parses, checks and binds a text."""
    query = cepheid.query(some.decode("utf-8", "replace"))
    return query.bind(Schema.from_arrow(COLUMNS)) if hasattr(query, "bind") else query


def read_model(some: bytes) -> object:
    """Loads a model."""
    try:
        value = json.loads(some)
    except (ValueError, RecursionError):
        return None
    return model_from_json(value)


def read_state(some: bytes) -> object:
    """Goes on from a state."""
    return cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9", COLUMNS, state=some)


def read_row(some: bytes) -> object:
    """Takes in a row of a table of queries: nothing at all may be raised."""
    try:
        row = json.loads(some)
    except (ValueError, RecursionError):
        return None
    serving = Serving(COLUMNS, {"time": "ts", "type": "type"}, (), 1, StreamStep((), (), 0, schema=COLUMNS))
    return Registered().changed([row] if isinstance(row, dict) else [], serving)


def corpus() -> dict[str, tuple[Reader, list[bytes]]]:
    """What is read, how, and what it looks like when it is right."""
    texts = [path.read_bytes() for path in QUERIES]
    model = cepheid.Model(loss={"y": 0.1}, gaps={"y": cepheid.Exponential(mean=60), "z": cepheid.Uniform(1, 9)})
    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9", COLUMNS)
    live.send(
        [{"ts": 1, "type": "A", "id": 1, "x": 1.0, "s": "a"}, {"ts": 2, "type": "B", "id": 2, "x": 1.0, "s": "b"}]
    )
    rows = [
        json.dumps({"name": "q", "text": text.decode(), "options": {"scoring": "paper"}}).encode() for text in texts
    ]
    return {
        "query": (read_query, texts),
        "model": (read_model, [json.dumps(model_to_json(model)).encode()]),
        "state": (read_state, [live.save()]),
        "row": (read_row, rows),
    }


def fuzz(seconds: float, seed: int) -> tuple[Counter[str], list[str]]:
    """How many inputs were tried, by kind and outcome, and what went wrong."""
    rng, counts, wrong = random.Random(seed), Counter[str](), []
    known = corpus()
    begin = time.monotonic()
    while time.monotonic() - begin < seconds and len(wrong) < 10:
        kind = rng.choice(list(known))
        reader, seeds = known[kind]
        some = mutated(rng, rng.choice(seeds), rng.choice(seeds))
        started = time.monotonic()
        try:
            reader(some)
            counts[f"{kind} read"] += 1
        except CepheidError:
            counts[f"{kind} refused"] += 1
        except Exception as error:
            counts[f"{kind} WRONG"] += 1
            wrong.append(f"{kind}: {type(error).__name__}: {error}\n  {some!r}")
        if time.monotonic() - started > 10:
            wrong.append(f"{kind}: took {time.monotonic() - started:.0f} s\n  {some!r}")
    return counts, wrong


def fuzz_by_coverage(seconds: float, seed: int) -> None:
    """The same readers with atheris: inputs that reach new code are kept and mutated further.

    The first byte says which reader gets the rest. Only what reads strangers' bytes is instrumented: all that numba and
    Arrow have loaded would take minutes. Anything but a result or an error of ours ends the run.
    """
    import atheris

    known = corpus()
    kinds = list(known)

    def one(some: bytes) -> None:
        if some:
            with contextlib.suppress(CepheidError):
                known[kinds[some[0] % len(kinds)]][0](some[1:])

    for each in gc.get_objects():
        if isinstance(each, FunctionType) and str(each.__module__).startswith(READERS):
            atheris.instrument_func(each)
    with TemporaryDirectory() as folder:
        for number, kind in enumerate(kinds):
            for place, some in enumerate(known[kind][1]):
                (Path(folder) / f"{kind}-{place}").write_bytes(bytes([number]) + some)
        options = [f"-max_total_time={int(seconds)}", f"-seed={seed}", "-timeout=20", "-rss_limit_mb=4096"]
        atheris.Setup([sys.argv[0], *options, folder], one)
        atheris.Fuzz()


def main() -> None:
    """Fuzzes for some minutes and says what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--atheris", action="store_true", help="let coverage guide the mutations")
    chosen = parser.parse_args()
    if chosen.atheris:
        fuzz_by_coverage(60 * chosen.minutes, chosen.seed)
        return
    counts, wrong = fuzz(60 * chosen.minutes, chosen.seed)
    print(f"seed {chosen.seed}: {sum(counts.values()):,} inputs", dict(sorted(counts.items())))
    print("\n".join(wrong) or "nothing but results and errors of ours")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
