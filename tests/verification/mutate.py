"""Changes the source in small ways, one at a time, and asks whether the suite notices.

    python tests/verification/mutate.py --number 20 [--target reference] [--record build/verification]

A change is one of `RULES` at one place of a target's modules, drawn by a seed. It is written to a copy of the source,
and the target's tests run against that copy as plain Python. A change is caught if a test fails or the tests take far
longer than before. `mutations.jsonl` in the record's folder has a line for each change; those that nobody caught are
printed with their place.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
ENGINE = "tests/engine"
CONTRACT = f"{ENGINE}/test_contract.py"


class Target(NamedTuple):
    """Modules below src/cepheid, and the tests that should notice a change of them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


TARGETS = {
    "reference": Target(
        ("engine/reference",),
        ("tests/reference", "tests/flink", "tests/rows", CONTRACT, f"{ENGINE}/test_existence.py"),
    ),
    "stacks": Target(("engine/search/stacks",), (f"{ENGINE}/test_sequence.py", f"{ENGINE}/test_negation.py", CONTRACT)),
    "runs": Target(
        ("engine/search/runs",),
        (f"{ENGINE}/test_runs.py", f"{ENGINE}/test_expressions.py", f"{ENGINE}/test_compressed.py", CONTRACT),
    ),
    "lazy": Target(("engine/search/lazy",), (f"{ENGINE}/test_lazy.py", CONTRACT)),
    "queues": Target(("engine/search/queues",), (f"{ENGINE}/test_queues.py", CONTRACT)),
    "imprecise": Target(
        ("engine/search/intervals", "engine/search/points"),
        (f"{ENGINE}/test_imprecise_agrees.py", f"{ENGINE}/test_imprecise_confidence.py", CONTRACT),
    ),
    "row patterns": Target(("engine/search/row_pattern",), ("tests/rows", CONTRACT)),
    "Flink patterns": Target(("engine/search/flink", "plan/flink_lowering.py"), ("tests/flink", CONTRACT)),
    "live": Target(
        ("engine/incremental", "runners/live_fast.py"),
        (f"{ENGINE}/test_live_agrees.py", f"{ENGINE}/test_live_calls.py"),
    ),
    "streams": Target(("runners/stream",), ("tests/runners", CONTRACT)),
    "binding": Target(("language/bind.py", "language/check.py", "language/linear.py"), ("tests/language", CONTRACT)),
}


class Mutation(NamedTuple):
    """One change of one module."""

    module: str
    line: int
    rule: str
    before: str
    after: str
    low: int  # where the changed text lies in the module
    high: int

    def applied(self, text: str) -> str:
        """The module with the change."""
        return text[: self.low] + self.after + text[self.high :]


COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
TURNED: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*"}


def changes(node: ast.AST, text: str) -> Iterator[tuple[str, str]]:
    """The rules that apply to a node: a name, and the text that takes its place."""

    def of(part: ast.AST) -> str:
        return ast.get_source_segment(text, part) or ""

    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        yield "comparison", f"({of(node.left)} {COMPARED[type(node.ops[0])]} {of(node.comparators[0])})"
    elif isinstance(node, ast.BinOp) and type(node.op) in TURNED:
        yield "arithmetic", f"({of(node.left)} {TURNED[type(node.op)]} {of(node.right)})"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield "and, or", "(" + word.join(f"({of(value)})" for value in node.values) + ")"
        yield "left out", of(node.values[0])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", of(node.operand)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", str(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "truth", str(not node.value)
    elif isinstance(node, ast.Continue | ast.Break):
        yield "jump", "pass"
    elif isinstance(node, ast.IfExp):
        yield "choice", f"({of(node.orelse)})"


def mutations(module: Path) -> list[Mutation]:
    """All changes of a module; annotations, defaults of classes and texts stay as they are."""
    text = module.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    if not text.isascii():
        return []  # places are counted in bytes
    found = []
    bodies = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in {id(node): node for body in bodies for part in body.body for node in ast.walk(part)}.values():
        for rule, after in changes(node, text):
            low = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            high = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            where = str(module.relative_to(ROOT))
            found.append(Mutation(where, node.lineno, rule, text[low:high], after, low, high))  # type: ignore[attr-defined]
    return found


def modules_of(target: Target) -> list[Path]:
    """The modules of a target."""
    source = ROOT / "src" / "cepheid"
    found = []
    for name in target.modules:
        place = source / name
        found += (
            sorted(place.rglob("*.py")) if place.is_dir() else [place if place.suffix else place.with_suffix(".py")]
        )
    return found


def run_tests(target: Target, source: Path, seconds: float | None) -> str | None:
    """Runs a target's tests against a copy of the source: what noticed a change, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "1", "CEPHEID_TEST_PROFILE": "plain"}
    try:
        done = subprocess.run(
            [*command, *target.tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:200] if failed else None if done.returncode == 0 else f"exit code {done.returncode}"


def try_target(name: str, number: int, seed: int, record: Path) -> Counter[str]:
    """Draws changes of a target and runs its tests against each."""
    target = TARGETS[name]
    possible = [each for module in modules_of(target) for each in mutations(module)]
    drawn = random.Random(f"{name} {seed}").sample(possible, min(number, len(possible)))
    outcome: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, (record / "mutations.jsonl").open("a") as kept:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        begin = time.monotonic()
        noticed = run_tests(target, copy, None)
        if noticed is not None:
            raise SystemExit(f"{name}: the tests fail without a change: {noticed}")
        longest = 3 * (time.monotonic() - begin) + 30
        for mutation in drawn:
            place = copy / Path(mutation.module).relative_to("src")
            original = place.read_text()
            place.write_text(mutation.applied(original))
            caught = run_tests(target, copy, longest)
            place.write_text(original)
            outcome["survived" if caught is None else "caught"] += 1
            kept.write(json.dumps({"target": name, "seed": seed, "caught": caught, **mutation._asdict()}) + "\n")
            kept.flush()
            if caught is None:
                print(f"{mutation.module}:{mutation.line}: {mutation.before!r} -> {mutation.after!r}", flush=True)
    return outcome


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=20, help="changes of each target")
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, default=Path("build/verification"))
    asked = parser.parse_args()
    asked.record.mkdir(parents=True, exist_ok=True)
    for name in asked.target or TARGETS:
        outcome = try_target(name, asked.number, asked.seed, asked.record)
        print(f"{name}: {outcome['caught']} of {outcome.total()} changes caught", flush=True)


if __name__ == "__main__":
    main()
