"""Large JSON documents member by member: the elements of the lists and objects at the top, one at a time."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError

_BLOCK = 2**20
_LONGEST = 2**27  # characters of one element
_SPACE = re.compile(r"[ \t\r\n]*")


def top_members(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, str | None, Any]]:
    """The elements of the wanted members of a JSON object: the member, the key (None in a list), the value.

    A member that is neither a list nor an object is one element. Others are skipped, and nothing is kept of them.
    """
    text = _Text(path)
    text.expect("{")
    if text.takes("}"):
        return
    while True:
        name = text.value()
        text.expect(":")
        kind = text.peek()
        if kind not in "[{":
            value = text.value()
            if name in wanted:
                yield name, None, value
        else:
            for key, value in _elements(text, kind):
                if name in wanted:
                    yield name, key, value
        if not text.takes(","):
            text.expect("}")
            return


def _elements(text: _Text, kind: str) -> Iterator[tuple[str | None, object]]:
    text.expect(kind)
    closing = "]" if kind == "[" else "}"
    if text.takes(closing):
        return
    while True:
        key = None
        if kind == "{":
            key = text.value()
            text.expect(":")
        yield key, text.value()
        if not text.takes(","):
            text.expect(closing)
            return


class _Text:
    """The characters of a file from a place on, of which a block or two are held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = io.TextIOWrapper(io.BufferedReader(pa.input_stream(str(path))), "utf-8-sig")
        self._held, self._at = "", 0
        self._line = 1
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while True:
            begin = self._at
            self._at = _SPACE.match(self._held, self._at).end()  # type: ignore[union-attr]
            self._line += self._held.count("\n", begin, self._at)
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more():
                return ""

    def takes(self, mark: str) -> bool:
        if self.peek() != mark:
            return False
        self._at += 1
        return True

    def expect(self, mark: str) -> None:
        if not self.takes(mark):
            raise self._wrong()

    def value(self) -> Any:
        """The value that comes next, whole."""
        self.peek()
        while True:
            try:
                found, end = self._decode(self._held, self._at)
            except RecursionError:
                raise self._wrong() from None
            except json.JSONDecodeError:
                if len(self._held) - self._at > _LONGEST or not self._more():
                    raise self._wrong() from None
                continue
            if end < len(self._held) or not self._more():  # a number may go on in the next block
                self._line += self._held.count("\n", self._at, end)
                self._at = end
                return found

    def _more(self) -> bool:
        try:
            block = self._stream.read(max(_BLOCK, len(self._held) - self._at))  # doubles, so that values cost n log n
        except UnicodeDecodeError:
            raise DataError(f"{self._path} is not written in UTF-8") from None
        self._held, self._at = self._held[self._at :] + block, 0
        return bool(block)

    def _wrong(self) -> DataError:
        return DataError(
            f"cannot read {self._path} as JSON: there is an error in the value that begins in line {self._line}"
        )
