"""Changes the source in small ways, one at a time, and asks whether the suite notices.

    python tests/verification/mutate.py --number 20 [--target reference] [--seed 1] [--record build/verification]
    python tests/verification/mutate.py --again [--target reference]

A change is one of the rules of `changes` at one place of a target's functions, drawn by a seed. The tests are collected
once, as plain Python. First each test of the target runs by itself and records which functions it calls. Then, for each
change, a copy of the process replaces the code of the changed function and runs the tests that call it, the fastest
first, until one fails. A change is caught if a test fails or does not end. `mutations.jsonl` in the record's folder has
a line for each change, and page.py adds them to mutations.json. With `--again`, the changes that are open there are
tried again.
"""

from __future__ import annotations

import _thread
import argparse
import ast
import gc
import importlib
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

if __name__ == "__main__":  # before anything imports the engine; whoever imports this module has settings of its own
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["CEPHEID_TEST_PROFILE"] = "plain"
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent.parent))

import pytest
from hypothesis import Phase, is_hypothesis_test, settings

from verification.drawn_cases import SETTINGS
from verification.run import commit

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "cepheid"
KEPT = Path(__file__).parent / "mutations.json"  # by change: the target, what caught it, and the reason if nothing can
ENGINE = "tests/engine"
SEARCH = "engine/search"
LONGEST = 5.0  # seconds of processor time of a test: slower ones do not run
FAILED = 99  # the exit code of a copy in which something else than a test failed
ENOUGH = 40  # seconds of processor time after which a change has survived


