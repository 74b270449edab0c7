"""Equalities that tie most of what was seen together part the queues of missing events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.operators import Hashed
from cepheid.plan.rules.recognise_equivalence import (
    MOST_MISSABLE,
    edges_without,
    equality_candidates,
    equated_attribute,
    sets_of_missing,
    ties_all,
)

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def hash_queues(plan: Plan) -> Plan:
    """Queues are hashed by an attribute whose equalities tie what was seen together (AYAC section 5.2).

    The form that the paper prints is not quite an equivalence test. Where x is missing, `x.id[y.id] = y.id` reads
    `y.id = y.id`: then any y with an id is in the way, and not only that of the same tag.

    >>> from cepheid.plan.examples import example, show
    >>> text = "PATTERN SEQ(A x, !(B y), C z) WHERE x.id[y.id] = y.id AND x.id[z.id] = z.id WITHIN 9 THRESHOLD 0.1"
    >>> show(hash_queues(example(text)), "match")
    match     by skip_till_any_match; queues hashed by [id], but where {x} is missing

    So the search is two. One looks for the matches in which what is missing leaves the others tied: every positive
    event that was seen equals another one, step by step, and every negated event that could be in the way equals one
    of them. Events of different keys, and those without one, never meet there, and the queues hold one key each. The
    other looks, among all events, for matches in which one of the sets `untied` is missing, and for no others. Every
    set of missing components is in exactly one of the two, and both test all conditions (the first one leaves out the
    equalities, where every event has a value, since they hold in its queues): together they find what the query means,
    each match once.
    """
    bound = plan.bound
    if not plan.is_lossy or not bound.is_linear or plan.match.compared_at_the_end:
        return plan
    if len(bound.branches) != 1 or bound.has_kleene or bound.may_lack or len(bound.positives) > MOST_MISSABLE:
        return plan
    if bound.mixed or bound.strategy is not s.Strategy.SKIP_TILL_ANY or bound.window is None or bound.window.events:
        return plan  # under skip_till_next_match events that are not tied are competitors, too
    equalities = {part: name for part in equality_candidates(bound) if (name := equated_attribute(part, True))}
    untied: dict[str, tuple[frozenset[str], ...]] = {}
    for name in sorted(set(equalities.values()) - set(bound.equivalence)):
        parts = [part for part, attribute in equalities.items() if attribute == name]
        apart = tuple(absent for absent in sets_of_missing(plan) if not _tied(bound, parts, absent))
        if frozenset() not in apart:
            untied[name] = apart
    if not untied:
        return plan
    least = min(untied.values(), key=len)
    names = tuple(name for name, apart in untied.items() if apart == least)
    hashed = Hashed(names, frozenset(part for part, name in equalities.items() if name in names), least)
    return replace(plan, match=replace(plan.match, hashed=hashed))


def _tied(bound: BoundQuery, parts: Sequence[s.Expression], absent: frozenset[str]) -> bool:
    """Do equalities tie together all that was seen? One event alone always is: its conditions are tested anyway."""
    edges = edges_without(parts, absent)
    seen = [component.variable for component in bound.positives if component.variable not in absent]
    alone = [(seen[0], seen[0])] if len(seen) == 1 else []
    return ties_all(bound, [*edges, *alone], absent, keyed=True)
