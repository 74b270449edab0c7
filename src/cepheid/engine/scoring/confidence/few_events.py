"""The confidence of a match of two or three events, its competing events being side by side in rows of instants.

For two events: for each instant of the first, all instants of the last at once. For three: the instants of the middle
event fall into runs in which nothing changes for competing events; for each run the first and the last event's instants
are added up side by side, with a bit for each competing event that ties one to the other.
"""

from __future__ import annotations

from typing import NamedTuple

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64s
from cepheid.engine.data.timed import Timed, at_instant, onwards, up_to
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing_tables import spread_after, spread_before, spread_point
from cepheid.engine.scoring.confidence.undecided import EVERY, Undecided


@borrowing
def harmless(
    timed: Timed,
    competing: Undecided,
    competitor: int,
    step: int,
    final: int,
    low: int,
    ramp: Float64s,
    row: Float64s,
) -> None:
    """For each instant of an event from `low` on: P(the competitor comes without harm, as this event decides)."""
    event, gap = competing.event[competitor], competing.gap[competitor]
    if (gap == EVERY and step == final) or gap == step != EVERY:
        spread_after(timed, event, low, ramp, row)
    elif gap != EVERY or step == 0:
        spread_before(timed, event, low, ramp, row)
    else:
        spread_point(timed, event, low, ramp, row)
        exists = timed.exists[event]
        for index in range(len(row)):
            row[index] *= exists


class Three(NamedTuple):
    """Three events. Competitors that tie the first one to the last come first, then those of the first alone, then
    those of the last alone, then others.

    Loops are short, so what is left over behind steps that a processor does at once would take most of the time: rows
    are filled up to a multiple of PACE, where the event itself weighs nothing.
    """

    order: Int64s  # the competitors
    ties: int
    early: int
    late: int
    before: Float64Rows  # what `harmless` says of ties and early ones for the first event; of that event; zeros
    after: Float64Rows  # the same of ties and late ones for the last event
    starts: Float64Rows  # by who has happened by the middle event, and by instant of the first one: what it weighs
    ends: Float64Rows  # the same for the last one
    ramp: Float64s  # 0, 1, 2 and so on
    chance: Float64s  # for each competitor: that the middle event finds it harmless; 1 behind them
    first: Float64s  # where all disturb both gaps, and all their instants are alike: from this instant...
    last: Float64s  # ... to that one the middle event finds each of them harmless...
    level: Float64s  # ... with this probability
    alone: Float64s  # room by instant of the first event


PACE = 16


@borrowing
def arranged(competing: Undecided, order: Int64s, place: Int64s) -> tuple[int, int, int]:
    """Writes the competitors in the order that `Three` wants; how many are ties, early ones and late ones.

    `place` is room for four numbers.
    """
    ties, early, late = 0, 0, 0
    for competitor in range(len(competing.event)):
        first, last = competing.enters[competitor] == 0, competing.leaves[competitor] == 2
        ties += 1 if first and last else 0
        early += 1 if first and not last else 0
        late += 1 if last and not first else 0
    place[0], place[1], place[2], place[3] = 0, ties, ties + early, ties + early + late
    for competitor in range(len(competing.event)):
        first, last = competing.enters[competitor] == 0, competing.leaves[competitor] == 2
        kind = 0 if first and last else 1 if first else 2 if last else 3
        order[place[kind]] = competitor
        place[kind] += 1
    return ties, early, late


@inlined
def fill_three(timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, three: Three) -> None:
    """All that depends on the first or the last event only."""
    ties, early, late = three.ties, three.early, three.late
    for row in range(ties + early):
        harmless(timed, competing, three.order[row], 0, 2, low[0], three.ramp, three.before[row])
    for row in range(ties + late):
        competitor = three.order[row if row < ties else row + early]
        harmless(timed, competing, competitor, 2, 2, low[2], three.ramp, three.after[row])
    put_alone(timed, chosen[0], low[0], high[0], three.ramp, three.before, ties + early)
    put_alone(timed, chosen[2], low[2], high[2], three.ramp, three.after, ties + late)
    three.chance[len(competing.event)] = 1.0