class Target(NamedTuple):
    """Modules below src/cepheid whose functions are changed, and the tests that should notice: files, or one's name."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


def contract(*engines: str) -> tuple[str, ...]:
    """What every engine must do, and answers by hand, for some."""
    properties = ("it_agrees_with_the_reference", "it_can_be_cut_anywhere", "retained_events_are_enough")
    drawn = [f"{ENGINE}/test_contract.py::test_{name}[{engine}]" for engine in engines for name in properties]
    by_hand = ("small_answers", "small_answers_of_missing_events")
    written = [f"{ENGINE}/test_small_answers.py::test_{name}[{engine}-" for engine in engines for name in by_hand]
    return (*drawn, *written, f"{ENGINE}/test_many_streams.py")


def files(folder: str, *names: str) -> tuple[str, ...]:
    """Files of tests."""
    return tuple(f"{folder}/test_{name}.py" for name in names)


IMPRECISE = (
    *files(ENGINE, *(f"imprecise_{name}" for name in ("agrees", "confidence", "data", "missing", "streams", "top"))),
    *files(ENGINE, "existence"),
    f"{ENGINE}/test_small_answers.py::test_small_answers_of_imprecise_times",
)
TARGETS = {
    "reference": Target(
        ("engine/reference",),
        (
            *("tests/reference", *files("tests/flink", "answers_of_flink", "documented_patterns")),
            *files("tests/rows", "other_systems", "small_answers"),
            *(*files(ENGINE, "existence", "maximal", "overlap", "totals"), *contract("sequence", "runs", "queues")),
        ),
    ),
    "stacks": Target(
        (f"{SEARCH}/stacks.py",),
        (*files(ENGINE, "sequence", "negation", "any_and_null_keys"), *contract("sequence")),
    ),
    "runs": Target(
        (f"{SEARCH}/runs",),
        (
            *files(ENGINE, "runs", "runs_automaton", "expressions", "drawn_expressions", "compressed", "running_sums"),
            *(*files(ENGINE, "limits", "overlap", "totals", "value_index"), *files("tests/partial", "output_partial")),
            f"{ENGINE}/test_small_answers.py::test_small_counts",
            *contract("runs", "states", "backtrack"),
        ),
    ),
    "lazy": Target((f"{SEARCH}/lazy",), (*files(ENGINE, "lazy", "negation"), *contract("lazy-tree", "lazy-chain"))),
    "queues": Target(
        (f"{SEARCH}/queues",),
        (*files(ENGINE, "queues", "censored"), *files("tests/plan", "recognise_equivalence"), *contract("queues")),
    ),
    "intervals": Target((f"{SEARCH}/intervals",), (*IMPRECISE, *contract("intervals"))),
    "points": Target((f"{SEARCH}/points",), (*IMPRECISE, *contract("points"))),
    "row patterns": Target((f"{SEARCH}/row_pattern",), ("tests/rows", f"{ENGINE}/test_contract.py::test_row_")),
    "Flink patterns": Target(
        (f"{SEARCH}/flink", "plan/flink_lowering.py"), ("tests/flink", f"{ENGINE}/test_contract.py::test_flink_")
    ),
    "live": Target(
        ("engine/incremental",),
        (
            *files(ENGINE, "incremental", "live_agrees", "live_calls", "dict_door", "result_rows"),
            *files("tests/runners", "live", "live_events", "live_patterns", "incremental_steps", "many_in_a_step"),
            *files("tests/runners", "queries_that_differ_in_constants"),
            *("tests/rows/test_pushed_rows.py", "tests/flink/test_pushed.py"),
        ),
    ),
    "output": Target(
        ("engine/output", "engine/retention.py"),
        (
            *(*files(ENGINE, "maximal", "overlap", "retain", "any_and_null_keys"), *IMPRECISE),
            *files("tests/runners", "stream_bounds", "stream_changes", "ties", "without_spark"),
            *(*files("tests/reference", "output", "completion"), *contract("runs", "queues")),
        ),
    ),
}


def change_of(line: dict[str, Any]) -> str:
    """How a change is called: the module, the function, and the text before and after."""
    before, after = (" ".join(line[name].split()) for name in ("before", "after"))
    return f"{line['module'].removeprefix('src/cepheid/')}, {line['function']}: `{before}` -> `{after}`"


class Mutation(NamedTuple):
    """One change of one module."""

    module: str
    line: int
    function: str
    rule: str
    before: str
    after: str
    low: int  # where the changed text lies in the module
    high: int

    @property
    def name(self) -> str:
        """How the change is called in mutations.json; a function may have several places for it."""
        return change_of(self._asdict())

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
        yield "left out", f"({of(node.values[0])})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", f"({of(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", str(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "truth", str(not node.value)
    elif isinstance(node, ast.Continue | ast.Break):
        yield "jump", "pass"
    elif isinstance(node, ast.IfExp):
        yield "choice", f"({of(node.orelse)})"


# No change is drawn inside these: annotations, messages, texts, and what only states what holds anyway.
LEFT_ALONE = (ast.AnnAssign, ast.arguments, ast.Raise, ast.JoinedStr, ast.Assert, ast.Global, ast.Import)


def makes_room(node: ast.AST) -> bool:
    """Is this an array of some size? A larger one is no mistake."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("zeros", "empty", "full", "ones")


def inside(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """The nodes that may be changed, each with the function it is in."""
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, LEFT_ALONE) or makes_room(child):
                continue
            within = function
            if isinstance(child, ast.FunctionDef):
                within = f"{function}.{child.name}".lstrip(".")
            if within:
                yield child, within
            yield from inside(child, within)


def mutations(module: Path) -> list[Mutation]:
    """All changes of a module's functions."""
    text = module.read_text()
    if not text.isascii():
        return []  # places are counted in bytes
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, function in inside(ast.parse(text)):
        for rule, after in changes(node, text):
            low = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            high = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            place = str(module.relative_to(ROOT))
            line = node.lineno  # type: ignore[attr-defined]
            found.append(Mutation(place, line, function, rule, text[low:high], after, low, high))
    return found


def modules_of(target: str) -> list[Path]:
    """The modules of a target."""
    places = [SOURCE / name for name in TARGETS[target].modules]
    return [each for place in places for each in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]


Place = tuple[str, str, int]  # of a function's code: the file, its qualified name, its first line


