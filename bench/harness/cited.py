"""Numbers in README and docs, filled in from the result files: `python -m bench publish`.

A number is a link to its row of bench/RESULTS.md whose title says which number it is:

    [12 times](bench/RESULTS.md#rivals-any "rivals-any; Cepheid / Flink CEP; at last")

that is an experiment, a contestant or the ratio of two, and then, where needed, the point of the axis (`at 500000`,
`at first`, `at last`: where all of those named ran), the series (`in V2 = 20`), another number than the
experiment's own (`of seconds`), and `as percent`. `of x` is the point itself. The link's text is what was measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.experiments import all_experiments
from bench.harness.store import ROOT, read_results
from bench.harness.summary import Summary

LINK = re.compile(r'\[([^\[\]]*)\]\(((?:\.\./)*bench/RESULTS\.md)#([\w+-]+) "([^"]+)"\)')
NOT_MEASURED = "not measured"
SHARES = ("recall", "precision", "share_found", "share_true", "keeps_up")


class NotCited(ValueError):
    """The title of a link says no number."""


@dataclass(frozen=True)
class Cited:
    """Which number a link is."""

    experiment: str
    contestants: tuple[str, ...]
    at: str = ""
    series: str | None = None
    of: str = ""
    percent: bool = False


def pages() -> list[Path]:
    """Where numbers are cited."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def read_title(title: str) -> Cited:
    """The number that a title names.

    >>> read_title("rivals-any; Cepheid / Flink CEP; at last").contestants
    ('Cepheid', 'Flink CEP')
    """
    parts = [part.strip() for part in title.split(";")]
    if len(parts) < 2 or not parts[1]:
        raise NotCited(f"'{title}' names no contestant: 'EXPERIMENT; CONTESTANT [/ OTHER]; at X; in SERIES; of NUMBER'")
    more = {"at": "", "in": "", "of": "", "as": ""}
    for part in parts[2:]:
        word, _, value = part.partition(" ")
        if word not in more or not value:
            raise NotCited(f"'{part}' in '{title}' is none of at, in, of, as")
        more[word] = value
    contestants = tuple(name.strip() for name in parts[1].split(" / "))
    if len(contestants) > 2 or more["as"] not in ("", "percent"):
        raise NotCited(f"'{title}' names more than two contestants, or a form that is not 'percent'")
    return Cited(parts[0], contestants, more["at"], more["in"] or None, more["of"], more["as"] == "percent")


def number_of(cited: Cited, summary: Summary, y: str) -> float:
    """The number; not a number where nothing was measured."""
    x = point(cited, summary)
    if x is None:
        return math.nan
    if cited.of == "x":
        return float(x) if not isinstance(x, str) else math.nan
    values = [summary.value(name, x, cited.series, cited.of or y) for name in cited.contestants]
    return values[0] / values[1] if len(values) == 2 else values[0]


def point(cited: Cited, summary: Summary) -> float | str | None:
    """The point of the axis: a named one, or the first or last at which all of those named ran."""
    shared = [
        x for x in summary.xs(series=cited.series) if all(ran(summary, name, x, cited) for name in cited.contestants)
    ]
    if cited.at in ("first", "last", ""):
        return None if not shared else shared[0 if cited.at == "first" else -1]
    return next((x for x in shared if cited.at in (str(x), f"{x:g}" if not isinstance(x, str) else x)), None)


def ran(summary: Summary, contestant: str, x: float | str, cited: Cited) -> bool:
    """Has the contestant a number there?"""
    return summary.get(contestant, x, cited.series) is not None


def in_words(cited: Cited, value: float, y: str) -> str:
    """The number as it is printed.

    >>> in_words(Cited("e", ("a", "b")), 12.3, ""), in_words(Cited("e", ("a",)), 26_100_000, "events_per_second")
    ('12 times', '26 million')
    """
    if math.isnan(value) or math.isinf(value):
        return NOT_MEASURED
    of = cited.of or y
    if cited.percent or (len(cited.contestants) == 1 and of in SHARES):
        return f"{value:.0%}"
    if len(cited.contestants) == 2 and of != "x":
        return f"{value:,.0f} times" if value >= 10 else f"{value:.1f} times"
    if of.endswith("_ms"):
        return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
    if "seconds" in of and of != "events_per_second":
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    if of in ("peak_mb", "grown_mb"):
        return f"{value:,.0f} MB"
    if of in ("x", "matches"):
        return f"{value:,.0f}"
    return rounded(value)


def rounded(value: float) -> str:
    """Two digits and millions as a word.

    >>> rounded(1_640), rounded(248_300), rounded(3_440_000)
    ('1,600', '250,000', '3.4 million')
    """
    if value >= 1e6:
        return f"{value / 1e6:,.0f} million" if value >= 1e7 else f"{value / 1e6:.1f} million"
    digits = 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, digits):,.0f}" if value >= 10 else f"{value:.2g}"


def fill(text: str, results: Callable[[str], Summary | None]) -> str:
    """The text with every cited number as it was measured."""
    known = all_experiments()

    def replaced(found: re.Match[str]) -> str:
        _, page, anchor, title = found.groups()
        cited = read_title(title)
        if cited.experiment != anchor or cited.experiment not in known:
            raise NotCited(f"'{title}' leads to #{anchor}, or there is no such experiment")
        summary, y = results(cited.experiment), known[cited.experiment].y
        value = number_of(cited, summary, y) if summary is not None else math.nan
        return f'[{in_words(cited, value, y)}]({page}#{anchor} "{title}")'

    return LINK.sub(replaced, text)


def reader(folder: Path) -> Callable[[str], Summary | None]:
    """Results by name, each read once."""
    kept: dict[str, Summary | None] = {}

    def read(name: str) -> Summary | None:
        if name not in kept:
            found = read_results(name, folder)
            kept[name] = found[1] if found is not None else None
        return kept[name]

    return read


def fill_pages(folder: Path, places: Iterable[Path] | None = None) -> list[str]:
    """Writes the numbers into the pages; returns those that were not measured, page by page."""
    results, missing = reader(folder), []
    for path in places or pages():
        text = path.read_text(encoding="utf-8")
        filled = fill(text, results)
        if filled != text:
            path.write_text(filled, encoding="utf-8")
        missing += [f"{path.name}: {found[4]}" for found in LINK.finditer(filled) if found[1] == NOT_MEASURED]
    return missing