@inlined
def put_alone(timed: Timed, event: int, low: int, high: int, ramp: Float64s, rows: Float64Rows, row: int) -> None:
    """What an event of the match weighs itself, nothing behind its instants; and a row of zeros."""
    own, nothing = rows[row], rows[row + 1]
    for index in range(len(own)):
        own[index], nothing[index] = 0.0, 0.0
    spread_point(timed, event, low, ramp, own[: high - low + 1])


@inlined
def stretch_from(timed: Timed, event: int, low: Int64s, high: Int64s, middle: int) -> int:
    """The last instant of the middle event up to which nothing changes for itself or for a neighbour."""
    stop = high[1] if timed.base[event] < 0 else middle
    return min(stop, max(middle, low[2] - 1)) if middle <= high[0] else stop


@inlined
def has_levels(timed: Timed, competing: Undecided, start: int, three: Three) -> bool:
    """Do all competitors disturb both gaps, with all their instants alike? Then writes what the middle event finds.

    Instants are counted from `start` on.
    """
    for slot in range(len(competing.event)):
        event = competing.event[three.order[slot]]
        if competing.gap[three.order[slot]] != EVERY or timed.base[event] >= 0:
            return False
        three.first[slot], three.last[slot] = timed.lower[event] - start, timed.upper[event] - start
        three.level[slot] = timed.share[event] * timed.exists[event]
    return True


@inlined
def level_run(three: Three, number: int, middle: int, stop: int) -> int:
    """Writes all chances at an instant of the middle event; the last instant up to `stop` to which they stay."""
    at, nearest = float(middle), float(stop)
    for slot in range(number):
        begin, end = three.first[slot], three.last[slot]
        change = begin - 1.0 if at < begin else end if at <= end else nearest
        nearest = min(nearest, change)
        three.chance[slot] = three.level[slot] if begin <= at <= end else 0.0
    return int(nearest)


@borrowing
def run_from(timed: Timed, competing: Undecided, event: int, low: Int64s, high: Int64s, middle: int) -> int:
    """The last instant of the middle event up to which nothing changes for competitors or for a neighbour."""
    stop = stretch_from(timed, event, low, high, middle)
    for competitor in range(len(competing.event)):
        one, gap = competing.event[competitor], competing.gap[competitor]
        begin = timed.lower[one] + (1 if gap == 1 else 0)  # it changes at this instant...
        end = timed.upper[one] + (0 if gap == 2 else 1)  # ... and the last time at that one
        if middle < begin:
            stop = min(stop, begin - 1)
        elif middle < end:
            stop = min(stop, end - 1 if gap == EVERY and timed.base[one] < 0 else middle)
    return stop


@inlined
def chance_at(timed: Timed, competing: Undecided, competitor: int, middle: int) -> float:
    """P(the competitor comes without harm, as the middle event decides at an instant)."""
    event, gap = competing.event[competitor], competing.gap[competitor]
    exists = timed.exists[event]
    if gap == EVERY:
        return float(at_instant(timed, event, middle) * exists)
    if gap == 1:
        return float(onwards(timed, event, middle) * exists + (1.0 - exists))
    return float(up_to(timed, event, middle) * exists)


@inlined
def multiply(rows: Float64Rows, begin: int, end: int, shift: int, chance: Float64s, target: Float64s) -> None:
    """Takes some rows times the target, each with its chance added: four at a time, the last ones perhaps zeros."""
    zeros, one = rows.shape[0] - 1, len(chance) - 1
    for row in range(begin, end, 4):
        second = row + 1 < end
        third, fourth = row + 2 < end, row + 3 < end
        a, b = rows[row], rows[row + 1 if second else zeros]
        c, d = rows[row + 2 if third else zeros], rows[row + 3 if fourth else zeros]
        p, q = chance[row + shift], chance[row + 1 + shift if second else one]
        r, s = chance[row + 2 + shift if third else one], chance[row + 3 + shift if fourth else one]
        for index in range(len(target)):
            target[index] *= ((a[index] + p) * (b[index] + q)) * ((c[index] + r) * (d[index] + s))


