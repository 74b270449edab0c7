"""What the conditions of a clause say about whole matches: how long one can last, and at which rows it can begin.

`M.t - R.t <= INTERVAL '30' MINUTE` is a window if R is the first row of every match and M the last one. A condition
that reads nothing but the first row decides before the search whether a match can begin there.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from cepheid.language import pattern as p
from cepheid.language import syntax as s
from cepheid.language.match_recognize import bound as b

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def needed_labels(pattern: p.Pattern) -> frozenset[str]:
    """The labels that some row of every match has.

    >>> a, b = p.Single("A"), p.Single("B")
    >>> sorted(needed_labels(p.Sequence((p.Repeat(a, 0, None), p.Choice((b, p.Sequence((a, b))))))))
    ['B']
    """
    match pattern:
        case p.Single(label=label):
            return frozenset({label})
        case p.Sequence(parts=parts) | p.AnyOrder(parts=parts):
            return frozenset().union(*(needed_labels(part) for part in parts))
        case p.Choice(parts=parts):
            return frozenset.intersection(*(needed_labels(part) for part in parts))
        case p.Repeat(part=part, least=least):
            return needed_labels(part) if least else frozenset()
        case p.Excluded(part=part):
            return needed_labels(part)
    return frozenset()


def all_of(parts: list[s.Expression]) -> s.Expression:
    """Conditions, joined by AND."""
    return parts[0] if len(parts) == 1 else s.And(tuple(parts))


def is_start(node: s.Expression, pattern: p.Pattern) -> bool:
    """Does it read the first row of the match, or a row before it, and nothing of the path?"""
    if not isinstance(node, b.Navigate) or node.offset or node.shift > 0:
        return False
    if any(isinstance(part, b.RowLabel | b.MatchNumber) for part in s.walk(node.inner)):
        return False
    if node.first:
        return node.labels is None or p.edge(pattern) <= node.labels
    only = node.labels is not None and p.edge(pattern) == node.labels and len(node.labels) == 1
    return only and _occurs_once(pattern, next(iter(node.labels or ())))


def _occurs_once(pattern: p.Pattern, label: str) -> bool:
    """Is it the label of one row at most: a part of the sequence itself, which nothing repeats?"""
    parts = pattern.parts if isinstance(pattern, p.Sequence) else (pattern,)
    times = sum(isinstance(node, p.Single) and node.label == label for node in p.walk(pattern))
    return times == 1 and p.Single(label) in parts


def implied_window(clause: b.BoundClause) -> int | timedelta | None:
    """How much later than the first row the last row of a match can be: it is less than this. None: nothing says so."""
    if not clause.order_by or clause.order_by[0].descending:
        return None
    found: list[int | timedelta] = []
    for label in p.edge(clause.pattern, last=True):
        condition = clause.conditions.get(label)
        limits = [_limit(clause, label, part) for part in s.conjoined(condition)]
        known = [limit for limit in limits if limit is not None]
        if not known or len({type(limit) for limit in (*found, *known)}) > 1:
            return None
        found.append(min(known))
    return max(found) if found else None


def _limit(clause: b.BoundClause, label: str, condition: s.Expression) -> int | timedelta | None:
    """The window that one condition of the last row implies: `t - start.t <= limit` or `t <= start.t + limit`."""
    if not isinstance(condition, s.Comparison) or condition.operator not in _MIRRORED:
        return None
    left, right, operator = condition.left, condition.right, condition.operator
    if operator in (">", ">="):
        left, right, operator = right, left, _MIRRORED[operator]
    match left, right:
        case s.Arithmetic(operator="-", left=here, right=start), s.Literal(value=limit):
            pass
        case here, s.Arithmetic(operator="+", left=start, right=s.Literal(value=limit)):
            pass
        case here, s.Arithmetic(operator="+", left=s.Literal(value=limit), right=start):
            pass
        case _:
            return None
    if isinstance(limit, bool) or not isinstance(limit, int | timedelta):
        return None
    if not _is_time(clause, here) or not _is_time(clause, start) or not is_start(start, clause.pattern):
        return None
    assert isinstance(here, b.Navigate)
    if here.first or here.offset or here.shift or not (here.labels is None or label in here.labels):
        return None
    least = 0 if operator == "<" else 1
    if isinstance(limit, timedelta):
        return limit + timedelta(microseconds=1) * least
    return limit + least


def _is_time(clause: b.BoundClause, node: s.Expression) -> bool:
    return isinstance(node, b.Navigate) and node.shift == 0 and node.inner == b.Column(clause.order_by[0].column)


def window_of(clause: b.BoundClause, table: pa.Table) -> int | None:
    """The window of a clause over a table, in steps of its first sort key: the stated one, or a shorter implied one."""
    implied = implied_window(clause)
    if implied is None or clause.partial:
        return clause.within
    column = table.column(clause.order_by[0].column)
    fits = pa.types.is_integer if isinstance(implied, int) else pa.types.is_timestamp
    if column.null_count or not fits(column.type) or getattr(column.type, "unit", "us") == "ns":
        return clause.within
    length = implied if isinstance(implied, int) else implied // timedelta(microseconds=1)
    return max(min(length, length if clause.within is None else clause.within), 1)


def on_start(clause: b.BoundClause) -> list[s.Expression]:
    """Conditions of labels that every match has, which read its first row alone; as conditions of that row."""
    if clause.partial:  # what is not complete lacks some of these labels
        return []
    return [
        at_hand(part)
        for label in sorted(needed_labels(clause.pattern) & clause.conditions.keys())
        for part in s.conjoined(clause.conditions[label])
        if _reads_start_alone(part, clause.pattern)
    ]


def without_start_conditions(clause: b.BoundClause) -> b.BoundClause:
    """The clause without the conditions that `on_start` has."""
    if clause.partial:
        return clause
    conditions = dict(clause.conditions)
    for label in needed_labels(clause.pattern) & conditions.keys():
        rest = [part for part in s.conjoined(conditions[label]) if not _reads_start_alone(part, clause.pattern)]
        if len(rest) < len(s.conjoined(conditions[label])):
            conditions[label] = all_of(rest) if rest else s.Literal(True)
    return replace(clause, conditions=conditions)


def _reads_start_alone(condition: s.Expression, pattern: p.Pattern) -> bool:
    reads = [node for node in s.walk(condition) if isinstance(node, b.Navigate)]
    return bool(reads) and _is_of(condition, pattern)


def _is_of(node: s.Expression, pattern: p.Pattern) -> bool:
    if isinstance(node, b.Navigate):
        return is_start(node, pattern)
    if isinstance(node, b.Aggregated | b.RowLabel | b.MatchNumber | b.SequenceNumber | b.Column):
        return False
    return all(_is_of(part, pattern) for part in s.children(node))


def at_hand(node: s.Expression) -> s.Expression:
    """The same, with the row at hand in place of the first row."""
    return b.Navigate(node.inner, shift=node.shift) if isinstance(node, b.Navigate) else s.rebuild(node, at_hand)
