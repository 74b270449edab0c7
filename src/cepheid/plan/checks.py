"""Is what was asked for something that these events can have? Said before any engine is chosen."""

from __future__ import annotations

from typing import NoReturn

from cepheid.errors import CepheidError, QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.linear import TooManyError, grows, linear_patterns
from cepheid.plan.options import ImpreciseOptions, PlanOptions, given_options, options_of

FOR_INTERVALS = (*options_of(ImpreciseOptions), "method")
FOR_MISSING = ("scoring", "missing_last")
GIVE_BOUNDS = "pass lower='...' and upper='...', or uncertainty=..."


def check_meaning(bound: BoundQuery) -> None:
    """Some clauses say nothing where every match is certain, others where times are not."""
    lossy = "events may be missing" if bound.may_miss(None) else None
    unsure = "times are imprecise" if bound.schema.is_imprecise else lossy
    if not bound.is_linear:
        _check_expression(bound, bound.may_miss(None))
    if bound.mixed and unsure is not None:
        message = f"a strategy for single steps needs to know the event before them, and {unsure}"
        raise QueryError(message, hint="use one strategy for all steps", code="steps-unsure")
    if bound.untils and unsure is not None:
        hint = "leave UNTIL out, or put its condition into WHERE for every event of the group"
        raise QueryError(f"UNTIL needs to know which event came first, and {unsure}", hint=hint, code="until-unsure")
    if bound.schema.is_imprecise:
        if bound.output.mode is s.OutputMode.NON_OVERLAP:
            unsure = "events that may not have happened" if bound.schema.is_timed_exactly else "imprecise times"
            reason = f"NON-OVERLAP needs to know which match ended first, and {unsure} do not fix the order"
            raise QueryError(reason, hint="use OUTPUT TOP k BY CONFIDENCE, or CONFIDENCE", code="overlap-of-imprecise")
        return
    if bound.output.mode is s.OutputMode.TOP:
        hint = "pass lower='...' and upper='...', or leave OUTPUT out"
        raise QueryError("TOP k BY CONFIDENCE needs imprecise times", hint=hint, code="top-without-confidence")
    if bound.confidence is not None:
        raise QueryError(
            "CONFIDENCE needs imprecise times, and here every match is certain",
            hint=f"{GIVE_BOUNDS}; or leave CONFIDENCE out",
            code="confidence-of-precise-times",
        )


def _check_expression(bound: BoundQuery, lossy: bool) -> None:
    """What a pattern that is an expression can mean where events may be missing or times are imprecise.

    It stands for its linear patterns. Missing events: an assignment is as probable as by the pattern by which it is
    most. Imprecise times: different orders of the same events exclude each other, so that their confidences add up.
    """
    imprecise = bound.schema.is_imprecise
    if not lossy and not imprecise:
        return
    unsure = "events may be missing" if lossy else "times are imprecise"

    def fail(message: str, hint: str) -> NoReturn:
        raise QueryError(f"{message}, where {unsure}", hint=hint, code="expression-unsure")

    apart = "write the alternatives as queries of their own, and run them together"
    if lossy and imprecise:
        fail("imprecise times in a pattern that is more than a sequence", apart)
    mode = bound.output.mode
    if mode is not s.OutputMode.ALL:
        fail(f"OUTPUT {mode.value} of a pattern that is more than a sequence", "leave OUTPUT out")
    if grows(bound):
        fail("a part that is repeated without end", "give a maximum, for example {1,3}")
    if lossy and bound.strategies != {s.Strategy.SKIP_TILL_ANY}:
        fail(f"{bound.strategy_text} with a pattern that is more than a sequence", "write skip_till_any_match")
    if imprecise and bound.gaps:
        fail("AFTER and WITHIN after a component compare times", "leave them out, and use the query's WITHIN")
    try:
        patterns = linear_patterns(bound, 1)
    except TooManyError:
        fail("the pattern expands to too many linear patterns", apart)
    negated = frozenset(component.variable for component in bound.components if component.negative)
    late = {linear[-1].variable in negated for linear in patterns}
    if len(late) > 1 or (imprecise and True in late):
        fail("negation at the end of a pattern that is more than a sequence", "put an event after it")
    orders = [tuple(step.variable for step in linear if step.variable not in negated) for linear in patterns]
    if imprecise and len(set(orders)) < len(orders):
        fail("the pattern holds for the same events in the same order in two ways", apart)


def check_options(bound: BoundQuery, options: PlanOptions) -> None:
    """Options that say something of missing events or imprecise times are for queries that have these."""
    given = given_options(options)
    if not bound.schema.is_imprecise:
        for name in FOR_INTERVALS:
            if name in given:
                raise CepheidError(f"{name} is for imprecise times", hint=GIVE_BOUNDS)
    if not bound.is_linear and options.model is not None and bound.forecast is None:
        _check_expression(bound, True)
    if not bound.is_linear and options.missing_last:
        hint = "write the alternatives as queries of their own, and run them together"
        raise CepheidError("missing_last needs a pattern that is a plain sequence", hint=hint)
    if options.model is not None and (bound.untils or bound.mixed):
        what = "UNTIL" if bound.untils else "a strategy for single steps"
        raise CepheidError(f"{what} needs every event, and with a loss model some are missing", hint="omit one")
    if options.forecast_at is not None and bound.forecast is None:
        raise CepheidError("forecast_at is for queries with FORECAST", hint="write FORECAST 80%, or leave it out")
    if not bound.may_miss(options.model):
        for name in FOR_MISSING:
            if name in given:
                hint = "pass model=..., or write THRESHOLD in the query"
                raise CepheidError(f"{name} is for events that may be missing", hint=hint)
