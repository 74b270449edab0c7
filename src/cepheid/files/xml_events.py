"""XML read element by element, without entities: a document type could make a small file a huge one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from xml.parsers import expat

import pyarrow as pa

from cepheid.errors import DataError

_BLOCK = 2**20


def read_elements(
    path: Path,
    begin: Callable[[str, Mapping[str, str], int], None],
    end: Callable[[str], None],
    text: Callable[[str], None] | None = None,
) -> None:
    """Calls `begin` with the name, the attributes and the line of each element, and `end` when it is closed.

    Names are without their namespaces.
    """
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        hint = "remove its <!DOCTYPE ...>"
        raise DataError(f"cannot read {path}: it has a document type, in line {parser.CurrentLineNumber}", hint=hint)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, given: begin(name.rpartition("}")[2], given, parser.CurrentLineNumber)
    parser.EndElementHandler = lambda name: end(name.rpartition("}")[2])
    if text is not None:
        parser.CharacterDataHandler = text
    try:
        with pa.input_stream(str(path)) as stream:
            while block := stream.read(_BLOCK):
                parser.Parse(block, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "not well-formed")
        raise DataError(f"cannot read {path} as XML: {reason}, in line {error.lineno}") from None
