"""What can be written next in a query: names of the table, words of the language, variables of the pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cepheid.language.aggregates import AGGREGATES
from cepheid.language.functions import function_names
from cepheid.language.syntax import Strategy
from cepheid.language.units import UNITS

CLAUSES = {
    "PATTERN": "what must happen, in order",
    "WHERE": "conditions on the events",
    "WITHIN": "the longest a match may take",
    "THRESHOLD": "the least probability of a match",
    "CONFIDENCE": "the least confidence at imprecise times",
    "RETURN": "what to give back",
    "OUTPUT": "which matches to give back",
}
_OPERATORS = {"AND": "both", "OR": "either", "NOT": "the opposite", "IN": "one of", "BETWEEN": "from to", "IS NULL": ""}
_PATTERNS = {"SEQ": "events in order", "ANY": "one of several types"}
_OUTPUTS = {"ALL": "every match", "NON-OVERLAP": "none that overlaps an earlier one", "MAXIMAL": "no part of another"}
_HIDDEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")  # what is quoted is no place to complete
_CLAUSE = re.compile(r"\b(pattern|where|within|threshold|confidence|return|output)\b", re.IGNORECASE)
_MOST = 30


@dataclass(frozen=True)
class Item:
    """Something to write; `detail` says what it is."""

    label: str
    kind: str  # "type", "column", "variable", "keyword", "function", "unit"
    detail: str = ""


@dataclass(frozen=True)
class Completion:
    """What fits between `start` and the cursor, best first."""

    start: int
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Names:
    """What a table knows: its columns with their types, and the event types in it."""

    columns: dict[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()


def complete(text: str, position: int, names: Names) -> Completion:
    """What can be written at a position.

    >>> known = Names({"ts": "int64", "tag": "string"}, ("Shelf", "Exit"))
    >>> [item.label for item in complete("PATTERN SEQ(Sh", 14, known).items]
    ['Shelf']
    >>> [item.label for item in complete("PATTERN SEQ(Shelf a) WHERE a.t", 30, known).items]
    ['tag', 'ts']
    """
    before = text[:position]
    shown = _HIDDEN.sub(lambda quoted: " " * len(quoted[0]), before)
    if shown.count("'") % 2 or shown.count('"') % 2:
        return Completion(position, ())
    word = re.search(r"\w*$", shown)
    begin = word[0] if word else ""
    start = position - len(begin)
    items = _fitting(_candidates(shown[:start], text, names), begin)
    return Completion(start, tuple(items)[:_MOST])


def _fitting(items: Iterable[Item], begin: str) -> list[Item]:
    """Those that begin so, then those that hold it; what is written already is not offered."""
    low = begin.casefold()
    unique = {(item.label, item.kind): item for item in items}.values()
    first = [item for item in unique if item.label.casefold().startswith(low) and item.label != begin]
    inside = [item for item in unique if len(low) > 1 and low in item.label.casefold() and item not in first]
    return [*first, *(item for item in inside if item.label != begin)]


def _candidates(before: str, text: str, names: Names) -> Iterator[Item]:
    clauses = [found[1].upper() for found in _CLAUSE.finditer(before)]
    clause = clauses[-1] if clauses else None
    columns = [Item(_quoted(name), "column", kind) for name, kind in sorted(names.columns.items())]
    if clause is None:
        yield Item("PATTERN", "keyword", CLAUSES["PATTERN"])
    elif re.search(r"[\w`\])]\.$", before) or re.search(r"(^|[^\w\]])\[(\s*[\w`]+\s*,)*\s*$", before):
        yield from columns
    elif clause == "PATTERN":
        if re.search(r"[(,]\s*$|\bpattern\s+$", before, re.IGNORECASE):
            yield from (Item(_type(name), "type", "event type") for name in names.types)
            yield from _words(_PATTERNS)
        elif re.search(r"\)\s*$", before):
            yield from _clauses(clauses)
    elif clause == "WITHIN" and re.search(r"[\d.]\s*$", before):
        yield from (Item(unit, "unit") for unit in UNITS)
        yield Item("EVENTS", "unit", "counted, not timed")
    elif clause == "OUTPUT" and re.search(r"output\s+$", before, re.IGNORECASE):
        yield from _words(_OUTPUTS)
    else:
        if clause in ("WHERE", "RETURN"):
            yield from _in_a_condition(text, clause)
        if not re.search(r"(\bwhere|\band|\bor|\bnot|[=<>+*/,{(-])\s*$", before, re.IGNORECASE):
            yield from _clauses(clauses)


def _in_a_condition(text: str, clause: str) -> Iterator[Item]:
    yield from (Item(name, "variable", "an event of the pattern") for name in variables(text))
    if clause == "WHERE":
        yield from _words(_OPERATORS)
        yield from (Item(strategy.value, "keyword", "selection strategy") for strategy in Strategy)
    for name in function_names():
        yield Item(name, "function", "over a group of events" if name in AGGREGATES else "function")


def _clauses(written: list[str]) -> Iterator[Item]:
    yield from (Item(name, "keyword", meaning) for name, meaning in CLAUSES.items() if name not in written)


def _words(words: dict[str, str]) -> Iterator[Item]:
    yield from (Item(name, "keyword", meaning) for name, meaning in words.items())


def variables(text: str) -> list[str]:
    """The variables of the pattern, also where the text is not complete.

    >>> variables("PATTERN SEQ(Shelf a, !(Register b), ANY(X, Y) c, Tick+ d[]) WHERE a.")
    ['a', 'b', 'c', 'd']
    """
    parts = re.split(r"\b(?:where|within|threshold|confidence|return|output)\b", text, maxsplit=1, flags=re.IGNORECASE)
    pattern = re.sub(r"^\s*(pattern|event|sequence)\b", "", parts[0], flags=re.IGNORECASE)
    found = re.findall(r"[\w`')\"+*?}]\s+([^\W\d]\w*)\s*(?:\[\s*\])?\s*(?=[,)|]|$)", pattern)
    return list(dict.fromkeys(found))


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name.replace('`', '``')}`"


def _type(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*(-\w+)*", name) else f"`{name.replace('`', '``')}`"
