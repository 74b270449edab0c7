"""Plans as text: the operators that run, the engine and why, with estimates and, after a run, actual counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.printing import component_text, expression_text, summary_text, to_text, window_text
from cepheid.plan.operators import AUTO, Exchange, Spread
from cepheid.plan.options import TOLERANCE
from cepheid.plan.python_calls import run_as_python
from cepheid.plan.statistics import Statistics

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan

DECIDED_LATER = "decided from each partition's own statistics"


def explain(
    plan: Plan,
    original: BoundQuery,
    *,
    statistics: Statistics | None = None,
    automaton: str | None = None,
    actual: Mapping[str, int | str] | None = None,
    more: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """The whole story of a query, section by section; `more` are sections that a runner adds."""
    sections: list[tuple[str, Iterable[str]]] = [("Query", to_text(original.syntax).splitlines())]
    sections.append(("Plan", plan_lines(plan)))
    as_python = run_as_python(original)
    if as_python:
        sections.append(("As Python", as_python))
    sections += (more or {}).items()
    if automaton:
        sections.append(("Automaton", automaton.splitlines()))
    if statistics is not None:
        sections.append(("Estimates", _estimates(plan, statistics)))
    if actual is not None:
        sections.append(("Actual", [f"{_words(name):<38}{_number(value)}" for name, value in actual.items()]))
    return "\n\n".join("\n".join([title, *(f"  {line}".rstrip() for line in lines)]) for title, lines in sections)


def plan_lines(plan: Plan) -> list[str]:
    """The operators as a tree, each reading from the one below it, then the engine and why it."""
    lines = ["  " * depth + line for depth, line in enumerate(operator_lines(plan))]
    engine = DECIDED_LATER if plan.engine == AUTO else plan.engine
    lines += ["", f"engine      {engine}", *(f"because     {reason}" for reason in plan.reasons)]
    return lines


def operator_lines(plan: Plan) -> list[str]:
    """The operators as text, the last one first, each line one operator. Those that do nothing are left out."""
    return [f"{name:<10}{does}" for name, does in _operators(plan)]


def _operators(plan: Plan) -> Iterator[tuple[str, str]]:
    bound, match = plan.bound, plan.match
    if bound.syntax.summary is not None:
        yield "summarise", summary_text(bound.syntax.summary).removeprefix("SUMMARISE ")
    else:
        yield "transform", _returned(plan)
    if plan.output.mode is not s.OutputMode.ALL:
        yield "output", plan.output.mode.value
    if plan.is_lossy or plan.is_imprecise:
        yield "score", "; ".join(_judged(plan))
    for negation in bound.negations:
        where = _where_negated(bound, negation.after, negation.before)
        yield "negate", f"{component_text(negation.component)} {where}"
    for variable, ends in bound.untils:
        yield "until", f"{variable}[] ends before the first event after {variable}[1] with {expression_text(ends)}"
    if bound.window is not None and not match.window_pushed:
        yield "within", window_of(bound)
    if match.compared_at_the_end or match.conditions_at_the_end:
        yield "select", _conditions(match.compared_at_the_end, match.conditions_at_the_end)
    yield "match", "; ".join(_matched(plan))
    if plan.exchange.shards is not None:
        yield "retain", retained_text(plan)
    yield "exchange", _exchanged(plan.exchange, plan.bound)
    yield "scan", "; ".join(_scanned(plan))


def _judged(plan: Plan) -> Iterator[str]:
    score = plan.score
    if plan.is_lossy:
        yield f"missing events by {score.scoring} scores"
        if plan.options.missing_last:
            yield "the last event may also be missing"
        if score.threshold is not None:
            yield f"probability of at least {score.threshold:g}"
    if plan.is_imprecise:
        least = plan.options.confidence if plan.options.confidence is not None else score.confidence
        exact = plan.bound.schema.is_timed_exactly
        kind = "events that may not have happened by probability" if exact else "imprecise times by confidence"
        yield kind + (f" of at least {least:g}" if least is not None else "")
        competitors = plan.bound.strategy is not s.Strategy.SKIP_TILL_ANY or plan.bound.negations
        if competitors and not exact and not plan.is_lossy and plan.match.engine == "intervals":
            yield f"each exact, or within {plan.options.get('tolerance', TOLERANCE):g} by bounds"


def _matched(plan: Plan) -> Iterator[str]:
    bound, match = plan.bound, plan.match
    engine = {"": "", AUTO: f"engine {DECIDED_LATER}, "}.get(match.engine, f"{match.engine}, ")
    yield f"{engine}by {bound.strategy_text}{'' if bound.syntax.selection or not match.engine else ' (the default)'}"
    if match.partition:
        yield f"partitioned by [{', '.join(match.partition)}]"
    if match.hashed is not None:
        apart = ", ".join(f"{{{', '.join(sorted(each))}}}" for each in match.hashed.untied)
        unless = f", but where {apart} is missing" if apart else ""
        yield f"queues hashed by [{', '.join(match.hashed.attributes)}]{unless}"
    if match.compared or match.conditions:
        yield _conditions(match.compared, match.conditions)
    if match.indexed:
        yield f"candidates by value of {', '.join(expression_text(conjunct.expression) for conjunct in match.indexed)}"
    if match.window_pushed:
        yield f"within {window_of(bound)}"
    if match.order is not None:
        yield f"in the order {', '.join(bound.positives[place].variable for place in match.order)}"
    if plan.exchange.retention.decides_late:
        yield "reported when the window closes"


def retained_text(plan: Plan) -> str:
    """Which events a stream or a live query keeps, and for how long."""
    retention, what = (
        plan.exchange.retention,
        "every event" if plan.scan.every_event else "events that some component can take",
    )
    if retention.for_ever is not None:
        return f"everything: {retention.for_ever}"
    if retention.reach is not None:
        return f"{what}, for {_reach(plan.bound, retention.reach)}"
    return f"{what}, the last {retention.events} of each key"


def _exchanged(exchange: Exchange, bound: BoundQuery) -> str:
    shards = f", {exchange.shards} shards" if exchange.shards is not None else ""
    if exchange.spread is Spread.KEYS:
        parts = [f"by key [{', '.join(exchange.keys)}]{shards}"]
        if exchange.partitions is not None:
            parts.append(f"{exchange.partitions} partitions")
        if exchange.hot_keys is not None and exchange.sliceable:
            hot = "those with more than their share" if exchange.hot_keys == "auto" else repr(exchange.hot_keys)
            parts.append(f"hot keys ({hot}) also by slices of time")
        return "; ".join(parts)
    if exchange.shards is not None:
        return "one shard, because no key partitions the events"
    if exchange.spread is Spread.TIME:
        number = f"{exchange.slices} " if exchange.slices is not None else ""
        reach = exchange.retention.reach
        before = "" if reach is None else f", each with the events of {_reach(bound, reach)} before it"
        return f"by {number}slices of time{before}"
    return "none: all events in one task, because neither a key nor a window partitions them"


def _scanned(plan: Plan) -> Iterator[str]:
    scan, bound = plan.scan, plan.bound
    taken = []
    for each in scan.takes:
        tests = " AND ".join(expression_text(part) for part in each.conditions)
        taken.append(component_text(each.component) + (f" ({tests})" if tests else ""))
    yield ", ".join(taken)
    if scan.every_event:
        yield "every event is used"
    if scan.columns != bound.schema.names:
        yield f"columns {', '.join(scan.columns)}"


def _reach(bound: BoundQuery, steps: int) -> str:
    """How far back events are needed: the window, if that says it, or so many steps of the time column."""
    window, written = bound.window, bound.within
    named = written is not None and written.unit is not None and not isinstance(written.length, s.Name)
    if window is not None and named and not window.events and steps in (window.length - 1, window.length):
        return window_of(bound)
    return f"{steps} steps of {bound.schema.time}"


def window_of(bound: BoundQuery) -> str:
    """The window in words."""
    if bound.window is None:
        return "no window"
    asked = bound.within
    if asked is not None and asked.unit not in (None, "events") and not isinstance(asked.length, s.Name):
        return window_text(asked)  # 12 hours says more than so many microseconds
    if bound.window.events:
        return f"{bound.window.length} events"
    return f"{bound.window.length} steps of {bound.schema.time}"


def _returned(plan: Plan) -> str:
    if plan.transform.returns is None:
        return ", ".join(component.variable for component in plan.bound.positives)
    return ", ".join(f"{expression_text(expression)} AS {name}" for name, expression in plan.transform.returns)


def _where_negated(bound: BoundQuery, after: int | None, before: int | None) -> str:
    if after is None:
        assert before is not None
        return f"between the window's opening and {bound.positives[before].variable}"
    if before is None:
        return f"between {bound.positives[after].variable} and the window's end (postponed)"
    return f"between {bound.positives[after].variable} and {bound.positives[before].variable}"


def _conditions(names: tuple[str, ...], conjuncts: tuple[Conjunct, ...]) -> str:
    parts = [f"[{', '.join(names)}]"] if names else []
    return " AND ".join([*parts, *(expression_text(conjunct.expression) for conjunct in conjuncts)])


def _estimates(plan: Plan, statistics: Statistics) -> list[str]:
    lines = [f"{'events':<38}{_number(statistics.events)}", f"{'partitions':<38}{_number(statistics.partitions)}"]
    for component, rate in zip(plan.bound.positives, statistics.per_window, strict=False):
        lines.append(f"{component.variable + ' per window':<38}{rate:.3g}")
    lines += [f"{name:<38}{value:.3g}" for name, value in plan.estimates.items()]
    return lines


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
