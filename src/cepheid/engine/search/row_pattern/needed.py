"""Where matches can begin: at rows of their first label, with the rarest label that every match has in reach."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.search.row_pattern.conditions import ALWAYS, Conditions
from cepheid.engine.search.row_pattern.implied import needed_labels
from cepheid.engine.search.row_pattern.kernel import upcoming_rows
from cepheid.language import pattern as p
from cepheid.language.match_recognize.bound import BoundClause

RARE = 0.5  # of the rows at most: for a label that most rows may have, looking it up costs more than it saves
NOTHING: Int64s = np.empty(0, np.int64)


def beginnings(clause: BoundClause, conditions: Conditions) -> npt.NDArray[np.uint8]:
    """Per row: may a match begin there, as far as rows alone decide? Empty: at every row."""
    first = [clause.labels.index(label) for label in p.edge(clause.pattern)]
    if p.may_be_empty(clause.pattern) or any(conditions.how[number] == ALWAYS for number in first):
        return conditions.begins
    found: npt.NDArray[np.uint8] = np.bitwise_or.reduce(conditions.holds[first])
    return found & conditions.begins if len(conditions.begins) else found


def upcoming_rare(clause: BoundClause, conditions: Conditions, bounds: Int64s) -> Int64s:
    """For each row the next one that may have the rarest label that every match has; empty if none is rare."""
    length = conditions.holds.shape[1]
    counts = {
        number: int(np.count_nonzero(conditions.holds[number]))
        for number, label in enumerate(clause.labels)
        if label in needed_labels(clause.pattern) and label in clause.conditions
    }
    if not counts or clause.partial:
        return NOTHING
    rarest = min(counts, key=counts.__getitem__)
    return upcoming_rows(conditions.holds[rarest], bounds) if counts[rarest] <= RARE * length else NOTHING
