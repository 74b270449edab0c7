"""The search against definitions: every assignment of events is tried, and judged by conditions written down here."""

from __future__ import annotations

from itertools import combinations, pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from reference.written_streams import matches, stream

# (type, time, x, id); times may coincide
Event = tuple[str, int, int, int]
EVENTS = st.lists(
    st.tuples(st.sampled_from("ABCN"), st.integers(0, 7), st.integers(0, 3), st.integers(1, 2)), max_size=8
)


def written(drawn: list[Event]) -> str:
    tokens = [f"{kind.lower()}{time}'{n}:x={x},id={id}" for n, (kind, time, x, id) in enumerate(drawn)]
    return " ".join([*tokens, "z99:x=0,id=0"])


def name(drawn: list[Event], n: int) -> str:
    return f"{drawn[n][0].lower()}{drawn[n][1]}'{n}"


def of_type(drawn: list[Event], kind: str) -> list[int]:
    return [n for n, event in enumerate(drawn) if event[0] == kind]


@given(EVENTS, st.integers(1, 8))
def test_skip_till_any_with_negation_in_every_place(drawn: list[Event], window: int) -> None:
    query = f"""PATTERN SEQ(!(N n), A a, !(N m), B b, !(N o))
        WHERE [id] AND a.x <= b.x AND n.x = a.x AND m.x > a.x AND o.x = 1 WITHIN {window}"""
    expected = set()
    for a, b in product(of_type(drawn, "A"), of_type(drawn, "B")):
        (_, start, x, id), (_, end, y, other) = drawn[a], drawn[b]
        if not (start < end and end - start < window and id == other and x <= y):
            continue
        negative = [(t, v) for kind, t, v, i in drawn if kind == "N" and i == id]
        before = any(end - window < t < start and v == x for t, v in negative)
        between = any(start < t < end and v > x for t, v in negative)
        afterwards = any(end < t < start + window and v == 1 for t, v in negative)
        if not (before or between or afterwards):
            expected.add(f"{name(drawn, a)} {name(drawn, b)}")
    assert matches(stream(written(drawn)), query) == expected


@given(EVENTS, st.integers(1, 8))
def test_skip_till_next(drawn: list[Event], window: int) -> None:
    query = f"""PATTERN SEQ(A a, B b, C c)
        WHERE skip_till_next_match {{ [id] AND a.x <= b.x AND b.x != c.x }} WITHIN {window}"""

    def follows(a: int, b: int) -> bool:
        return (
            drawn[b][0] == "B"
            and drawn[a][1] < drawn[b][1] < drawn[a][1] + window
            and drawn[a][3] == drawn[b][3]
            and drawn[a][2] <= drawn[b][2]
        )

    def completes(a: int, b: int, c: int) -> bool:
        return (
            drawn[c][0] == "C"
            and drawn[b][1] < drawn[c][1] < drawn[a][1] + window
            and drawn[b][3] == drawn[c][3]
            and drawn[b][2] != drawn[c][2]
        )

    everyone = range(len(drawn))
    expected = set()
    for a, b, c in product(of_type(drawn, "A"), of_type(drawn, "B"), of_type(drawn, "C")):
        if not (follows(a, b) and completes(a, b, c)):
            continue
        if any(follows(a, other) and drawn[other][1] < drawn[b][1] for other in everyone):
            continue
        if any(completes(a, b, other) and drawn[other][1] < drawn[c][1] for other in everyone):
            continue
        expected.add(" ".join(name(drawn, n) for n in (a, b, c)))
    assert matches(stream(written(drawn)), query) == expected


def rising(drawn: list[Event], group: tuple[int, ...]) -> bool:
    pairs = list(pairwise(group))
    return all(drawn[p][1] < drawn[q][1] and drawn[p][2] <= drawn[q][2] for p, q in pairs)


