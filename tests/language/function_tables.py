"""Writes the tables of functions in docs/language.md, from the registry."""

from __future__ import annotations

from pathlib import Path

from cepheid.language.library import number_functions, text_functions, time_functions, value_functions, zone_functions
from cepheid.language.library.function import Function

PAGE = Path(__file__).parent.parent.parent / "docs" / "language.md"
LIBRARIES = {
    "numbers": number_functions.FUNCTIONS,
    "text": text_functions.FUNCTIONS,
    "times": (*time_functions.FUNCTIONS, *zone_functions.FUNCTIONS),
    "values": value_functions.FUNCTIONS,
}


def table(functions: tuple[Function, ...]) -> str:
    """The functions of a library, one row each."""
    rows = [f"| `{function.shown}` | {function.says} |" for function in functions]
    return "\n".join(["| Function | Returns |", "|---|---|", *rows])


def page(text: str) -> str:
    """The page with its tables written again, each between two marks."""
    for name, functions in LIBRARIES.items():
        begin, end = f"<!-- functions of {name} -->\n", f"\n<!-- end of functions of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + begin + table(functions) + end + after
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
