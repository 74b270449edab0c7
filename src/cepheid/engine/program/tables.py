"""A query as kernels read it: plain arrays, the same for every search, and the names of their columns.

A search keeps the events it has chosen in one row, `at`: a slot for a single component; first, last, current and
previous for a Kleene group; then a slot for each negated component. Lengths and aggregates are kept in a row of whole
numbers (the lengths first, by place) and one of fractions.

Conditions are grouped by moment, tests of one moment lie side by side: for each place begin, take and close (3 * place
+ BEGIN, TAKE, CLOSE), then one for each negated component, and where negation is judged by disjunct, for each disjunct
one for its positive part and one for each negated component.
"""

from __future__ import annotations

from typing import NamedTuple

from cepheid.engine.data.arrays import Int64Rows, Int64s

NO_WINDOW, TIME_WINDOW, EVENT_WINDOW = 0, 1, 2
BEGIN, TAKE, CLOSE = range(3)  # moments at a place: 3 * place + one of these
# Strategies; STRICT only where steps are reached by different ones (MIXED), else all contiguity is CONTIGUOUS.
SKIP_ANY, SKIP_NEXT, CONTIGUOUS, STRICT, MIXED = range(5)
COUNT, SUM, LEAST, GREATEST, FIRST, LAST, SPREAD = range(7)  # registers that aggregates are made of
KEY_WHOLE, KEY_NUMBER, KEY_NULL, KEY_EVENT, KEY_INSTANT, KEY_COUNTED, KEY_RUNNING, KEY_START = range(8)


class Program(NamedTuple):
    """A query, as kernels see it. Few arrays, since each one that is handed to a function costs time."""

    places: int
    negatives: int
    strategy: int
    window_kind: int
    window: int
    postponed: bool
    judged: bool  # negation is judged for each disjunct of the condition (SASE section 2.2.2)
    branches: int
    walk_whole: int  # where aggregates over part of a group begin in the row of whole numbers...
    walk_number: int  # ... and in that of fractions
    place: Int64Rows  # by place; see the names of the columns
    kept: Int64Rows  # by register that aggregates are made of
    moments: Int64s  # by moment: where its tests begin
    tests: Int64Rows
    walks: Int64Rows  # the groups that a test must hold for every element of
    negations: Int64Rows  # by disjunct (the first one only, unless judged) and negated component
    keys: Int64Rows  # what runs that have filled a place must agree on to be merged


# Columns of `place`: is it a Kleene group; the slots of its first, last, current and previous event (one and the same
# for a single event); where its aggregates begin; may runs be merged there, and where the keys for that begin; by which
# strategies its first event and the further ones of a group are reached.
KLEENE, FIRST_AT, LAST_AT, CURRENT_AT, PREVIOUS_AT, KEPT_FROM, MERGEABLE, KEYS_FROM, BEGUN_BY, TAKEN_BY = range(10)
# Columns of `kept`: what is kept; are the values fractions; their column and that of their NULL mask; where among the
# registers is the value, and how many values were known; are these counted, or is it only noted that there are any?
KEPT_KIND, KEPT_FRACTION, KEPT_COLUMN, KEPT_NULL, KEPT_KNOWN, KEPT_VALUE, KEPT_COUNTS = range(7)
# Columns of `tests`: the case of the compiled function, where the groups to walk begin, and the places whose events it
# mentions, as a bit mask.
CASE, WALKS_FROM, NEEDS = range(3)
# Columns of `walks`: the place of the group, and whether the condition holds from the second element on.
WALKED, SECOND = range(2)
# Columns of `negations`: the slots of the events before and behind it (-1: the window's edge), their places (-1, too);
# the places that must be filled before it can be judged, as a bit mask; the place at whose first event it is judged
# (past the last one: on the complete match; with an order of evaluation: the place of it that is filled last); and the
# first of the negated components that kill together with it, by conditions that mention them both, and are there any?
AFTER_AT, BEFORE_AT, AFTER_PLACE, BEFORE_PLACE, NEGATION_NEEDS, JUDGED_AT, GROUP, LINKED = range(8)
OUTSIDE = -2  # in place of where it is judged: on a complete match of an expression, before or behind all its events
# Columns of `keys`: what kind of value, of which slot or register, and in which column.
KEY_KIND, KEY_OF, KEY_COLUMN = range(3)