@given(EVENTS, st.integers(1, 8))
def test_kleene_under_skip_till_any(drawn: list[Event], window: int) -> None:
    query = f"""PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match {{
        a[i].x >= a[i-1].x AND b.x > a[1].x AND sum(a[].x) > 1 }} WITHIN {window}"""
    candidates = sorted(of_type(drawn, "A"), key=lambda n: drawn[n][1])
    expected = set()
    for size in range(1, len(candidates) + 1):
        for group, b in product(combinations(candidates, size), of_type(drawn, "B")):
            inside = drawn[group[-1]][1] < drawn[b][1] < drawn[group[0]][1] + window
            total = sum(drawn[n][2] for n in group)
            if rising(drawn, group) and inside and drawn[b][2] > drawn[group[0]][2] and total > 1:
                expected.add("+".join(name(drawn, n) for n in group) + " " + name(drawn, b))
    assert matches(stream(written(drawn)), query) == expected


@given(EVENTS, st.integers(1, 8))
def test_kleene_under_skip_till_next(drawn: list[Event], window: int) -> None:
    """No event that the open group could take lies strictly between its elements, or between it and b."""
    query = f"""PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{
        a[i].x >= a[i-1].x AND b.x > a[a.LEN].x }} WITHIN {window}"""
    candidates = sorted(of_type(drawn, "A"), key=lambda n: drawn[n][1])

    def passed(group: tuple[int, ...], until: int) -> bool:
        """Does the group pass an event it could take, before that time?"""
        first, last = group[0], group[-1]
        return any(
            drawn[last][1] < drawn[n][1] < min(until, drawn[first][1] + window) and drawn[n][2] >= drawn[last][2]
            for n in candidates
        )

    expected = set()
    for size in range(1, len(candidates) + 1):
        for group, b in product(combinations(candidates, size), of_type(drawn, "B")):
            inside = drawn[group[-1]][1] < drawn[b][1] < drawn[group[0]][1] + window
            if not (rising(drawn, group) and inside and drawn[b][2] > drawn[group[-1]][2]):
                continue
            if any(passed(group[:k], drawn[group[k]][1]) for k in range(1, size)) or passed(group, drawn[b][1]):
                continue
            expected.add("+".join(name(drawn, n) for n in group) + " " + name(drawn, b))
    assert matches(stream(written(drawn)), query) == expected


@given(EVENTS, st.sampled_from(["strict", "partition"]))
def test_contiguity(drawn: list[Event], kind: str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE {kind}_contiguity {{ [id] }}"
    expected = set()
    for a, b in product(of_type(drawn, "A"), of_type(drawn, "B")):
        (_, start, _, id), (_, end, _, other) = drawn[a], drawn[b]
        between = [i for _, t, _, i in drawn if start < t < end]
        if start < end and id == other and (id not in between if kind == "partition" else not between):
            expected.add(f"{name(drawn, a)} {name(drawn, b)}")
    assert matches(stream(written(drawn)), query) == expected


@given(EVENTS, st.integers(1, 5))
def test_windows_of_events(drawn: list[Event], window: int) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE [id] WITHIN {window} EVENTS"

    def position(n: int) -> int:
        return sum(t < drawn[n][1] and i == drawn[n][3] for _, t, _, i in drawn)

    expected = {
        f"{name(drawn, a)} {name(drawn, b)}"
        for a, b in product(of_type(drawn, "A"), of_type(drawn, "B"))
        if drawn[a][1] < drawn[b][1] and drawn[a][3] == drawn[b][3] and position(b) - position(a) < window
    }
    assert matches(stream(written(drawn)), query) == expected


@given(EVENTS)
def test_non_overlap(drawn: list[Event]) -> None:
    """Greedy, as defined: of all matches that begin after the last one's end, the best comes next."""
    query = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
    everything = matches(stream(written(drawn)), query)
    reported = matches(stream(written(drawn)), query + " OUTPUT NON-OVERLAP")
    expected = set()
    for partition in (1, 2):
        ended = -1
        while True:
            open_to_it = []
            for match in everything:
                a, b = (int(part.rpartition("'")[2]) for part in match.split())
                if drawn[a][3] == partition and drawn[a][1] > ended:
                    open_to_it.append((drawn[b][1], -drawn[a][1], name(drawn, a), name(drawn, b)))
            if not open_to_it:
                break
            end, _, first, last = min(open_to_it)
            expected.add(f"{first} {last}")
            ended = end
    assert reported == expected
