"""The confidence of a match whose competitors can each disturb one gap only (TIME, equation 3).

Such competitors are independent of each other and of all else, so that each gap has a factor that depends on the two
events around it: sums over pairs of instants, from event to event. If the window or a gap at the edge ties the first
event to the last, each first instant is followed on its own; the last step then is a matter of sums made beforehand.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing_tables import CompetingTables, edges, undisturbed


@borrowing
def pairs_cost(job: CompetingTables) -> float:
    """About how many steps it takes."""
    total, width = 0.0, job.high[0] - job.low[0] + 1.0
    for step in range(1, len(job.low)):
        area = (job.high[step - 1] - job.low[step - 1] + 1.0) * (job.high[step] - job.low[step] + 1.0)
        total += area * (1 + job.singles[step + 1] - job.singles[step])
        if job.coupled and step > 1:
            total += area * width
    return total


@kernel
def transition(job: CompetingTables, step: int) -> Float64Rows:
    """P(event `step` happens at t, and no competitor lies strictly between s and t): s in rows, t in columns."""
    before_low, before_high, low, high = job.low[step - 1], job.high[step - 1], job.low[step], job.high[step]
    chances = np.zeros((before_high - before_low + 1, high - low + 1))
    shares = np.empty(high - low + 1)
    base = job.offset[step]
    for previous in range(before_low, min(before_high, high - 1) + 1):
        if stop_flag() != 0:
            break
        start = max(low, previous + 1)
        undisturbed(
            job.before,
            job.after,
            job.singles[step],
            job.singles[step + 1],
            job.offset[step - 1] + previous,
            base + start,
            high - start + 1,
            shares,
        )
        for index in range(high - start + 1):
            chances[previous - before_low, start - low + index] = shares[index] * job.weight[base + start + index]
    return chances


@kernel
def moved_on(now: Float64s, chances: Float64Rows) -> Float64s:
    """One event further."""
    following = np.zeros(chances.shape[1])
    for row in range(chances.shape[0]):
        share = now[row]
        if share > 0.0:
            for column in range(chances.shape[1]):
                following[column] += share * chances[row, column]
    return following


@kernel
def uncoupled(job: CompetingTables) -> tuple[float, int, int]:
    """The probability and the tightest range, where the window cannot be missed and nothing happens at the edges."""
    length = len(job.low)
    width = job.high[0] - job.low[0] + 1
    now = job.weight[:width].copy()
    possible = np.zeros(1)  # what comes of the earliest instant of the first event alone
    possible[0] = now[0]
    for step in range(1, length):
        chances = transition(job, step)
        now = moved_on(now, chances)
        if step == 1:
            alone = np.zeros(width)
            alone[0] = possible[0]
            possible = moved_on(alone, chances)
        else:
            possible = moved_on(possible, chances)
    total, latest = 0.0, 0
    for index in range(len(now)):
        total += now[index]
        if now[index] > 0.0:
            latest = job.low[length - 1] + index
    if total == 0.0 or possible.sum() > 0.0:
        return total, job.low[0], latest
    # The earliest instant leads nowhere: go back from the end to find the first that leads somewhere.
    leads = np.ones(job.high[length - 1] - job.low[length - 1] + 1)
    for step in range(length - 1, 0, -1):
        chances = transition(job, step)
        before = np.zeros(chances.shape[0])
        for row in range(chances.shape[0]):
            for column in range(chances.shape[1]):
                if chances[row, column] > 0.0 and leads[column] > 0.0:
                    before[row] = 1.0
        leads = before
    earliest = job.low[0]
    while leads[earliest - job.low[0]] == 0.0 or job.weight[earliest - job.low[0]] == 0.0:
        if earliest == job.high[0]:  # the search was stopped half way
            break
        earliest += 1
    return total, earliest, latest


@kernel
def coupled(job: CompetingTables) -> tuple[float, int, int]:
    """The probability and the tightest range, where it matters how far the first event is from the last."""
    length = len(job.low)
    final = length - 1
    edged = job.singles[1] > 0 or job.singles[final + 1] < job.singles[final + 2]
    between = [transition(job, step) for step in range(1, length)]
    closing = between[final - 1] if final > 0 else np.ones((1, 1))
    sums = closing.copy()  # the last step up to each instant, where all instants up to a limit count alike
    if not edged:
        for row in range(sums.shape[0]):
            for column in range(1, sums.shape[1]):
                sums[row, column] += sums[row, column - 1]
    total, earliest, latest = 0.0, job.high[0] + 1, job.low[final] - 1
    for first in range(job.low[0], job.high[0] + 1):
        weight = job.weight[first - job.low[0]]
        if weight == 0.0:
            continue
        if stop_flag() != 0:
            break
        limit = min(job.high[final], first + job.window - 1)
        if final == 0:
            share = weight * edges(job, first, first)
            if share > 0.0:
                total += share
                earliest, latest = min(earliest, first), first
            continue
        if limit < job.low[final]:
            continue
        now = np.zeros(job.high[0] - job.low[0] + 1)
        now[first - job.low[0]] = weight
        for step in range(1, final):
            now = moved_on(now, between[step - 1])
        share, last = 0.0, limit - job.low[final]
        if edged:
            ends = moved_on(now, closing)
            for column in range(last + 1):
                if ends[column] > 0.0:
                    part = ends[column] * edges(job, first, job.low[final] + column)
                    if part > 0.0:
                        share += part
                        latest = max(latest, job.low[final] + column)
        else:
            for row in range(len(now)):
                share += now[row] * sums[row, last]
            while share > 0.0 and last + job.low[final] > latest:
                part = 0.0
                for row in range(len(now)):
                    part += now[row] * closing[row, last]
                if part > 0.0:
                    latest = job.low[final] + last
                last -= 1
        if share > 0.0:
            total += share
            earliest = min(earliest, first)
    return total, earliest, latest


@kernel
def by_pairs_of_instants(job: CompetingTables) -> tuple[float, int, int]:
    """The probability and the tightest range."""
    return coupled(job) if job.coupled else uncoupled(job)
