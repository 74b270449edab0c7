"""What Cepheid raises: every error names the thing that is wrong and, where it can, proposes a fix."""

from __future__ import annotations

import difflib
import sys
import unicodedata
import warnings
from collections.abc import Iterable
from pathlib import Path

TAB_WIDTH = 4
LINE_WIDTH = 100  # columns of source shown around the place; longer lines are clipped
_PACKAGE = str(Path(__file__).parent)


class CepheidError(Exception):
    """The base of all errors raised on purpose.

    >>> print(CepheidError("the model has no gap for 'y'", hint="add gaps={'y': ...}"))
    the model has no gap for 'y'; add gaps={'y': ...}
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class QueryError(CepheidError):
    """A query text that cannot be understood, or that asks for something impossible.

    `start` and `end` are character offsets into `text` (`end` is exclusive). `line`, `column` and `end_column` follow
    from them: counted from 1 in characters, `end_column` being the column after the last one marked, all None when the
    place is unknown. `code` is a short name of the kind of error that stays the same when messages are reworded.

    >>> text = "PATTERN SEQ(Login a, Paymnt b)"
    >>> raise QueryError("unknown event type", text=text, start=21, end=27, code="unknown-type",
    ...                  hint="no event type 'Paymnt'; did you mean 'Payment'?")
    Traceback (most recent call last):
    cepheid.errors.QueryError: line 1, column 22: unknown event type
    PATTERN SEQ(Login a, Paymnt b)
                         ^^^^^^ no event type 'Paymnt'; did you mean 'Payment'?
    """

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        start: int | None = None,
        end: int | None = None,
        hint: str | None = None,
        code: str = "syntax",
    ) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.start = start
        self.end = end
        self.code = code
        self.line: int | None = None
        self.column: int | None = None
        self.end_column: int | None = None
        if text is not None and start is not None:
            start = min(max(start, 0), len(text))
            line_start = text.rfind("\n", 0, start) + 1
            line_end = line_start + len(text[line_start:].split("\n", 1)[0].removesuffix("\r"))
            self.line = text.count("\n", 0, start) + 1
            self.column = start - line_start + 1
            # A place that runs over several lines is marked to the end of its first; an empty one gets one caret.
            last = min(end if end is not None else start + 1, line_end)
            self.end_column = max(last, start + 1) - line_start + 1

    def __str__(self) -> str:
        if self.text is None or self.line is None or self.column is None or self.end_column is None:
            return super().__str__()
        source = self.text.split("\n")[self.line - 1].removesuffix("\r")
        shown, before, width = _show(source, self.column - 1, self.end_column - 1)
        carets = " " * before + "^" * width + (f" {self.hint}" if self.hint else "")
        return f"line {self.line}, column {self.column}: {self.message}\n{shown}\n{carets}"


class DataError(CepheidError):
    """Events that cannot be matched: a column that is absent or of a wrong kind, or a value that makes no sense.

    >>> print(DataError("the time is null", column="ts", row=17, hint="drop such rows first"))
    column 'ts', row 17: the time is null; drop such rows first
    """

    def __init__(
        self, message: str, *, column: str | None = None, row: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.column = column
        self.row = row

    def __str__(self) -> str:
        column = None if self.column is None else f"column {self.column!r}"
        row = None if self.row is None else f"row {self.row}"
        place = ", ".join(part for part in (column, row) if part)
        return f"{place}: {super().__str__()}" if place else super().__str__()


class ModelError(CepheidError):
    """A loss or gap model that is incomplete, impossible, or does not fit the query."""


class ModelWarning(UserWarning):
    """A loss and gap model that does not fit its history or a stream, or that a history cannot tell in full."""


class LimitError(CepheidError):
    """A limit the caller set, or one that protects memory, would be passed."""


class TimeoutReached(LimitError, TimeoutError):
    """A query did not finish in the time it was given."""


class EngineError(CepheidError):
    """An engine was asked for by name that cannot run the query."""


class TiesWarning(UserWarning):
    """Events share time and key with others: they do not follow each other, which may cost matches."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the line that called the package, however deep inside of it the cause is."""
    levels, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        levels, frame = levels + 1, frame.f_back
    warnings.warn(message, category, stacklevel=levels)


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate a writer of `name` most likely meant, or None when nothing is near.

    >>> closest("Paymnt", ["Login", "Payment"])
    'Payment'
    >>> closest("PAYMENT", ["Login", "Payment"])
    'Payment'
    >>> closest("Refund", ["Login", "Payment"]) is None
    True
    """
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    near = difflib.get_close_matches(name.casefold(), list(by_folded), n=1)
    return by_folded[near[0]] if near else None


def _columns(character: str, at: int) -> int:
    """How many columns of a terminal a character fills when it begins at column `at`."""
    if character == "\t":
        return TAB_WIDTH - at % TAB_WIDTH
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _show(source: str, first: int, last: int) -> tuple[str, int, int]:
    """The line as shown, the columns before the carets, and the number of carets, for characters first..last-1.

    >>> _show("a\\tbad", 2, 5)
    ('a   bad', 4, 3)
    >>> _show("名前 bad", 3, 6)
    ('名前 bad', 5, 3)
    """
    cells: list[str] = []  # what each character looks like
    edges = [0]  # the column at which each character begins, and the end of the line
    for character in source:
        width = _columns(character, edges[-1])
        control = unicodedata.category(character) == "Cc"  # a tab, too: its width is known, so spaces do
        cells.append(" " * width if control else character)
        edges.append(edges[-1] + width)

    low, high = 0, len(source)
    if edges[-1] > LINE_WIDTH:
        low, high = _clip(edges, min(first, len(source)), min(last, len(source)))
    left = "…" if low > 0 else ""
    right = "…" if high < len(source) else ""
    # A place past the end of the line (the text ended too early) is one column wide.
    begin = edges[first] if first < len(edges) else edges[-1]
    end = edges[min(last, high)] if first < len(source) else begin + 1
    return left + "".join(cells[low:high]) + right, len(left) + begin - edges[low], max(end - begin, 1)


def _clip(edges: list[int], first: int, last: int) -> tuple[int, int]:
    """The characters low..high-1 of a long line to show: LINE_WIDTH columns with the place near their middle."""
    middle = (edges[first] + min(edges[last], edges[first] + LINE_WIDTH // 2)) // 2
    begin = max(min(middle - LINE_WIDTH // 2, edges[-1] - LINE_WIDTH), 0)
    low = next(i for i, edge in enumerate(edges) if edge >= begin)
    high = max(i for i, edge in enumerate(edges) if edge <= edges[low] + LINE_WIDTH)
    return low, high
