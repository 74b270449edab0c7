"""Checksums of stored state: whatever is read back is what was written, or an error names the damaged part.

Bytes get a header of 16 bytes with a mark, the CRC-32 and the length; JSON objects get a last entry `"crc32"`. Both are
read without a checksum, too, as earlier versions wrote them. CRC-32 finds every error of up to 32 adjacent bits, and
all but one in four billion of the others. It protects against accidents, not against somebody who writes the state.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.runners.arrow_bytes import decoded

_HEAD = struct.Struct("<4sIQ")
_MARK = b"CPHs"
_ENTRY = ' "crc32": "'
# What reading damaged bytes can raise.
UNREADABLE = (
    pa.ArrowException,
    KeyError,
    IndexError,
    ValueError,
    TypeError,
    AttributeError,
    OSError,
    MemoryError,
    struct.error,
)
CHECKPOINT = "restore the checkpoint from a copy, or start a new one"


def with_checksum(packed: bytes, part: str = "") -> bytes:
    """Bytes with a checksum of them, and of the name of the part that they are: two parts cannot change places."""
    return _HEAD.pack(_MARK, zlib.crc32(packed, zlib.crc32(part.encode())), len(packed)) + packed


def checked(packed: bytes, what: str, hint: str, older: Callable[[bytes], bool], part: str = "") -> bytes:
    """The bytes behind a checksum; an error if they are others. `older` says which bytes may do without one.

    >>> checked(with_checksum(b"events"), "the state", "restore it", is_older)
    b'events'
    >>> checked(with_checksum(b"events").replace(b"v", b"w"), "the state", "restore it", is_older)
    Traceback (most recent call last):
    cepheid.errors.DataError: the state is damaged: its checksum does not fit; restore it
    """
    if packed[:4] != _MARK:
        if older(packed):
            return packed
        raise DataError(f"{what} is damaged, or is not a saved state: it begins with unknown bytes", hint=hint)
    if len(packed) < _HEAD.size:
        raise DataError(f"{what} is damaged: it is cut short", hint=hint)
    _, checksum, length = _HEAD.unpack_from(packed)
    body = packed[_HEAD.size :]
    if len(body) < length:
        raise DataError(f"{what} is damaged: it is cut short", hint=hint)
    if len(body) != length or zlib.crc32(body, zlib.crc32(part.encode())) != checksum:
        raise DataError(f"{what} is damaged: its checksum does not fit", hint=hint)
    return body


def is_older(packed: bytes) -> bool:
    """Do bytes begin as an Arrow stream does, or a state of version 1? Earlier versions wrote these as they are."""
    return packed[:4] in (b"\xff\xff\xff\xff", b"\x01\0\0\0")


def decoded_state(packed: bytes) -> pa.Table:
    """A table of a checkpoint; an error of ours if it cannot be read, as may be where it has no checksum."""
    try:
        return decoded(packed)
    except UNREADABLE:
        raise DataError("the checkpoint holds a state that cannot be read", hint=CHECKPOINT) from None


def text_with_checksum(text: str) -> str:
    """A JSON object with a checksum as its last entry.

    >>> text_with_checksum('{"a": 1}'), text_with_checksum("{}")
    ('{"a": 1, "crc32": "7aa88204"}', '{ "crc32": "15d54739"}')
    """
    body = text.rstrip().removesuffix("}").rstrip()
    return f'{body}{"" if body == "{" else ","}{_ENTRY}{_text_sum(body)}"}}'


def checked_text(text: str, what: str, hint: str) -> str:
    """The JSON object behind a checksum; without one it stays as it is."""
    at = text.rfind(_ENTRY)
    if at < 0 or not text.endswith('"}') or len(text) - at != len(_ENTRY) + 10:
        return text
    body = text[:at].removesuffix(",")
    if text[at + len(_ENTRY) : -2] != _text_sum(body):
        raise DataError(f"{what} is damaged: its checksum does not fit", hint=hint)
    return body + "}"


def _text_sum(body: str) -> str:
    return f"{zlib.crc32(body.encode('utf-8', 'surrogatepass')):08x}"
