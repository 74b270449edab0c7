"""Drawn Flink patterns and events, as plain data that both our builder and Flink's own can be made of."""

from __future__ import annotations

import random
from typing import Any

from cepheid.errors import QueryError
from cepheid.language.flink.pattern import Pattern
from cepheid.language.flink.skip import AfterMatchSkipStrategy

NAMES = "abc"
SKIPS = ("no_skip", "no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last")


def draw_task(rng: random.Random, simple: bool = False) -> dict[str, Any]:
    """A pattern and events; `simple`: conditions speak of the event at hand only."""
    steps: list[str] = []
    chain = draw_chain(rng, steps, depth=0, simple=simple)
    if rng.random() < 0.5:
        chain[-1]["window"] = rng.randint(2, 8)
    outer = [part["name"] for part in chain if part["name"] and not part["contiguity"].startswith("not")]
    skip = rng.choice(SKIPS)
    if skip in ("skip_to_first", "skip_to_last") and not outer:
        skip = "skip_to_next"
    time, events = 0, []
    for _ in range(rng.randint(1, 9)):
        time += rng.choice((0, 1, 1, 1, 2, 3))
        events.append({"ts": time, "name": rng.choice("abcd"), "price": float(rng.randint(0, 4))})
    return {"chain": chain, "skip": skip, "step": rng.choice(outer) if outer else None, "events": events}


def draw_chain(rng: random.Random, steps: list[str], depth: int, simple: bool) -> list[dict[str, Any]]:
    """The parts of a pattern, or of a group."""
    chain: list[dict[str, Any]] = []
    for number in range(rng.choice((1, 2, 2, 3, 3, 4)) if depth == 0 else rng.choice((1, 2, 2))):
        hows = ["next", "followed_by", "followed_by", "followed_by_any"]
        if number and not chain[-1]["optional"] and not chain[-1].get("zero"):
            hows += ["not_next", "not_followed_by"]
        how = rng.choice(hows) if number else "next"
        negative = how.startswith("not")
        group = None
        name = None
        if depth < 2 and not negative and rng.random() < 0.18:
            group = draw_chain(rng, steps, depth + 1, simple)
        else:
            name = f"{'n' if negative else 's'}{depth}{number}{len(steps)}"
            if not negative:
                steps.append(name)
        rounds = "once" if negative else rng.choice(("once", "once", "times", "one_or_more"))
        least = rng.randint(1, 2)
        most = least + rng.choice((0, 1, 2)) if rounds == "times" else least
        inner = (
            rng.choice(("followed_by", "followed_by", "next", "followed_by_any")) if rounds != "once" else "followed_by"
        )
        greedy = rounds != "once" and group is None and inner != "followed_by_any" and rng.random() < 0.3
        after_greedy = bool(chain) and chain[-1]["greedy"]
        part = {
            "name": name,
            "group": group,
            "contiguity": how,
            "tests": draw_tests(rng, name, steps, simple) if name else [],
            "rounds": rounds,
            "least": least,
            "most": most,
            "inner": inner,
            "greedy": greedy,
            "optional": not negative and not after_greedy and rng.random() < 0.25,
            "until": draw_test(rng, name, steps, simple) if rounds == "one_or_more" and rng.random() < 0.25 else None,
            "window": None,
            "gap": rng.randint(1, 3) if rng.random() < 0.06 else None,
            "between": rng.randint(1, 3) if rounds != "once" and rng.random() < 0.06 else None,
        }
        chain.append(part)
    return chain


def draw_tests(rng: random.Random, own: str | None, steps: list[str], simple: bool) -> list[dict[str, Any]]:
    """The conditions of a step."""
    tests = [{**draw_test(rng, own, steps, True), "or": False}]
    if rng.random() < 0.1:
        return []
    while rng.random() < 0.25:
        tests.append({**draw_test(rng, own, steps, simple), "or": rng.random() < 0.4})
    return tests


def draw_test(rng: random.Random, own: str | None, steps: list[str], simple: bool) -> dict[str, Any]:
    """One condition."""
    kind = rng.random()
    if kind < 0.7 or (simple and kind < 0.8):
        return {"test": "name", "value": rng.choice(NAMES)}
    if simple or kind < 0.8:
        return {"test": "above", "value": float(rng.randint(0, 3))}
    step = rng.choice(steps)
    if kind < 0.88:
        return {"test": "sum below", "step": step, "value": float(rng.randint(2, 8))}
    if kind < 0.94:
        return {"test": "count", "step": step, "value": rng.randint(0, 2)}
    if step == own:
        return {"test": "name", "value": "a"}
    return {"test": "above first", "step": step}


def test_text(test: dict[str, Any]) -> str:
    """A condition as we write it."""
    match test["test"]:
        case "name":
            return f"name = '{test['value']}'"
        case "above":
            return f"price > {test['value']}"
        case "sum below":
            return f"sum({test['step']}[].price) + price < {test['value']}"
        case "count":
            return f"count({test['step']}[]) = {test['value']}"
    return f"price > {test['step']}[1].price"


def to_pattern(task: dict[str, Any]) -> Pattern:
    """The pattern, by our builder."""
    skip = AfterMatchSkipStrategy()
    match task["skip"]:
        case "skip_to_next":
            skip = AfterMatchSkipStrategy.skip_to_next()
        case "skip_past_last_event":
            skip = AfterMatchSkipStrategy.skip_past_last_event()
        case "skip_to_first":
            skip = AfterMatchSkipStrategy.skip_to_first(task["step"])
        case "skip_to_last":
            skip = AfterMatchSkipStrategy.skip_to_last(task["step"])
    return _chained(task["chain"], skip)


def _chained(chain: list[dict[str, Any]], skip: AfterMatchSkipStrategy) -> Pattern:
    at: Pattern | None = None
    for part in chain:
        what: Any = part["name"] if part["group"] is None else _chained(part["group"], skip)
        at = Pattern.begin(what, skip=skip) if at is None else getattr(at, part["contiguity"])(what)
        for test in part["tests"]:
            at = at.or_(test_text(test)) if test["or"] else at.where(test_text(test))
        if part["rounds"] == "times":
            at = at.times(part["least"], part["most"], within=part["between"])
        elif part["rounds"] == "one_or_more":
            at = at.times_or_more(part["least"], within=part["between"])
        if part["inner"] == "next":
            at = at.consecutive()
        elif part["inner"] == "followed_by_any":
            at = at.allow_combinations()
        at = at.greedy() if part["greedy"] else at
        at = at.optional() if part["optional"] else at
        at = at.until(test_text(part["until"])) if part["until"] else at
        at = at.within(part["window"]) if part["window"] else at
        at = at.within(part["gap"], between_events=True) if part["gap"] else at
    assert at is not None
    return at


def drawn_pattern(seed: int, simple: bool = False) -> tuple[dict[str, Any], Pattern]:
    """A task whose pattern can be built, and the pattern."""
    rng = random.Random(seed)
    while True:
        task = draw_task(rng, simple)
        try:
            return task, to_pattern(task)
        except QueryError:
            continue
