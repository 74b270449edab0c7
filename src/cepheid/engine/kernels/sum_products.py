"""Products of rows of sums: the matches that are made of one part from here and one part from there.

Numbers of matches multiply; what is added up over them follows the rule of sums over pairs: each value of one part is
counted once for each of the other parts. Values are exact as far as pieces hold them (sums.py).
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.data.totals import LIMB, PIECE
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.kernels.sums import BEYOND, LIMBS, Sums, settle

ONE, OTHER, PRODUCT = range(3)  # rows of the pieces that are worked on


@borrowing
def carry_over(sums: Sums, row: int) -> None:
    """Carries in every lane of a row."""
    for lane in range(sums.pieces.shape[1] // LIMBS):
        settle(sums, row, lane)


@borrowing
def magnitude(pieces: Int64Rows, place: int, sums: Sums, row: int, lane: int) -> bool:
    """Writes the pieces of a sum down without its sign; True if it is negative. The row must have been carried over."""
    begin = LIMBS * lane
    negative = sums.pieces[row, begin + LIMBS - 1] < 0
    carried = 0
    for piece in range(LIMBS):
        value = sums.pieces[row, begin + piece]
        value = (-value if negative else value) + carried
        if piece + 1 < LIMBS:
            carried = value >> LIMB
            value &= PIECE
        pieces[place, piece] = value
    return bool(negative)


@borrowing
def add_product(into: Sums, row: int, lane: int, left: float, right: float, minus: bool, pieces: Int64Rows) -> None:
    """Adds the product of the two sums that are written down to a third; `left` and `right` approximate them."""
    near = into.near[row, lane] + left * right
    into.near[row, lane] = near
    if not (abs(left) < BEYOND and abs(right) < BEYOND and abs(left * right) < BEYOND and abs(near) < BEYOND):
        settle(into, row, lane)
        if lane > 0:
            into.near[row, lane] = np.nan
        return
    for place in range(LIMBS):
        pieces[PRODUCT, place] = 0
    for place in range(LIMBS):
        for step in range(LIMBS - place):
            pieces[PRODUCT, place + step] += pieces[ONE, place] * pieces[OTHER, step]
    for place in range(LIMBS - 1):  # five products of 60 bits fit, and a carry
        pieces[PRODUCT, place + 1] += pieces[PRODUCT, place] >> LIMB
        pieces[PRODUCT, place] &= PIECE
    for place in range(LIMBS):
        value = pieces[PRODUCT, place]
        into.pieces[row, LIMBS * lane + place] += -value if minus else value
    settle(into, row, lane)


@borrowing
def add_pairs(into: Sums, row: int, one: Sums, first: int, other: Sums, second: int, pieces: Int64Rows) -> None:
    """Adds all matches that are made of a part from one row and a part from another. Both must be carried over."""
    left, right = one.near[first, 0], other.near[second, 0]
    if left == 0.0 or right == 0.0:
        return
    exact = into.pieces.shape[1] // LIMBS
    for lane in range(1, exact):
        magnitude(pieces, ONE, one, first, 0)
        minus = magnitude(pieces, OTHER, other, second, lane)
        add_product(into, row, lane, left, other.near[second, lane], minus, pieces)
        minus = magnitude(pieces, ONE, one, first, lane)
        magnitude(pieces, OTHER, other, second, 0)
        add_product(into, row, lane, one.near[first, lane], right, minus, pieces)
    magnitude(pieces, ONE, one, first, 0)
    magnitude(pieces, OTHER, other, second, 0)
    add_product(into, row, 0, left, right, False, pieces)
    for column in range(exact, into.near.shape[1]):
        into.near[row, column] += left * other.near[second, column] + one.near[first, column] * right
    for column in range(into.least.shape[1]):
        into.least[row, column] = min(into.least[row, column], one.least[first, column], other.least[second, column])
