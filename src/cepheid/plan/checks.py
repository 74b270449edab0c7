"""Is what was asked for something that these events can have? Said before any engine is chosen."""

from __future__ import annotations

from cepheid.errors import CepheidError, QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.options import ImpreciseOptions, PlanOptions, given_options, options_of

FOR_INTERVALS = (*options_of(ImpreciseOptions), "method")
FOR_MISSING = ("scoring", "missing_last")
GIVE_BOUNDS = "pass lower='...' and upper='...', or uncertainty=..."


def check_meaning(bound: BoundQuery) -> None:
    """Some clauses say nothing where every match is certain, others where times are not."""
    if bound.pattern is not None:
        _check_expression(bound)
    if bound.mixed and (bound.schema.lower is not None or bound.syntax.threshold is not None):
        unsure = "events may be missing" if bound.schema.lower is None else "times are imprecise"
        message = f"a strategy for single steps needs to know the event before them, and {unsure}"
        raise QueryError(message, hint="let one strategy govern all steps", code="steps-unsure")
    if bound.untils and (bound.schema.lower is not None or bound.syntax.threshold is not None):
        unsure = "events may be missing" if bound.schema.lower is None else "times are imprecise"
        hint = "leave UNTIL out, or put its condition into WHERE for every event of the group"
        raise QueryError(f"UNTIL needs to know which event came first, and {unsure}", hint=hint, code="until-unsure")
    if bound.schema.lower is not None:
        if bound.syntax.output.mode is s.OutputMode.NON_OVERLAP:
            unsure = "events that may not have happened" if bound.schema.is_timed_exactly else "imprecise times"
            reason = f"NON-OVERLAP needs to know which match ended first, and {unsure} do not say"
            raise QueryError(reason, hint="use OUTPUT TOP k BY CONFIDENCE, or CONFIDENCE", code="overlap-of-imprecise")
        return
    if bound.syntax.output.mode is s.OutputMode.TOP:
        hint = "pass lower='...' and upper='...', or leave OUTPUT out"
        raise QueryError("TOP k BY CONFIDENCE needs imprecise times", hint=hint, code="top-without-confidence")
    if bound.syntax.confidence is not None:
        raise QueryError(
            "CONFIDENCE needs imprecise times, and here every match is certain",
            hint=f"{GIVE_BOUNDS}; or leave CONFIDENCE out",
            code="confidence-of-precise-times",
        )


def _check_expression(bound: BoundQuery) -> None:
    """What is not yet said of patterns that are expressions."""
    hint = "write the alternatives as queries of their own, and run them together"
    if bound.schema.lower is not None:
        raise QueryError(
            "imprecise times need a pattern that is a plain sequence", hint=hint, code="expression-imprecise"
        )
    if bound.syntax.threshold is not None:
        raise QueryError("THRESHOLD needs a pattern that is a plain sequence", hint=hint, code="expression-threshold")


def check_options(bound: BoundQuery, options: PlanOptions) -> None:
    """Options that say something of missing events or imprecise times are for queries that have these."""
    given = given_options(options)
    if bound.schema.lower is None:
        for name in FOR_INTERVALS:
            if name in given:
                raise CepheidError(f"{name} is for imprecise times", hint=GIVE_BOUNDS)
    if bound.pattern is not None and options.model is not None:
        raise CepheidError("a loss model needs a pattern that is a plain sequence", hint="leave model out")
    if options.model is not None and (bound.untils or bound.mixed):
        what = "UNTIL" if bound.untils else "a strategy for single steps"
        raise CepheidError(f"{what} needs every event, and a loss model says that some are missing", hint="omit one")
    if not is_lossy(bound, options.model):
        for name in FOR_MISSING:
            if name in given:
                hint = "pass model=..., or write THRESHOLD in the query"
                raise CepheidError(f"{name} is for events that may be missing", hint=hint)


def is_lossy(bound: BoundQuery, model: object) -> bool:
    """May events be missing?"""
    return model is not None or bound.syntax.threshold is not None
