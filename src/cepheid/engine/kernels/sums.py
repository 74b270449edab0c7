"""Sums that stay exact far beyond 64 bits, in rows: pieces of 30 bits, and beside them an approximation.

A row holds, for every lane, an exact sum in LIMBS pieces (the last one signed and unbounded), the approximations of
exact lanes and the sums of rough ones, and the least ranks. Rows are added piece by piece without carrying, which many
rows stand; `settle` carries. Where a sum grows beyond what pieces hold, only the approximation goes on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows, Int64s
from cepheid.engine.data.totals import LIMB, NO_RANK, PIECE
from cepheid.engine.kernels.compile import borrowing, kernel

LIMBS = 5
BEYOND = 1e44  # 2**146: what pieces surely hold


class LaneValues(NamedTuple):
    """What each event adds, by lane, and the place whose events count in it."""

    exact: Int64Rows
    exact_place: Int64s
    rough: Float64Rows
    rough_place: Int64s
    rank: Int64Rows
    rank_place: Int64s


class Sums(NamedTuple):
    """Rows of sums: lane 0 counts matches, the exact lanes follow."""

    pieces: Int64Rows  # LIMBS columns for each exact lane
    near: Float64Rows  # a column for each exact lane, then one for each rough one
    least: Int64Rows


@kernel
def new_sums(rows: int, lanes: LaneValues) -> Sums:
    """Rows of nothing."""
    exact = 1 + len(lanes.exact_place)
    return Sums(
        np.zeros((rows, LIMBS * exact), np.int64),
        np.zeros((rows, exact + len(lanes.rough_place)), np.float64),
        np.full((rows, len(lanes.rank_place)), NO_RANK, np.int64),
    )


@borrowing
def clear(sums: Sums, row: int) -> None:
    """Makes a row nothing."""
    for column in range(sums.pieces.shape[1]):
        sums.pieces[row, column] = 0
    for column in range(sums.near.shape[1]):
        sums.near[row, column] = 0.0
    for column in range(sums.least.shape[1]):
        sums.least[row, column] = NO_RANK


@borrowing
def add(sums: Sums, row: int, others: Sums, other: int) -> None:
    """Adds a row to another, without carrying."""
    for column in range(sums.pieces.shape[1]):
        sums.pieces[row, column] += others.pieces[other, column]
    for column in range(sums.near.shape[1]):
        sums.near[row, column] += others.near[other, column]
    for column in range(sums.least.shape[1]):
        sums.least[row, column] = min(sums.least[row, column], others.least[other, column])


@borrowing
def settle(sums: Sums, row: int, lane: int) -> None:
    """Carries from piece to piece; gives up on a sum that is beyond them."""
    begin = LIMBS * lane
    if not abs(sums.near[row, lane]) < BEYOND:
        for column in range(begin, begin + LIMBS):
            sums.pieces[row, column] = 0
        if lane > 0:
            sums.near[row, lane] = np.nan  # sums may shrink again, and must not seem to be known then
        return
    for column in range(begin, begin + LIMBS - 1):
        carried = sums.pieces[row, column] >> LIMB
        sums.pieces[row, column] &= PIECE
        sums.pieces[row, column + 1] += carried


@borrowing
def add_product(sums: Sums, row: int, lane: int, value: int) -> None:
    """Adds a value to a lane, once for each match of the row."""
    near = sums.near[row, lane] + value * sums.near[row, 0]
    sums.near[row, lane] = near
    if abs(near) < BEYOND and sums.near[row, 0] < BEYOND and abs(value * sums.near[row, 0]) < BEYOND:
        for place in range(LIMBS):
            many = sums.pieces[row, place]
            sums.pieces[row, LIMBS * lane + place] += many * (value & PIECE)
            if place + 1 < LIMBS:
                sums.pieces[row, LIMBS * lane + place + 1] += many * ((value >> LIMB) & PIECE)
            if place + 2 < LIMBS:
                sums.pieces[row, LIMBS * lane + place + 2] += many * (value >> (2 * LIMB))
    else:
        sums.near[row, lane] = np.nan
    settle(sums, row, lane)


@borrowing
def take_event(sums: Sums, row: int, lanes: LaneValues, place: int, event: int) -> None:
    """All matches of a row take an event at a place."""
    settle(sums, row, 0)
    for lane in range(len(lanes.exact_place)):
        settle(sums, row, 1 + lane)
        if lanes.exact_place[lane] == place:
            add_product(sums, row, 1 + lane, lanes.exact[lane, event])
    for lane in range(len(lanes.rough_place)):
        if lanes.rough_place[lane] == place:
            sums.near[row, 1 + len(lanes.exact_place) + lane] += lanes.rough[lane, event] * sums.near[row, 0]
    for lane in range(len(lanes.rank_place)):
        if lanes.rank_place[lane] == place:
            sums.least[row, lane] = min(sums.least[row, lane], lanes.rank[lane, event])


@borrowing
def report(sums: Sums, row: int, others: Sums, other: int) -> None:
    """Adds complete matches to those of their group."""
    add(sums, row, others, other)
    for lane in range(sums.pieces.shape[1] // LIMBS):
        settle(sums, row, lane)


def exact_sums(sums: Sums, lanes: int) -> list[list[int]]:
    """For each row its exact sums, as Python's integers."""
    weights = [1 << (LIMB * limb) for limb in range(LIMBS)]
    pieces = sums.pieces.reshape(len(sums.pieces), lanes, LIMBS).tolist()
    return [[sum(p * w for p, w in zip(lane, weights, strict=True)) for lane in row] for row in pieces]
