"""The `points` engine: point-based evaluation (TIME section 3), the plain way that the event-based one is measured by.

Every event becomes one point event for each of its instants. All point matches are followed with skip_till_any_match,
whatever the query says, an event never standing twice in one match. Under skip_till_next_match points after the latest
time of the next event are left out. Point matches of one signature are collapsed: each is a set of worlds in which the
chosen events have these instants, so that competitors are independent of each other (equations 1, 2), and different
point matches are different worlds.
"""

from __future__ import annotations

from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import prepare
from cepheid.engine.kernels.asked import SearchRequest
from cepheid.engine.search.intervals.query import compile_query
from cepheid.engine.search.intervals.report import matches_of, picked, searched
from cepheid.engine.search.points.walk import search_points
from cepheid.plan.physical import Plan


def run_points(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, with confidence and tightest range."""
    prepared = prepare(plan, events)
    low, high = searched(plan, after, until)
    query = compile_query(plan, events, prepared)
    results, counters = search_points(
        prepared.timed,
        query.match_score,
        prepared.stacks,
        query.program,
        query.columns,
        query.predicate,
        query.nodes,
        SearchRequest(low, high, plan.limits.max_matches),
    )
    return picked(plan, events, matches_of(plan, prepared, results, counters, 0.0), until)
