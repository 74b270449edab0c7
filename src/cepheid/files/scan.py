"""Files of text looked through before Arrow reads them: what it would read wrongly, or would not survive.

The files are taken up in blocks, by operations on whole blocks that run in C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError

Bytes: TypeAlias = npt.NDArray[np.uint8]

MAX_NESTING = 64  # of JSON: Arrow recurses, and thousands of levels end the process
_BLOCK = 2**23
_LONGEST_FIELD = 2**26  # bytes of a quoted field of CSV
_QUOTE, _ZERO, _DOT, _LINE = b'"0.\n'
_STRUCTURE = b'"[]{}\n'
_OTHERS = bytes(byte for byte in range(256) if byte not in _STRUCTURE)
_LONG_NUMBER = re.compile(rb'"([^"\\]{1,200})"\s*:\s*[\[\s]*-?[0-9]{16,}(?=[\s,\]}])')


# --- CSV ------------------------------------------------------------------------------------------------------------


def check_quotes(path: Path, delimiter: str) -> None:
    """Refuses a quote that is never closed: Arrow would take all that follows it for one field."""
    opened, last = 0, _LINE  # quotes so far, and the byte before the block
    ends = np.zeros(256, bool)
    ends[list(f'{delimiter}\n\r"'.encode())] = True
    for block in _blocks(path):
        marks = np.frombuffer(block, np.uint8)
        places = np.flatnonzero(marks == _QUOTE)
        opening = places[opened % 2 :: 2]
        before = np.where(opening > 0, marks[opening - 1], last)
        if not ends[before].all():  # a quote within a field, which changes what the others are
            break
        opened, last = opened + len(places), int(marks[-1])
    else:
        if opened % 2 == 0:
            return
    _check_every_field(path, delimiter)


def _check_every_field(path: Path, delimiter: str) -> None:
    """The same field by field, as Arrow reads: a quote opens one only where it begins, and what follows the closing
    quote belongs to it."""
    mark = re.escape(delimiter.encode())
    quoted, plain, end = rb'"[^"]*+(?:""[^"]*+)*+"[^%b\r\n]*+', rb'[^%b"\r\n][^%b\r\n]*+', rb"[%b\r\n]"
    fields = re.compile(b"(?:(?:%b|%b)?+%b)*+" % (quoted % mark, plain % (mark, mark), end % mark))
    rest, line = b"", 1
    for block in _blocks(path):
        text = rest + block
        matched = fields.match(text)
        done = matched.end() if matched is not None else 0
        line += text.count(b"\n", 0, done)
        rest = text[done:]
        if len(rest) > _LONGEST_FIELD:
            break
    if rest.startswith(b'"') and fields.fullmatch(rest + b"\n") is None:
        hint = "close it, or double it where it belongs to the text"
        raise DataError(f"cannot read {path}: a quote that opens in line {line} is never closed", hint=hint)


def has_odd_numbers(path: Path, delimiter: str, *, long: bool) -> bool:
    """May a field be like 0815 or, if `long` asks for such, a whole number of more digits than a double has?"""
    starts = (ord(delimiter), _LINE, ord("\r"), _QUOTE, ord(" "), ord("+"), ord("-"))
    rest = b"\n"
    for block in _blocks(path):
        marks = np.frombuffer(rest + block, np.uint8)
        zeros = np.flatnonzero(marks[1:-1] == _ZERO) + 1
        zeros = zeros[np.isin(marks[zeros - 1], starts)]
        if (marks[zeros + 1] - _ZERO < 10).any() or (long and _has_long_numbers(marks)):
            return True
        rest = block[-64:]
    return False


# --- JSON lines -----------------------------------------------------------------------------------------------------


def check_nesting(path: Path) -> None:
    """Refuses a file of JSON lines whose values nest deeper than Arrow can follow."""
    depth, line = 0, 1
    for block in _lines(path):
        plain = block.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS)
        marks = np.frombuffer(plain, np.uint8)
        inside = np.cumsum(marks == _QUOTE) & 1
        if (inside & (marks == _LINE)).any():
            wrong = line + int(np.count_nonzero(marks[: np.flatnonzero(inside & (marks == _LINE))[0]] == _LINE))
            raise DataError(f"cannot read {path}: a string in line {wrong} is never closed")
        marks = marks[inside == 0]
        steps = np.isin(marks, (ord("["), ord("{"))).astype(np.int64) - np.isin(marks, (ord("]"), ord("}")))
        levels = depth + np.cumsum(steps)
        if len(levels) and levels.max() > MAX_NESTING:
            wrong = line + int(np.count_nonzero(marks[: np.argmax(levels > MAX_NESTING)] == _LINE))
            hint = "flatten it, or keep such values as text"
            raise DataError(f"cannot read {path}: values in line {wrong} nest more than {MAX_NESTING} deep", hint=hint)
        depth = max(int(levels[-1]), 0) if len(levels) else depth
        line += block.count(b"\n")


def check_long_numbers(path: Path, table: pa.Table) -> None:
    """Refuses whole numbers that Arrow has rounded: those of 16 digits and more in columns of doubles."""
    rounded = {name for field in table.schema for name in _doubles(field)}
    if not rounded:
        return
    for block in _lines(path):
        if not _has_long_numbers(np.frombuffer(block, np.uint8)):
            continue
        for found in _LONG_NUMBER.finditer(block):
            name = found[1].decode("utf-8", "replace")
            if name in rounded:
                hint = "write such values as strings, or all values of the column as whole numbers of at most 64 bits"
                raise DataError(f"{path}: a whole number that a double cannot hold", column=name, hint=hint)


def _doubles(field: pa.Field) -> Iterator[str]:
    kind = field.type
    while pa.types.is_list(kind):
        kind = kind.value_type
    if pa.types.is_floating(kind):
        yield field.name
    elif pa.types.is_struct(kind):
        for inner in kind:
            yield from _doubles(inner)


# --- both -----------------------------------------------------------------------------------------------------------


def _has_long_numbers(marks: Bytes) -> bool:
    """Do at least 16 digits stand in a row somewhere that are no digits after a point?"""
    others = np.flatnonzero(marks - _ZERO >= 10)
    before = others[np.flatnonzero(np.diff(others) > 16)]
    return bool((marks[before] != _DOT).any())


def _blocks(path: Path) -> Iterator[bytes]:
    with pa.input_stream(str(path)) as stream:  # knows .gz and the like by their names
        while block := stream.read(_BLOCK):
            yield block


def _lines(path: Path) -> Iterator[bytes]:
    """Blocks that end with a line; strings of JSON hold no line breaks."""
    rest: list[bytes] = []
    for block in _blocks(path):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*rest, block[:end]])
            rest = []
        rest.append(block[end:])
    if any(rest):
        yield b"".join(rest)
