"""Writes what comes from the declarations of options: runners/keywords.py, tables of docs/api.md and docs/spark.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import cepheid
from cepheid.engine.engines import ENGINES
from cepheid.plan import options as p
from cepheid.plan.option_kinds import one_of
from cepheid.runners import options as r

SOURCE = Path(cepheid.__file__).parent / "runners" / "keywords.py"
COMMAND = "PYTHONPATH=src:tests .venv/bin/python -m runners.option_pages"
DOCS = Path(__file__).parent.parent.parent / "docs"

# The classes whose options a table shows, by page and table.
TABLES: dict[str, dict[str, tuple[type, ...]]] = {
    "api.md": {
        "columns": (r.RoleOptions, r.TextOptions),
        "records": (r.RecordOptions,),
        "missing events": (p.ModelOptions, p.MissingOptions, p.ForecastOptions),
        "imprecise times": (p.ImpreciseOptions, p.MethodOptions),
        "execution": (
            p.ChoiceOptions,
            p.SequenceOptions,
            p.RunsOptions,
            p.ChainOptions,
            p.TreeOptions,
            p.Limits,
            r.OutputOptions,
        ),
        "row patterns": (r.RowOptions, r.RowStreamOptions),
        "flink": (r.FlinkOptions,),
    },
    "spark.md": {"batches": (r.BatchOptions,), "streams": (r.StreamOptions,)},
}
SHORT = {p.QUERY_TEXT: "text", p.MATCH_RECOGNIZE: "rows", p.FLINK: "Flink"}

Option = tuple[str, "Field[Any]", p.Declared]


def own_options(kind: type) -> Iterator[Option]:
    """The options that a class declares itself."""
    for each in fields(kind):
        if each.name in kind.__annotations__ and "declared" in each.metadata:
            yield each.name, each, each.metadata["declared"]


def every_option() -> dict[str, Option]:
    """All options, by name; of one that a language declares again, the first."""
    kinds = [kind for tables in TABLES.values() for shown in tables.values() for kind in shown]
    found: dict[str, Option] = {}
    for kind in kinds:
        for option in own_options(kind):
            found.setdefault(option[0], option)
    return found


# --- pages ----------------------------------------------------------------------------------------------------------


def table(kinds: Iterable[type]) -> str:
    """The options of some classes, one row each."""
    rows = ["| Option | Default | Languages | Meaning |", "|---|---|---|---|"]
    for name, declared, said in (option for kind in kinds for option in own_options(kind)):
        default = said.shown if said.shown is not None else _default(declared.default)
        languages = "all" if said.languages == p.EVERY_LANGUAGE else ", ".join(SHORT[each] for each in said.languages)
        example = f"; for example `{name}={said.example}`" if said.example is not None else ""
        rows.append(f"| `{name}` | {default} | {languages} | {said.help}{example} |")
    return "\n".join(rows)


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def page(name: str, text: str) -> str:
    """A page with its tables written again, each between two marks."""
    for title, kinds in TABLES[name].items():
        begin, end = f"<!-- options: {title} -->\n", "\n<!-- end of options -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        assert found, f"{name} has no place for the options of {title}"
        assert closed, f"{name}: the options of {title} have no end"
        text = before + begin + table(kinds) + end + after
    return text


# --- signatures -----------------------------------------------------------------------------------------------------

KEYWORDS = '''"""The keyword options of the public calls, as types: what a checker of types knows of them.

`python -m runners.option_pages` writes it from the declarations in plan/options.py and runners/options.py.
docs/api.md says what the options mean. The values are checked again when a call is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from cepheid.model import Model

{names}
Length = int | float | str | timedelta  # 5, "10 seconds" or a timedelta


class RoleKeywords(TypedDict, total=False):
    """Which columns mean what, and how records are read."""

{roles}


class PlanKeywords(RoleKeywords, total=False):
    """How a query is planned and run; none of it changes what the query means, but `model` and `scoring`."""

{plan}


class MatchKeywords(PlanKeywords, total=False):
    """The options of `match` with a text, but for `output`, which decides what is returned."""

{match}


class FlinkKeywords(TypedDict, total=False):
    """The options of `match` with a Flink pattern."""

{flink}
'''


def keywords() -> str:
    """The module of typed keywords."""
    every = every_option()
    shared = [each.name for each in fields(p.PlanOptions) if each.name in every]
    roles = [name for kind in (r.RoleOptions, r.RecordOptions) for name, _, _ in own_options(kind)] + ["parameters"]
    more = [name for kind in (r.RowOptions, r.RowStreamOptions) for name, _, _ in own_options(kind)]
    more += [name for kind in (r.BatchOptions, r.StreamOptions) for name, _, _ in own_options(kind)]
    flink = p.options_of(r.FlinkOptions, p.FLINK)
    of_flink = {"engine": one_of(*r.FlinkOptions.engines).typed, "output": one_of(*r.OUTPUTS_OF_PATTERNS).typed}
    return KEYWORDS.format(
        names="\n".join([_literal("EngineName", ("auto", *ENGINES)), _literal("Scoring", p.SCORINGS)])
        + "\n"
        + _literal("Method", p.METHODS),
        roles=_lines(every[name] for name in roles),
        plan=_lines(every[name] for name in shared),
        match=_lines(every[name] for name in ["dialect", *more]),
        flink=_lines(((name, *p.declared(r.FlinkOptions)[name]) for name in flink), of_flink),
    )


def _literal(name: str, values: Iterable[str]) -> str:
    quoted = [f'"{value}"' for value in values]
    line = f"{name} = Literal[{', '.join(quoted)}]"
    return line if len(line) <= 120 else "\n".join([f"{name} = Literal[", *(f"    {each}," for each in quoted), "]"])


def _lines(options: Iterable[Option], instead: Mapping[str, str] | None = None) -> str:
    lines = []
    for name, declared, said in options:
        typed = (instead or {}).get(name, said.kind.typed)
        typed += " | None" if declared.default is None and not said.kind.none else ""
        lines.append(f"    {name}: {typed}")
    return "\n".join(lines)


if __name__ == "__main__":
    SOURCE.write_text(keywords(), encoding="utf-8")
    for each in TABLES:
        path = DOCS / each
        path.write_text(page(each, path.read_text(encoding="utf-8")), encoding="utf-8")
