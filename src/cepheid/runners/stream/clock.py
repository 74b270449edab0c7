"""The small part of a stream's state: how far a shard has come, which queries it serves and where its events lie."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.runners.checksums import CHECKPOINT, checked_text, text_with_checksum
from cepheid.runners.stream.identity import VERSION, Fingerprint, Known

_EARLIEST = 2  # version of the format that can be read
_WITH_CHECKSUM = 6  # the version of a clock that lies in Spark's store: with small chunks in it, and a checksum
_LEVELS_CHANGE = 4  # from this version on queries that read others know where their state lies, and may change


@dataclass(frozen=True)
class Chunk:
    """Some retained events: under which number they lie, how many they are and how large."""

    number: int
    rows: int
    size: int
    # For chunks of keys that nothing came for when they were written: the times of the middle event and of the last.
    middle: int | None = None
    newest: int | None = None

    @property
    def asleep(self) -> bool:
        """Need it be read only if one of its keys wakes up, or half of it has expired?"""
        return self.newest is not None


@dataclass(frozen=True)
class Clock:
    """How far a shard has come; everything besides events that it must know."""

    until: int | None = None  # all events up to here have been seen, all matches that complete by it reported
    newest: int | None = None  # the latest time seen anywhere
    arrived: int | None = None  # when something last came, in milliseconds of the machine's clock
    chunks: tuple[Chunk, ...] = ()
    steps: int = 0  # that were taken
    used: int = 0  # events that were taken in, and matches that came of them: what one more event is worth
    found: int = 0
    queries: Mapping[str, Known] = field(default_factory=dict)
    levels: Mapping[str, Clock] = field(default_factory=dict)  # of queries that read others' matches
    apart: int = 0  # of a level: where in the store its chunks lie, in steps of APART
    gone: tuple[int, ...] = ()  # the places of queries that are no longer there; not stored
    begun: frozenset[str] = frozenset()  # the names of queries that begin with this step; not stored

    def moved(self, newest: int | None, delay: int) -> tuple[int | None, int | None]:
        """The latest time seen, with one that has just come, and up to where all events have been seen then.

        >>> Clock(until=4, newest=9).moved(20, 5), Clock(until=4, newest=9).moved(None, 5), Clock().moved(None, 5)
        ((20, 14), (9, 4), (None, None))
        """
        newest = max((time for time in (self.newest, newest) if time is not None), default=None)
        if newest is None:
            return None, self.until
        return newest, max(newest - delay - 1, newest - delay - 1 if self.until is None else self.until)

    def text(self, fingerprint: Fingerprint, token: str | None = None, small: Mapping[int, bytes] | None = None) -> str:
        """As it is stored. In Spark's store it has a token, which says which of several states alike it belongs to, and
        small chunks in it, and a checksum of all that; elsewhere it is part of something that has one."""
        if token is None:
            return json.dumps({"version": VERSION, **fingerprint.spread(), **self.told()})
        more: dict[str, object] = {"token": token}
        if small:
            more["small"] = {number: base64.b64encode(chunk).decode() for number, chunk in small.items()}
        told = {"version": _WITH_CHECKSUM, **more, **fingerprint.spread(), **self.told()}
        return text_with_checksum(json.dumps(told))

    def told(self) -> dict[str, Any]:
        """What is stored, as JSON has it. (`asdict` copies deeply, which takes milliseconds with many queries.)"""
        told = {name: value for name, value in vars(self).items() if name not in ("gone", "begun")}
        told["chunks"] = [vars(chunk) for chunk in self.chunks]
        told["queries"] = {name: vars(known) for name, known in self.queries.items()}
        told["levels"] = {name: level.told() for name, level in self.levels.items()}
        return told

    @classmethod
    def read(cls, text: str | None, fingerprint: Fingerprint) -> Clock:
        """As it was stored; an error if that cannot be continued."""
        if text is None:
            return cls(queries=fingerprint.begun())
        told = parsed(text)
        version, _, _ = told.pop("version", None), told.pop("token", None), told.pop("small", None)
        latest = max(VERSION, _WITH_CHECKSUM)
        if not isinstance(version, int) or isinstance(version, bool) or version < _EARLIEST or version > latest:
            newer = isinstance(version, int) and version > latest
            raise DataError(
                f"the checkpoint holds state of format {version!r}, and this version reads {_EARLIEST} to {latest}",
                hint="run the newer version of Cepheid that wrote it" if newer else "start a new checkpoint",
            )
        if version == _EARLIEST:
            if told.pop("fingerprint", None) not in fingerprint.earlier:
                raise DataError(
                    "the checkpoint belongs to another query, other columns or another number of shards",
                    hint="go back to those, or start a new checkpoint",
                )
            return cls._made(told, fingerprint.begun())
        fingerprint.check_spread(told)
        for name in fingerprint.spread():
            told.pop(name, None)
        try:
            known = {name: Known(**each) for name, each in told.pop("queries").items()}
        except (TypeError, KeyError, AttributeError):
            raise _damaged() from None
        going = fingerprint.went_on(known, told.get("newest"))
        begun = {name for name, each in going.items() if name not in known or known[name].place != each.place}
        changed = begun or known.keys() - going.keys()
        if version < _LEVELS_CHANGE and told.get("levels") and changed:
            raise DataError(
                "the checkpoint belongs to queries that read each other, and these change only together",
                hint="go back to what they were, or start a new checkpoint",
            )
        gone = {each.place for each in known.values()} - {each.place for each in going.values()}
        return cls._made({**told, "gone": tuple(sorted(gone)), "begun": frozenset(begun)}, going)

    @classmethod
    def _made(cls, told: dict[str, Any], queries: Mapping[str, Known]) -> Clock:
        try:
            chunks = tuple(Chunk(**chunk) for chunk in told.pop("chunks"))
            told.pop("queries", None)
            levels = {
                name: cls._made(dict(level), {each: Known(**known) for each, known in level.get("queries", {}).items()})
                for name, level in told.pop("levels", {}).items()
            }
            clock = cls(**told, chunks=chunks, queries=queries, levels=levels)
        except (TypeError, KeyError, AttributeError, ValueError):
            raise _damaged() from None
        numbers = [clock.until, clock.newest, clock.arrived, clock.steps, clock.used, clock.found, clock.apart]
        numbers += [value for chunk in chunks for value in asdict(chunk).values()]
        if any(value is not None and (not isinstance(value, int) or isinstance(value, bool)) for value in numbers):
            raise _damaged()
        return clock


def split_late(arrived: pa.Table, times: npt.NDArray[np.int64], until: int | None) -> tuple[pa.Table, pa.Table | None]:
    """The new events that time has not passed yet, and those that are late, if any is."""
    behind = times <= until if until is not None else np.zeros(len(times), bool)
    if not behind.any():
        return arrived, None
    return arrived.filter(pa.array(~behind)), arrived.filter(pa.array(behind))


def signed(text: str | None) -> tuple[str | None, dict[int, bytes]]:
    """The token that a stored clock is signed with, if it is, and the chunks that lie in it.

    >>> signed('{"version": 5, "token": "a1", "small": {"0": "aGVsbG8="}}'), signed(None)
    (('a1', {0: b'hello'}), (None, {}))
    """
    told = parsed(text) if text is not None else {}
    token, small = told.get("token"), told.get("small", {})
    try:
        chunks = {int(number): base64.b64decode(chunk, validate=True) for number, chunk in small.items()}
    except (AttributeError, TypeError, ValueError, binascii.Error):
        raise _damaged() from None
    return token if isinstance(token, str) else None, chunks


def parsed(text: str) -> dict[str, Any]:
    """A stored clock as JSON has it; an error if its checksum does not fit."""
    try:
        told = json.loads(checked_text(text, "the clock of a shard in the checkpoint", CHECKPOINT))
    except ValueError:
        raise _damaged() from None
    if not isinstance(told, dict):
        raise _damaged()
    return told


def _damaged() -> DataError:
    return DataError("the checkpoint holds a state that cannot be read", hint=CHECKPOINT)
