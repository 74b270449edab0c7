"""Valid bounds (TIME sections 4.1, C.1, C.2): at which instants each chosen event can happen in some world.

The chosen events must come in order, one instant apart at least, and within the window. Narrowing forwards, backwards
and once around the window is enough: what is left for each event are exactly its instants in worlds that qualify,
if every instant between its own bounds is possible.
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.kernels.compile import borrowing

NO_WINDOW = 2**61  # longer than any stream, and still far from the edge of 64 bits


@borrowing
def tighten(places: Int64s, low: Int64s, high: Int64s, chosen: int, length: int, window: int) -> bool:
    """Narrows low[:chosen] and high[:chosen] to valid bounds; False if no world is left.

    `places` says, in ascending order, which of the `length` places of the sequence the events take: events for the
    places between must fit in, too.
    """
    last = chosen - 1
    # The first and last events of a whole match are at most window - 1 apart; some places may lie outside of these.
    span = window - 1 - places[0] - (length - 1 - places[last])
    if span < places[last] - places[0]:
        return False
    for index in range(1, chosen):
        low[index] = max(low[index], low[index - 1] + places[index] - places[index - 1])
    for index in range(last - 1, -1, -1):
        high[index] = min(high[index], high[index + 1] + places[index] - places[index + 1])
    if low[last] - span > low[0]:
        low[0] = low[last] - span
        for index in range(1, chosen):
            low[index] = max(low[index], low[index - 1] + places[index] - places[index - 1])
    if high[0] + span < high[last]:
        high[last] = high[0] + span
        for index in range(last - 1, -1, -1):
            high[index] = min(high[index], high[index + 1] + places[index] - places[index + 1])
    for index in range(chosen):
        if low[index] > high[index]:
            return False
    return True