@inlined
def fill_run(three: Three, low: Int64s, weight: float, begin: int, stop: int) -> None:
    """What both sides weigh while the middle event lies in begin .. stop, of which so many come between them."""
    start, end, ramp, ties = three.starts[0], three.ends[0], three.ramp, three.ties
    first, last = three.before[ties + three.early], three.after[ties + three.late]
    # Instants of the run are counted on the side of the first event; if the last one may come in the run, on its side.
    here, there = (stop - begin + 1.0, 1.0) if stop < low[2] else (1.0, stop - begin + 1.0)
    reach, gone = float(stop - low[0]), float(low[2] - begin)
    for index in range(len(start)):
        start[index] = first[index] * weight * max(0.0, min(here, reach - ramp[index]))
    for index in range(len(end)):
        end[index] = last[index] * max(0.0, min(there, gone + ramp[index]))
    multiply(three.before, ties, ties + three.early, 0, three.chance, start)
    multiply(three.after, ties, ties + three.late, three.early, three.chance, end)
    for competitor in range(ties):
        tie(three, competitor)


@inlined
def tie(three: Three, competitor: int) -> None:
    """A bit more: a competitor may have happened by the middle event, or it comes from the last one on."""
    before, after, chance, bit = (
        three.before[competitor],
        three.after[competitor],
        three.chance[competitor],
        1 << competitor,
    )
    for state in range(bit):
        done, waiting = three.starts[state | bit], three.starts[state]
        for index in range(len(done)):
            done[index] = waiting[index] * (before[index] + chance)
        done, waiting = three.ends[state | bit], three.ends[state]
        for index in range(len(done)):
            done[index] = waiting[index]
            waiting[index] *= after[index]


