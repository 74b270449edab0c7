"""What a Python worker remembers of a shard from one micro-batch to the next, so that it need not read it again.

Spark keeps its Python workers, and a shard often comes back to the one that wrote its state. Every step signs the clock
that it stores with a token of its own; chunks that a worker remembers under the token that it reads are those of the
state, whatever failed, was repeated or ran elsewhere in between. Any other state is read from the store.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass, field

MOST_BYTES = 64 << 20  # of chunks that one worker remembers


@dataclass
class ChunkCache:
    """Chunks under the tokens of the states that they belong to, the oldest first."""

    most: int = MOST_BYTES
    states: OrderedDict[str, dict[int, bytes]] = field(default_factory=OrderedDict)
    size: int = 0

    def take(self, token: str | None) -> dict[int, bytes]:
        """What is known of a state; it is handed out once, since the step that asks changes it.

        >>> held = ChunkCache()
        >>> token = held.put({0: b"events"})
        >>> held.take(token), held.take(token), held.take(None)
        ({0: b'events'}, {}, {})
        """
        found = self.states.pop(token, {}) if token is not None else {}
        self.size -= sum(map(len, found.values()))
        return found

    def put(self, chunks: dict[int, bytes]) -> str:
        """Remembers the chunks of a state; the token to sign it with."""
        token = uuid.uuid4().hex
        self.states[token] = chunks
        self.size += sum(map(len, chunks.values()))
        while self.size > self.most and self.states:
            self.take(next(iter(self.states)))
        return token


HELD = ChunkCache()  # of this process
