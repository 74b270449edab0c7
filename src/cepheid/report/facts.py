"""What a result carries about its making."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa


def facts(result: pa.Table) -> dict[str, Any]:
    """The engine, its counters, and whether the result was cut short.

    >>> facts(pa.table({"match_start": [1]}))
    {}
    """
    kept = (result.schema.metadata or {}).get(b"cepheid")
    found: dict[str, Any] = json.loads(kept) if kept else {}
    return found
