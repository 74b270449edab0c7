"""What a Python worker remembers of a shard from one micro-batch to the next, so that it need not read it again.

Spark keeps its Python workers, and a shard often comes back to the one that wrote its state. Every step signs the clock
that it stores with a token of its own; chunks that a worker remembers under the token that it reads are those of the
state, and searches have seen just these, whatever failed, was repeated or ran elsewhere in between. Any other state is
read from the store, and the search made again from it.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 128 << 20  # of chunks, and of searches over them, that one worker remembers
SEARCHED = 3  # bytes in memory for a byte of a chunk that a search has seen, or so


@dataclass(frozen=True)
class HeldState:
    """Chunks of one state, and the searches that have seen them."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    searches: dict[int, object] = field(default_factory=dict)
    stream: str | None = None  # the stream whose searches they are: another may go on from the same state
    size: int = 0


@dataclass
class ChunkCache:
    """Chunks under the tokens of the states that they belong to, the oldest first."""

    most: int = MOST_BYTES
    states: OrderedDict[str, HeldState] = field(default_factory=OrderedDict)
    size: int = 0

    def take(self, token: str | None, stream: str | None = None) -> HeldState:
        """What is known of a state; it is handed out once, since the step that asks changes it.

        >>> held = ChunkCache()
        >>> token = held.put({0: b"events"}, {0: "a search"}, "one stream")
        >>> found = held.take(token, "another stream")
        >>> found.chunks, found.searches, held.take(token).chunks, held.take(None).chunks, held.size
        ({0: b'events'}, {}, {}, {}, 0)
        """
        found = self.states.pop(token, HeldState()) if token is not None else HeldState()
        self.size -= found.size
        return found if found.stream == stream else HeldState(found.chunks)

    def put(
        self,
        chunks: dict[int, bytes],
        searches: dict[int, Any] | None = None,
        stream: str | None = None,
        small: int = 0,
    ) -> str:
        """Remembers chunks of a state, and searches over them and `small` bytes besides; the token to sign it with."""
        token, kept = uuid.uuid4().hex, sum(map(len, chunks.values()))
        size = kept + (SEARCHED * (kept + small) if searches else 0)
        self.states[token] = HeldState(chunks, searches or {}, stream, size)
        self.size += size
        while self.size > self.most and self.states:
            self.take(next(iter(self.states)))
        return token


HELD = ChunkCache()  # of this process
