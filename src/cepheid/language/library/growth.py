"""How long the text is that a function makes, known before it is made.

Functions that make long texts of short ones multiply when they are nested: twelve `replace` make gigabytes of four
letters. So each says beforehand how much it makes, and what is too much is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import checkpoint, reserve
from cepheid.errors import LimitError

MOST_OF_ONE = 1 << 28  # characters of one text
MOST_OF_ALL = 2**31 - 1  # bytes of a column: Arrow's offsets are 32 bits wide


def _replaced(text: str, part: str, other: str = "") -> int:
    return len(text) + (text.count(part) * max(len(other) - len(part), 0) if part else len(other) * (len(text) + 1))


def _padded(text: str, length: int, fill: str = " ") -> int:
    return max(len(text), length)


def _joined(*texts: object) -> int:
    return sum(len(text) for text in texts if isinstance(text, str))


_LENGTHS: dict[str, Callable[..., int]] = {
    "replace": _replaced,
    "repeat": lambda text, times: len(text) * max(times, 0),
    "lpad": _padded,
    "rpad": _padded,
    "space": lambda times: max(times, 0),
    "concat": _joined,
    "concat_ws": _joined,
    "||": _joined,
}


def check_text(name: str, arguments: Sequence[object]) -> None:
    """An error if a function would make a longer text of these values than there may be.

    >>> check_text("repeat", ("ab", 10**12))
    Traceback (most recent call last):
    cepheid.errors.LimitError: repeat makes a text of 2,000,000,000,000 characters; at most 268,435,456 are made
    """
    checkpoint()
    measure = _LENGTHS.get(name)
    if measure is None:
        return
    try:
        size = measure(*arguments)
    except (TypeError, AttributeError):  # values of other types, which the function itself refuses
        return
    if size > MOST_OF_ONE:
        raise LimitError(f"{name} makes a text of {size:,} characters; at most {MOST_OF_ONE:,} are made")
    reserve(size)


def bounded_text(name: str, call: Callable[..., object]) -> Callable[..., object]:
    """The function, which refuses to make texts that are too long."""
    if name not in _LENGTHS:
        return call

    def held(*values: object) -> Any:
        check_text(name, values)
        return call(*values)

    return held


def check_column(name: str, arguments: Sequence[object]) -> None:
    """The same for a function over a whole column of texts; its other arguments are columns, too, or constants."""
    checkpoint()
    if name not in _LENGTHS:
        return
    columns = [each for each in arguments if isinstance(each, pa.Array | pa.ChunkedArray)]
    if not columns:
        check_text(name, [each.as_py() if isinstance(each, pa.Scalar) else each for each in arguments])
        return
    size = _column_size(name, columns, [each.as_py() if isinstance(each, pa.Scalar) else each for each in arguments])
    if size > MOST_OF_ALL:
        raise LimitError(f"{name} makes {size:,} bytes of text; a column holds at most {MOST_OF_ALL:,}")
    reserve(size)


def _column_size(name: str, columns: Sequence[Any], arguments: Sequence[Any]) -> int:
    rows, given = len(columns[0]), sum(int(each.nbytes) for each in columns)
    match name, arguments:
        case "replace", [text, str() as part, *other] if part and text is columns[0]:
            longer = len(other[0].encode()) - len(part.encode()) if other and other[0] is not None else 0
            found = int(pc.sum(pc.count_substring(text, part)).as_py() or 0) if longer > 0 else 0
            return given + found * max(longer, 0)
        case "repeat", [_, int() as times]:
            return given * max(times, 0)
        case (("lpad" | "rpad"), [_, int() as length, *_]):
            return given + rows * max(length, 0)
        case (("concat" | "||"), _):
            return given + rows * sum(len(each.encode()) for each in arguments if isinstance(each, str))
    return given