@inlined
def total_of(row: Float64s, fold: Float64s) -> float:
    """The sum of a row, by PACE running ones, which are added up side by side."""
    for index in range(PACE):
        fold[index] = row[index]
    for begin in range(PACE, len(row), PACE):
        stretch = row[begin : begin + PACE]
        for index in range(PACE):
            fold[index] += stretch[index]
    for index in range(PACE // 2):
        fold[index] += fold[index + PACE // 2]
    for index in range(PACE // 4):
        fold[index] += fold[index + PACE // 4]
    return float((fold[0] + fold[1]) + (fold[2] + fold[3]))


@inlined
def both_sides(three: Three, low: Int64s, found: Int64s) -> float:
    """The sum of a run where no window cuts the events: both sides apart; `found`: the earliest and latest instant."""
    total = 0.0
    for state in range(1 << three.ties):
        share, reach = three.starts[state], three.ends[state]
        part = total_of(share, three.alone) * total_of(reach, three.alone)
        if part == 0.0:
            continue
        total += part
        index = 0
        while low[0] + index < found[0] and share[index] == 0.0:
            index += 1
        found[0] = min(found[0], low[0] + index)
        index = len(reach) - 1
        while low[2] + index > found[1] and reach[index] == 0.0:
            index -= 1
        found[1] = max(found[1], low[2] + index)
    return total


@inlined
def side_by_side(three: Three, low: Int64s, shift: int, found: Int64s) -> float:
    """The same where a window cuts them: `shift` is where that of the first instant ends, from the last one's on."""
    size, last, alone = len(three.alone), three.ends.shape[1] - 1, three.alone
    begin = min(max(0, -shift), size)
    cut = min(size, max(begin, last - shift))
    for index in range(size):
        alone[index] = 0.0
    for state in range(1 << three.ties):
        reach, share = three.ends[state], three.starts[state]
        found[1] = max(found[1], low[2] + last_of(share, reach, begin, shift))
        total = sum_of(reach[: begin + shift])
        for index in range(begin + shift, cut + shift):  # as far as the window of some first instant ends here
            total += reach[index]
            reach[index] = total
        total += sum_of(reach[cut + shift :])
        inside, limits, target = share[begin:cut], reach[begin + shift : cut + shift], alone[begin:cut]
        for index in range(cut - begin):
            target[index] += inside[index] * limits[index]
        for index in range(cut, size):
            alone[index] += share[index] * total
    index = 0
    while low[0] + index < found[0] and index < size and alone[index] == 0.0:
        index += 1
    found[0] = min(found[0], low[0] + index)
    return sum_of(alone)


@inlined
def sum_of(row: Float64s) -> float:
    """The sum of a row of any length, by four running ones."""
    whole = len(row) // 4 * 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for index in range(0, whole, 4):
        a, b, c, d = a + row[index], b + row[index + 1], c + row[index + 2], d + row[index + 3]
    for index in range(whole, len(row)):
        a += row[index]
    return (a + b) + (c + d)


@inlined
def last_of(share: Float64s, reach: Float64s, begin: int, shift: int) -> int:
    """The last possible instant of the last event, in the window of the last possible one of the first; -1: none is."""
    first = len(share) - 1
    while first >= begin and share[first] == 0.0:
        first -= 1
    last = min(len(reach) - 1, first + shift) if first >= begin else -1
    while last >= 0 and reach[last] == 0.0:
        last -= 1
    return last


@inlined
def by_runs_of_the_middle(
    timed: Timed,
    competing: Undecided,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    three: Three,
    found: Int64s,
) -> tuple[float, int, int]:
    """The probability and the tightest range of three events: the first and the last one's instants side by side."""
    fill_three(timed, competing, chosen, low, high, three)
    found[0], found[1], total, middle = high[0] + 1, low[2] - 1, 0.0, low[1]
    number, known, is_cut = len(competing.event), three.ties + three.early + three.late, high[2] - low[0] >= window
    levels, start = has_levels(timed, competing, low[1], three), low[1]
    while middle <= high[1] and stop_flag() == 0:
        weight = at_instant(timed, chosen[1], middle)
        if levels:
            stop = stretch_from(timed, chosen[1], low, high, middle)
            stop = start + level_run(three, number, middle - start, stop - start)
        else:
            stop = run_from(timed, competing, chosen[1], low, high, middle)
            for slot in range(number):
                three.chance[slot] = chance_at(timed, competing, three.order[slot], middle)
        for slot in range(known, number):
            weight *= three.chance[slot]
        if weight > 0.0:
            fill_run(three, low, weight, middle, stop)
            if is_cut:
                total += side_by_side(three, low, low[0] + window - 1 - low[2], found)
            else:
                total += both_sides(three, low, found)
        middle = stop + 1
    return total, found[0], found[1]


class Two(NamedTuple):
    """Two events. Instants of the last one come in stretches of PACE, which a processor does at once.

    Competitors come in the order in which they can begin. Those that begin after an instant of the first event say the
    same for it as for all instants before it, so what they say of the last event is multiplied once.
    """

    before: Float64Rows  # by competitor what `harmless` says for the first event; behind them that event
    after: Float64Rows  # by stretch, then by competitor, the same for the last event; behind them all zeros
    later: Float64Rows  # by stretch, then by competitor: what the last event weighs, times the rows from this one on
    ramp: Float64s
    chance: Float64s  # for each competitor what the first event says at some instant; 1 behind them
    next_chance: Float64s  # the same an instant later
    sure: Float64s  # for each competitor: when all from it on have happened that surely do
    weight: Float64s  # what the first event weighs at both instants
    target: Float64s  # room for a stretch at one of them...
    next_target: Float64s  # ... and at the other
    added: Float64s  # a stretch for all instants of the first event


@inlined
def fill_two(timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, two: Two) -> None:
    """All that depends on the first or the last event only."""
    number, ramp, zeros = len(competing.event), two.ramp, two.after[two.after.shape[0] - 1]
    for row in range(number):
        harmless(timed, competing, row, 0, 1, low[0], ramp, two.before[row])
    spread_point(timed, chosen[0], low[0], ramp, two.before[number])
    two.chance[number], two.next_chance[number], two.sure[number] = 1.0, 1.0, high[1]
    for row in range(number - 1, -1, -1):
        event = competing.event[row]
        surely = timed.exists[event] >= 1.0
        two.sure[row] = min(two.sure[row + 1], float(timed.upper[event])) if surely else two.sure[row + 1]
    for index in range(len(zeros)):
        zeros[index] = 0.0
    for stretch in range(two.later.shape[0] // (number + 1)):
        begin, place = low[1] + stretch * PACE, stretch * (number + 1) + number
        own = two.later[place]
        for index in range(len(own)):
            own[index] = 0.0
        spread_point(timed, chosen[1], begin, ramp, own[: min(PACE, high[1] - begin + 1)])
        for row in range(number - 1, -1, -1):
            after, behind = two.after[stretch * number + row], two.later[place]
            place -= 1
            product = two.later[place]
            harmless(timed, competing, row, 1, 1, begin, ramp, after)
            for index in range(len(product)):
                product[index] = behind[index] * after[index]


@inlined
def add_stretch(two: Two, place: int, begin: int, end: int, behind: int, now: float, window: float) -> None:
    """Adds what a stretch weighs where the first event comes at `now` or an instant later, both counted from it on.

    Of the competitors, those from `begin` to `end` are multiplied here: their rows stand behind `place`. Loops end
    where arrays do, not at PACE: what has a known length is not done several steps at a time.
    """
    rows, ramp, added, early, late = two.after, two.ramp, two.added, two.chance, two.next_chance
    zeros, one, here, there = rows.shape[0] - 1, len(early) - 1, two.later[behind], two.later[behind]
    if end - begin > 4:
        whole = begin + (end - begin - 1) // 4 * 4
        for index in range(len(added)):
            two.target[index], two.next_target[index] = here[index], here[index]
        multiply(rows, place + begin, place + whole, -place, early, two.target)
        multiply(rows, place + begin, place + whole, -place, late, two.next_target)
        here, there, begin = two.target, two.next_target, whole
    i = begin if begin < end else one
    j, k, m = (i + 1 if i + 1 < end else one), (i + 2 if i + 2 < end else one), (i + 3 if i + 3 < end else one)
    a, b = rows[place + i if i < one else zeros], rows[place + j if j < one else zeros]
    c, d = rows[place + k if k < one else zeros], rows[place + m if m < one else zeros]
    p, q, r, s, e, f, g, h = early[i], early[j], early[k], early[m], late[i], late[j], late[k], late[m]
    weight, next_weight = two.weight[0], two.weight[1]
    for index in range(len(added)):
        first = ((a[index] + p) * (b[index] + q)) * ((c[index] + r) * (d[index] + s)) * here[index]
        second = ((a[index] + e) * (b[index] + f)) * ((c[index] + g) * (d[index] + h)) * there[index]
        since = ramp[index] - now
        first *= weight if 0.0 < since < window else 0.0
        second *= next_weight if 1.0 < since <= window else 0.0
        added[index] += first + second


@inlined
def first_nonzero(row: Float64s) -> int:
    """Where a row begins that is not zero; its length, if all of it is."""
    index = 0
    while index < len(row) and row[index] == 0.0:
        index += 1
    return index


@inlined
def by_instants_of_the_first(
    timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, window: int, two: Two
) -> tuple[float, int, int]:
    """The probability and the tightest range of two events: for two instants of the first a stretch of the last."""
    fill_two(timed, competing, chosen, low, high, two)
    number, added, total, earliest, latest = len(competing.event), two.added, 0.0, high[0] + 1, low[1] - 1
    for stretch in range(two.later.shape[0] // (number + 1)):
        begin = low[1] + stretch * PACE
        for index in range(len(added)):
            added[index] = 0.0
        # Competitors before `gone` have happened by the first event, those from `known` on have not begun.
        gone, known, first, final = 0, 0, max(low[0], begin - window + 1), min(high[0], begin + PACE - 2)
        while first <= final:
            step = 1 if first == final or first < earliest else 2  # one by one, until the earliest is known
            column, other = first - low[0], first - low[0] + step - 1
            while known < number and timed.lower[competing.event[known]] < first + step:
                known += 1
            while gone < known and timed.upper[competing.event[gone]] <= first:
                gone += 1
            two.weight[0], two.weight[1] = two.before[number, column], two.before[number, other] * (step - 1)
            first += step
            if two.sure[known] < begin or two.weight[0] + two.weight[1] == 0.0:
                continue
            for row in range(gone, known):
                two.chance[row], two.next_chance[row] = two.before[row, column], two.before[row, other]
            now = float(first - step - begin)
            add_stretch(two, stretch * number, gone, known, stretch * (number + 1) + known, now, float(window))
            if first <= earliest and first_nonzero(added) < PACE:
                earliest = first - step
        for index in range(len(added)):
            total += added[index]
            latest = begin + index if added[index] > 0.0 else latest
    return total, earliest, latest


@inlined
def filled_up(width: int) -> int:
    """The width of a row, a multiple of PACE."""
    return (width + PACE - 1) // PACE * PACE