def place_of(code: CodeType) -> Place:
    """Where a code was written."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def pairs(one: CodeType, other: CodeType) -> Iterator[tuple[Place, CodeType]]:
    """For each code of a module the place of the original and the code that takes its place."""
    yield place_of(one), other
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (one, other)]
    if len(inner[0]) != len(inner[1]):  # a function inside was left out: the others are what they were
        same = [[left for left in inner[0] if left.co_code == right.co_code] for right in inner[1]]
        inner = [
            [lefts[0] for lefts in same if lefts],
            [right for right, lefts in zip(inner[1], same, strict=True) if lefts],
        ]
    for left, right in zip(*inner, strict=True):
        yield from pairs(left, right)


def replaced(mutation: Mutation) -> set[Place]:
    """Replaces the code of a module's functions in this process; the places of those that were there."""
    file = str(ROOT / mutation.module)
    text = Path(file).read_text()
    changed = {
        place: code
        for place, code in pairs(compile(text, file, "exec"), compile(mutation.applied(text), file, "exec"))
        if place[1] != "<module>"
    }
    name = mutation.module.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    importlib.import_module(name.replace("/", "."))  # engines are loaded when they are first used
    found = set()
    gc.unfreeze()  # conftest.py freezes what is imported by then, and what is frozen is not listed
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and (code := changed.get(place := place_of(each.__code__))) is not None:
            each.__code__ = code
            found.add(place)
    return found


def functions_of(mutation: Mutation) -> set[Place]:
    """The outermost function that a change touches: what calls it may notice."""
    file = str(ROOT / mutation.module)
    text = Path(file).read_text()
    one, other = compile(text, file, "exec"), compile(mutation.applied(text), file, "exec")
    lines = range(mutation.line, mutation.line + 1)
    found = set()
    for place, code in pairs(one, other):
        last = max((line for *_, line in code.co_lines() if line is not None), default=0)
        if place[1] != "<module>" and place[2] <= lines.start and lines.stop <= last + 2:
            found.add(place)
    return found


