"""Parts of texts, and texts put together."""

from __future__ import annotations

from typing import Any

LONGEST = 2**30  # characters of a text that a function may make


def substring(text: str, start: int, length: int | None = None) -> str:
    """So many characters from a place on; places count from 1, negative ones from the end, as in Spark.

    >>> substring("events", 2, 3), substring("events", -2), substring("events", -8, 3)
    ('ven', 'ts', 'e')
    """
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + max(length, 0)
    return text[max(begin, 0) : max(end, 0)]


def padded(left: bool) -> Any:
    """lpad or rpad: the text brought to a length, with a filling in front of it or behind it.

    >>> padded(True)("7", 3, "0"), padded(False)("abc", 2), padded(True)("abc", 5, "")
    ('007', 'ab', 'abc')
    """

    def call(text: str, length: int, fill: str = " ") -> str | None:
        missing = max(length - len(text), 0)
        if missing > LONGEST:
            return None
        filling = (fill * (missing // len(fill) + 1))[:missing] if fill else ""
        return (filling + text if left else text + filling)[: max(length, 0)]

    return call


def repeated(text: str, count: int) -> str | None:
    """The text so many times; NULL where it would be too long to hold."""
    return None if len(text) * count > LONGEST else text * max(count, 0)


def joined(separator: str | None, *parts: Any) -> str | None:
    """concat_ws: the texts that are not NULL with a separator between them, those of lists among them."""
    if separator is None:
        return None
    flat = [item for part in parts for item in (part if isinstance(part, list) else [part])]
    return separator.join(item for item in flat if item is not None)
