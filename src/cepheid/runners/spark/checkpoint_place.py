"""Was a checkpoint moved? Spark writes the absolute paths of schema files into it and looks for them there.

Imported only when a stream is started.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from cepheid.errors import DataError

_log = logging.getLogger("cepheid.stream")
_STATE = "/state/"


def check_place(jvm: Any, files: Any, checkpoint: object) -> None:
    """An error if a checkpoint names files at the place where it was written, and these are gone."""
    now = str(checkpoint).rstrip("/")
    for path in schema_paths(jvm, files, f"{now}{_STATE}"):
        before, found, _ = path.rpartition(_STATE)
        place = jvm.org.apache.hadoop.fs.Path(path)
        if not found or same_place(before, now):
            continue
        if files.exists(place):
            _log.warning("the checkpoint at %s was copied from %s, and Spark still reads files there", now, before)
            continue
        raise DataError(
            f"the checkpoint at {now} was written at {before}: Spark keeps absolute paths in it, so it cannot be "
            "read at another path",
            hint=f"move it back to {before}, make that path a link to the new one, or start with a new checkpoint",
        )


def schema_paths(jvm: object, files: object, state: str) -> list[str]:
    """The files that the newest metadata of each operator names."""
    found: list[str] = []
    for metadata in _listed(jvm, files, f"{state}*/_metadata/v2"):
        written = [path for path in _listed(jvm, files, f"{metadata}/*") if path.rpartition("/")[2].isdigit()]
        if written:
            newest = max(written, key=lambda path: int(path.rpartition("/")[2]))
            found += named_files(_text(jvm, files, newest))
    return found


def named_files(metadata: str) -> list[str]:
    """The paths in the metadata of an operator: a line with its version, and JSON.

    >>> named_files('v2\\n{"stateStoreInfo": [{"stateSchemaFilePaths": ["file:/a/state/0/_stateSchema/default/0_x"]}]}')
    ['file:/a/state/0/_stateSchema/default/0_x']
    >>> named_files("v9\\nsomething else")
    []
    """
    try:
        known = json.loads(metadata.partition("\n")[2])
        stores = known["stateStoreInfo"]
        return [str(path) for store in stores for path in store.get("stateSchemaFilePaths") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # of another version of Spark: it will tell by itself


def same_place(one: str, other: str) -> bool:
    """Do two paths name one place, whatever the number of slashes behind the scheme?

    >>> same_place("file:/a/b", "file:///a/b/"), same_place("file:/a/b", "hdfs://node/a/b")
    (True, False)
    """

    def plain(path: str) -> str:
        scheme, colon, rest = path.partition(":")
        return f"{scheme}{colon}/{rest.lstrip('/')}".rstrip("/")

    return plain(one) == plain(other)


def _listed(jvm: Any, files: Any, pattern: str) -> list[str]:
    found = files.globStatus(jvm.org.apache.hadoop.fs.Path(pattern))
    return [str(each.getPath()) for each in found or ()]


def _text(jvm: Any, files: Any, path: str) -> str:
    stream = files.open(jvm.org.apache.hadoop.fs.Path(path))
    try:
        text: str = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        return text
    finally:
        stream.close()