class Session:
    """The collected tests, and what those of a target call."""

    def __init__(self, items: list[pytest.Item], record: Path) -> None:
        self.items = {item.nodeid: item for item in items}
        self.record = record
        self.failed: str | None = None
        self.called: set[CodeType] = set()
        self.calls: dict[str, tuple[float, set[Place]]] = {}

    def run(self, item: pytest.Item) -> None:
        """Runs one test by itself."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def measure(self, target: str) -> None:
        """Runs each test of a target, in a copy of the process: how long it takes and which functions it calls."""
        kept = self.record / f"calls {target} {commit()}.jsonl"
        if not kept.exists():
            writing = kept.with_suffix(".new")
            items = [item for name, item in self.items.items() if name.startswith(TARGETS[target].tests)]
            self.apart(lambda: self.measured(items, writing), None)
            writing.rename(kept)
        self.calls.clear()
        measured = [json.loads(line) for line in kept.read_text().splitlines()]
        for name, seconds, failed, places in measured:
            if not failed and seconds < LONGEST and name in self.items:
                self.calls[name] = seconds, {tuple(place) for place in places}
        failing = sum(failed is not None for _, _, failed, _ in measured)
        print(f"{target}: {len(self.calls)} tests run, {failing} are left out because they fail anyway", flush=True)

    def measured(self, items: list[pytest.Item], kept: Path) -> int:
        """Writes a line for each test."""
        source = str(SOURCE)

        def called(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                self.called.add(frame.f_code)

        start = _thread.start_new_thread

        def started(function: Callable[..., None], arguments: tuple[Any, ...]) -> int:
            def profiled(*given: Any) -> None:
                sys.setprofile(called)
                function(*given)

            return start(profiled, arguments)

        _thread.start_new_thread = started  # searches run in threads of their own
        with kept.open("w") as lines:
            for item in items:
                self.failed, self.called = None, set()
                begin = time.process_time()
                sys.setprofile(called)
                self.run(item)
                sys.setprofile(None)
                seconds = time.process_time() - begin
                places = [place_of(code) for code in self.called if code.co_filename.startswith(source)]
                lines.write(json.dumps([item.nodeid, seconds, self.failed, places]) + "\n")
                lines.flush()
        return 0

    def apart(self, work: Callable[[], int], seconds: int | None) -> int | None:
        """Runs something in a copy of the process: its exit code, or None if a signal ended it."""
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = FAILED
            try:
                if seconds is not None:
                    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
                    signal.alarm(20 * seconds)  # one that waits for itself
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                code = work()
            except Exception as error:  # nothing of this copy may go on in the one that waits
                (self.record / "caught.txt").write_text(f"error: {error}")
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else None

    def catches(self, mutation: Mutation) -> str | None:
        """Which test notices a change, or None."""
        places = functions_of(mutation)
        able = sorted((seconds, name) for name, (seconds, calls) in self.calls.items() if places & calls)
        caught = self.record / "caught.txt"
        caught.write_text("")

        def tried() -> int:
            assert replaced(mutation) & places, mutation
            begun = time.process_time()
            for usual, name in able:
                signal.setitimer(signal.ITIMER_PROF, 3 * usual + 2)  # then a signal ends this copy
                caught.write_text(f"{name}: does not end")
                self.run(self.items[name])
                if self.failed:
                    caught.write_text(name)
                    return 1
                if time.process_time() > begun + ENOUGH:
                    break
            return 0

        code = self.apart(tried, 3 * ENOUGH)
        if code == FAILED:
            raise RuntimeError(caught.read_text())
        if not able:
            return None
        return None if code == 0 else caught.read_text()


class Plugin:
    """Takes over once pytest has collected the tests."""

    def __init__(self, targets: list[str], number: int, seed: int, record: Path) -> None:
        self.targets, self.number, self.seed, self.record = targets, number, seed, record
        self.session: Session | None = None
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        self.open = {change for change, tally in kept.items() if not tally["caught"] and "reason" not in tally}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.session is not None:
            self.session.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item in session.items:
            if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
                function = getattr(item.obj, "__func__", item.obj)
                chosen = getattr(function, SETTINGS, None) or settings()
                setattr(
                    function, SETTINGS, settings(chosen, phases=(Phase.explicit, Phase.generate))
                )  # no smallest case
        self.session = Session(session.items, self.record)
        for target in self.targets:
            self.session.measure(target)
            self.try_target(target, self.session)
        return True

    def try_target(self, target: str, session: Session) -> None:
        """Draws changes of a target and asks of each whether a test notices it."""
        possible = [each for module in modules_of(target) for each in mutations(module)]
        if self.number:
            drawn = random.Random(f"{target} {self.seed}").sample(possible, min(self.number, len(possible)))
        else:
            drawn = [each for each in possible if each.name in self.open]
        outcome: Counter[str] = Counter()
        for mutation in drawn:
            begin = time.monotonic()
            caught = session.catches(mutation)
            outcome["survived" if caught is None else "caught"] += 1
            line = {"target": target, "seed": self.seed, "commit": commit(), "caught": caught, **mutation._asdict()}
            with (self.record / "mutations.jsonl").open("a") as kept:
                kept.write(json.dumps(line) + "\n")
            shown = f"{mutation.module}:{mutation.line}: {mutation.before!r} -> {mutation.after!r} at {mutation.low}"
            print(f"{time.monotonic() - begin:5.0f}s {caught or 'SURVIVED'}  {shown}", flush=True)
        print(f"{target}: {outcome['caught']} of {outcome.total()} changes caught", flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=20, help="changes of each target")
    parser.add_argument("--again", action="store_true", help="changes that no test noticed, instead of new ones")
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, default=ROOT / "build" / "verification")
    asked = parser.parse_args()
    asked.record.mkdir(parents=True, exist_ok=True)
    plugin = Plugin(asked.target or list(TARGETS), 0 if asked.again else asked.number, asked.seed, asked.record)
    leave_out = ["--ignore-glob=*_large.py", "--ignore-glob=*_learn.py", "-k", "not ctrl_c"]
    plain = ["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "-s", "--capture=no"]
    tests = {name.partition("::")[0] for target in plugin.targets for name in TARGETS[target].tests}
    raise SystemExit(pytest.main([*plain, *leave_out, *sorted(tests)], plugins=[plugin]))


if __name__ == "__main__":
    main()
