"""From a bound query to a plan: rules, then the cheapest engine that can run it; what is asked for goes first."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cepheid.engine.data.table import EventTable
from cepheid.engine.engines import ENGINES, NEVER_CHOSEN, Engine
from cepheid.engine.statistics import measure, split_by_most_selective, worth_measuring
from cepheid.errors import EngineError, closest
from cepheid.language.bound import BoundQuery
from cepheid.language.linear import FEWER, TOO_LONG, TOO_MANY
from cepheid.plan.checks import check_meaning, check_options
from cepheid.plan.cost import Work
from cepheid.plan.operators import AUTO
from cepheid.plan.option_kinds import either
from cepheid.plan.options import EngineOptions, Limits, PlanOptions, given_options, options_of
from cepheid.plan.physical import Plan, basic_plan
from cepheid.plan.rules import BASIC, CONSTRUCTION, RULES, optimise
from cepheid.plan.statistics import Statistics
from cepheid.remembered import Remembered

FAR_BELOW = 10  # times fewer runs than allowed are estimated where they are chosen
# Options that speed alone depends on: given, they choose among engines.
CHOOSING = ("pushdown", "merge", "order", "learn", "method")

log = logging.getLogger("cepheid.engine")
_plans = Remembered[tuple[BoundQuery, Plan]](most=256)  # by the identity of the bound query, and the options


@dataclass(frozen=True)
class Choice:
    """An engine, the order it fills components in, and why."""

    engine: str
    order: tuple[int, ...] | None = None
    reasons: tuple[str, ...] = ()
    estimates: dict[str, float] = field(default_factory=dict)


def make_plan(
    bound: BoundQuery,
    events: EventTable | None = None,
    options: PlanOptions | None = None,
    *,
    decide_later: bool = False,
) -> tuple[Plan, Statistics | None]:
    """The plan for a query, with the statistics that it was chosen by, if any were measured.

    With `decide_later`, a choice that depends on the events is left to `decide`, which each worker calls for its own.
    """
    options = options or PlanOptions()
    check_meaning(bound)
    check_options(bound, options)
    plan = _rewritten(bound, options)
    if events is not None:
        plan = split_by_most_selective(plan, events)
    order = given_order(bound, options.order)
    engines = candidates_for(plan, options.engine, given_options(options.part(EngineOptions)))
    statistics = None
    if order is None and _depends_on_events(plan, engines):
        if decide_later and options.engine == AUTO:
            names = either([f"'{engine.name}'" for engine in engines if engine.name != "backtrack"])
            reason = f"{names}, whichever is cheapest for the events of a worker"
            return chosen(plan, Choice(AUTO, None, (reason,))), None
        if events is not None and worth_measuring(bound, events):
            statistics = measure(plan, events)
    return chosen(plan, choose(plan, engines, options.engine, order, statistics)), statistics


def decide(plan: Plan, events: EventTable) -> Plan:
    """A plan whose engine was left open, decided by the statistics of the events at hand."""
    engines = candidates_for(plan, AUTO, given_options(plan.options))
    statistics = measure(plan, events) if worth_measuring(plan.bound, events) else None
    choice = choose(plan, engines, AUTO, None, statistics)
    names = [plan.bound.positives[place].variable for place in choice.order or ()]
    order = f" in the order {', '.join(names)}" if names else ""
    log.info("%s events: engine %s%s, since %s", len(events), choice.engine, order, choice.reasons[-1])
    return chosen(plan, choice)


def chosen(plan: Plan, choice: Choice) -> Plan:
    """The plan with an engine."""
    match = replace(plan.match, engine=choice.engine, order=choice.order)
    return replace(plan, match=match, reasons=(*plan.reasons, *choice.reasons), estimates=choice.estimates)


def _rewritten(bound: BoundQuery, options: PlanOptions) -> Plan:
    """The plan after the rules that the options allow, without an engine; kept for further calls."""
    asked = (options.part(EngineOptions), options.part(Limits), options.scoring, options.pushdown, options.equivalence)

    def rewritten() -> tuple[BoundQuery, Plan]:
        plan = basic_plan(bound, options.model, options.scoring)
        match = replace(plan.match, options=asked[0], limits=asked[1])
        if not options.pushdown:
            rules = BASIC
        else:
            rules = CONSTRUCTION if options.equivalence == "construction" else RULES
        return bound, optimise(replace(plan, match=match), rules)

    return (rewritten() if options.model is not None else _plans.get((id(bound), asked), rewritten))[1]


def candidates_for(plan: Plan, asked: str, given: Sequence[str]) -> list[Engine]:
    """The engines that can run the plan and read the options that were given; an error says why there is none."""
    bound, lossy, imprecise = plan.bound, plan.is_lossy, plan.is_imprecise
    if asked != AUTO and asked not in ENGINES:
        names = [name for name, engine in ENGINES.items() if engine.forecasts == (bound.forecast is not None)]
        guess = closest(asked, names)
        known = f"did you mean '{guess}'?" if guess else f"the engines are {', '.join(sorted(names))}"
        raise EngineError(f"no engine '{asked}'; {known}")
    refusals = {name: engine.refusal(bound, lossy, imprecise) for name, engine in ENGINES.items()}
    able = [engine for name, engine in ENGINES.items() if refusals[name] is None]
    automatic = [engine for engine in able if engine.cost(None) < NEVER_CHOSEN]
    if asked != AUTO:
        if refusals[asked] is not None:
            others = either([f"'{engine.name}'" for engine in automatic or able] or ["no other engine"])
            raise EngineError(f"engine '{asked}' cannot run this query: {refusals[asked]}; {others} can")
        automatic = [ENGINES[asked]]
    if not automatic:
        kind = "expansion" if not bound.is_linear else "intervals" if imprecise else "queues" if lossy else "runs"
        kind = "forecast" if bound.forecast is not None else kind
        kind = "states" if bound.given_up or bound.follows_runs else kind
        hint = f"only engine={able[0].name!r} can, on a small stream" if able else None
        hint = FEWER if refusals[kind] in (TOO_LONG, TOO_MANY) else hint
        raise EngineError(f"{_where(lossy, imprecise)}this query cannot be run: {refusals[kind]}", hint=hint)
    for name in (name for name in given if name in CHOOSING):
        readers = [engine for engine in ENGINES.values() if name in options_of(engine.options)]
        automatic = [engine for engine in automatic if engine in readers]
        if not automatic:
            raise EngineError(_unread(name, asked, readers, refusals))
    return automatic


def _where(lossy: bool, imprecise: bool) -> str:
    parts = ["imprecise times"] * imprecise + ["missing events"] * lossy
    return f"with {' and '.join(parts)}, " if parts else ""


def _unread(name: str, asked: str, readers: Sequence[Engine], refusals: dict[str, str | None]) -> str:
    names = either([f"'{engine.name}'" for engine in readers])
    if asked != AUTO:
        return f"{name} is an option of engine {names}, not of '{asked}'"
    why = next((refusals[engine.name] for engine in readers if refusals[engine.name] is not None), None)
    reason = (
        f", which cannot run this query: {why}" if why is not None else ", but another option requires another engine"
    )
    return f"{name} is an option of engine {names}{reason}"


def _depends_on_events(plan: Plan, engines: Sequence[Engine]) -> bool:
    return len(plan.bound.positives) > 1 and any(engine.any_order for engine in engines)


def choose(
    plan: Plan, engines: Sequence[Engine], asked: str, order: tuple[int, ...] | None, statistics: Statistics | None
) -> Choice:
    """The cheapest of the engines, by what is known of the events."""
    bound, work = plan.bound, None if statistics is None else Work(plan.bound, statistics)
    if asked != AUTO:
        if order is None and asked == "lazy-chain" and work is not None:
            order = work.cheapest_order[0]
        return Choice(asked, order, (f"engine '{asked}' was requested",))
    engine = min(_within_limits(plan, engines, work), key=lambda each: each.cost(work))
    if order is not None:
        return Choice(engine.name, order, ("an order was requested",))
    if plan.is_imprecise or plan.is_lossy:
        kinds = ["times are intervals"] * (not bound.schema.is_timed_exactly)
        kinds += ["events may not have happened"] * (bound.schema.existence is not None)
        kinds += ["events may be missing"] * plan.is_lossy
        return Choice(engine.name, None, (" and ".join(kinds),))
    if work is None or not _depends_on_events(plan, engines):
        return Choice(engine.name, None, (_plain_reason(plan, engine, engines),))
    eager, (best, least) = work.backwards, work.cheapest_order
    estimates = {
        "events tested, backwards": eager,
        "events tested, best order": least,
        "events tested against runs": work.runs.tested,
    }
    if engine.any_order:
        names = ", ".join(bound.positives[place].variable for place in best)
        reason = f"filling {names} in this order considers {eager / max(least, 1e-9):.0f} times fewer combinations"
        return Choice(engine.name, best, (reason,), estimates)
    reason = "a sequence of single events, and no other order is much cheaper"
    if engine.name == "runs":
        reason = "runs share what they have in common, so that less is tested and listed"
    return Choice(engine.name, None, (reason,), estimates)


def _within_limits(plan: Plan, engines: Sequence[Engine], work: Work | None) -> Sequence[Engine]:
    """Without the engine of runs where these could become more than are allowed, since others hold none."""
    others = [engine for engine in engines if engine.name != "runs"]
    if work is None or not others or len(others) == len(engines):
        return engines
    many = work.runs.tested > plan.limits.max_partial_matches / FAR_BELOW
    return others if many else engines


def _plain_reason(plan: Plan, engine: Engine, engines: Sequence[Engine]) -> str:
    """Why an engine, if that needs no statistics."""
    if not plan.bound.is_linear:
        if engine.name == "states":
            return "groups, alternatives and optional parts are states of one automaton"
        why = ENGINES["states"].supports(plan.bound, plan.is_lossy, plan.is_imprecise)
        return f"the pattern is expanded to linear patterns, because one automaton cannot run it: {why}"
    why = ENGINES["sequence"].supports(plan.bound, plan.is_lossy, plan.is_imprecise)
    if engine.name == "sequence":
        return "a sequence of single events"
    return "an option requires it" if why is None else f"the sequence engine cannot run it: {why}"


def given_order(bound: BoundQuery, names: Sequence[str] | None) -> tuple[int, ...] | None:
    """An order of variables as places in the pattern."""
    if names is None:
        return None
    variables = [component.variable for component in bound.positives]
    if sorted(names) != sorted(variables):
        raise EngineError(f"order={list(names)} must name each of {', '.join(variables)} once")
    return tuple(variables.index(name) for name in names)
