"""What a match at imprecise times must be worth to be reported: confident, and where events may be missing, probable.

One tuple for every search. A search that takes every event as seen has one edge from each component to the next, which
is certain; so it need not know whether events may be missing (a branch on a field costs nothing that can be measured,
while overloads on the type would compile every search twice).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.scoring.confidence.bounds import NO_WINDOW
from cepheid.engine.scoring.confidence.order import precedes
from cepheid.engine.scoring.edges import CERTAIN, CLOSED, FALLS
from cepheid.engine.scoring.spans import Spans, edges_in_instants
from cepheid.errors import DataError
from cepheid.language import syntax as s
from cepheid.plan.options import TOLERANCE
from cepheid.plan.physical import Plan

ROUNDING = 1e-9  # a confidence or a probability that reaches its threshold but for rounding has reached it
MAX_COST = 1e9  # steps for the confidence of one match


class MatchScore(NamedTuple):
    """What is asked of a match. Edges are found by [source + 1, target]; see `edges`."""

    window: int  # in instants
    deadline: int  # the window in steps of the time column
    postponed: bool  # are matches known only when the window has passed?
    least: Float64s  # [0]: the smallest confidence to report, which TOP k raises; [1]: where it begins
    best: Float64s  # for TOP k room for the k best confidences of a partition, see `top`
    budget: float  # how many steps the judgement of one match may take
    tolerance: float  # by how much a confidence may be off
    scored: bool  # may events be missing?
    score: float  # the smallest probability to report...
    threshold: float  # ... and its logarithm
    number: Int64Rows  # edges: table of scores, CERTAIN or CLOSED
    highest: Float64Rows  # edges: log of the best score
    monotone: Int64Rows  # edges: FALLS, RISES or NEITHER
    ahead: Float64s  # by place: log of the best score of any path from it to the end of the window
    spans: Spans


def worth_of(plan: Plan, step: int, compared: int) -> MatchScore:
    """What a plan asks for; `step` is how many steps of the time column one instant is.

    `compared` is how many attributes of the equivalence test are compared event by event.
    """
    bound = plan.bound
    count, window = len(bound.positives), window_in_instants(plan, step)
    scored = plan.is_lossy
    score = (bound.threshold or 0.0) - ROUNDING if scored else 0.0
    if scored:
        edges, spans = edges_in_instants(plan, window, step)
        number, highest, monotone = edges.number, edges.highest, edges.monotone
    else:
        certain = np.eye(count + 1, dtype=bool)
        number, monotone = np.where(certain, CERTAIN, CLOSED), np.full(certain.shape, FALLS)
        highest, spans = np.where(certain, 0.0, -np.inf), no_spans()
    given = plan.options.get("confidence", bound.confidence)
    return MatchScore(
        window,
        bound.window.length if bound.window is not None else -1,
        bound.postponed,
        np.full(2, float(given or 0.0) - ROUNDING),
        np.zeros(competing(plan, compared)),
        float(plan.options.get("max_cost", MAX_COST)),
        float(plan.options.get("tolerance", TOLERANCE)),
        scored,
        score,
        float(np.log(score)) if score > 0 else -np.inf,
        number,
        highest,
        monotone,
        best_ahead(highest, count),
        spans,
    )


def no_spans() -> Spans:
    """No tables of scores."""
    whole, fraction = np.zeros(0, np.int64), np.zeros(0)
    return Spans(whole, fraction, fraction, fraction)


def best_ahead(highest: npt.NDArray[np.float64], count: int) -> Float64s:
    """For each positive component, the best log score of any path from it to the end of the window."""
    best = np.full(count + 1, -np.inf)
    best[count] = 0.0
    for place in range(count - 1, -1, -1):
        best[place] = np.max(highest[place + 1, place + 1 :] + best[place + 1 :])
    return best


def window_in_instants(plan: Plan, step: int) -> int:
    """How many instants the window holds, each being some steps of the time column."""
    if plan.bound.window is None:
        return NO_WINDOW
    window, rest = divmod(plan.bound.window.length, step)
    if rest:
        problem = f"a window of {plan.bound.window.length} steps is not a whole number of units of {step}"
        raise DataError(problem, hint="choose a unit that divides the window")
    return window


def competing(plan: Plan, compared: int) -> int:
    """How many matches of a partition get to be reported, where that can be told while it is searched; else 0.

    TOP counts by the values of the equivalence test: partitions must be at least as fine, and no attribute be compared.
    """
    output = plan.bound.output
    if output.mode is not s.OutputMode.TOP or compared > 0 or not set(plan.bound.equivalence) <= set(plan.partition):
        return 0
    return output.count or 1


@borrowing
def completion_of(timed: Timed, match_score: MatchScore, first: int, last: int, ends_here: bool) -> int:
    """When a match is known: once no event that begins later can be in it or in its way.

    `ends_here` says that its last component was seen.
    """
    if match_score.postponed or not ends_here:
        return timed.until[first] + match_score.deadline  # type: ignore[no-any-return]
    return timed.until[last]  # type: ignore[no-any-return]


@borrowing
def likely(timed: Timed, match_score: MatchScore, before: int, event: int, after: int) -> bool:
    """Could a match in which these are neighbours (-1: none) be confident enough? An upper bound from pairs."""
    if before >= 0 and precedes(timed, before, event) < match_score.least[0]:
        return False
    return not (after >= 0 and precedes(timed, event, after) < match_score.least[0])
