"""The drawings of the documentation, made from what queries find: `python docs/site/drawings.py` writes them."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pandas as pd

import cepheid

IMAGES = Path(__file__).parent.parent / "img"
INK, SOFT, LINE, PAPER, ACCENT, PALE = "#1f2937", "#5b6472", "#c9ced6", "#ffffff", "#3949ab", "#e8eaf6"
USERS = {"ann": "#3949ab", "bob": "#b45309"}

STRATEGIES = {
    "strict_contiguity": "The next event of the stream. b3 is next to a2. b4 is not next to a1.",
    "partition_contiguity": "The next event of the same user. For ann, b4 is next to a1. x6 lies between a5 and b7.",
    "skip_till_next_match": "The next event that fits. From a5 the run skips x6, which does not fit, and takes b7.",
    "skip_till_any_match": "Every event that fits. From a1 the run may skip b4 and take b7. This is the default.",
}


def text(x: float, y: float, words: str, size: int = 13, fill: str = INK, extra: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" {extra}>{escape(words)}</text>'


def sheet(width: int, height: int, title: str, parts: list[str]) -> str:
    """An SVG with a white ground, so that it can be read on a dark page and in print."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif">'
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", ground, *parts, "</svg>"]) + "\n"


def glyph(x: float, y: float, label: str, fill: str, square: bool) -> str:
    """An event: a circle or a square with its name in it."""
    if square:
        shape = f'<rect x="{x - 14:g}" y="{y - 14:g}" width="28" height="28" rx="4" fill="{fill}"/>'
    else:
        shape = f'<circle cx="{x:g}" cy="{y:g}" r="15" fill="{fill}"/>'
    return shape + text(x, y + 4.5, label, 13, "#ffffff", 'text-anchor="middle" font-weight="600"')


def strategies() -> str:
    """What each selection strategy matches on the same seven events."""
    events = pd.DataFrame(
        {
            "ts": [1, 2, 3, 4, 5, 6, 7],
            "type": ["A", "A", "B", "B", "A", "X", "B"],
            "user": ["ann", "bob", "bob", "ann", "ann", "ann", "ann"],
        }
    )
    left, step, row, top = 40, 86, 146, 78
    parts = [
        text(24, 32, "PATTERN SEQ(A a, B b) WHERE <strategy> { [user] }", 16, INK, 'font-weight="600"'),
        text(24, 54, "Seven events in order of time. Circles are user ann, squares are user bob.", 13, SOFT),
    ]
    seen: set[tuple[int, int]] = set()
    for number, (strategy, why) in enumerate(STRATEGIES.items()):
        y = top + row * number + 78
        parts.append(text(24, y - 72, strategy, 15, ACCENT, 'font-weight="600"'))
        parts.append(f'<line x1="24" y1="{y}" x2="656" y2="{y}" stroke="{LINE}" stroke-width="2"/>')
        found = cepheid.match(events, f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ [user] }}")
        pairs = sorted((a["ts"], b["ts"]) for a, b in zip(found["a"], found["b"], strict=True))
        for begin, end in pairs:
            x1, x2 = left + step * (begin - 0.6), left + step * (end - 0.6)
            rise = 26 + 10 * (end - begin - 1) / 1.5
            new = (begin, end) not in seen
            style = f'stroke="{ACCENT if new else SOFT}" stroke-width="{3 if new else 1.6}"'
            parts.append(
                f'<path d="M{x1:g},{y - 16:g} C{x1:g},{y - 16 - rise:g} {x2:g},{y - 16 - rise:g} {x2:g},{y - 17:g}" '
                f'fill="none" {style}/>'
            )
        for event in events.itertuples():
            x = left + step * (event.ts - 0.6)
            label = f"{event.type.lower()}{event.ts}"
            parts.append(glyph(x, y, label, USERS[event.user], event.user == "bob"))
        names = ", ".join(f"(a{begin}, b{end})" for begin, end in pairs)
        count = f"{len(pairs)} match{'es' * (len(pairs) > 1)}: {names}"
        parts.append(text(656, y - 72, count, 13, INK, 'text-anchor="end"'))
        parts.append(text(24, y + 36, why, 13, SOFT))
        seen |= set(pairs)
    return sheet(680, top + row * 4 - 8, "What each of the four selection strategies matches on the same events", parts)


def first_match() -> str:
    """A table, a pattern and its match on a timeline, for the first page."""
    events = cepheid.examples.shoplifting()
    query = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 12 hours"
    stolen = {event["tag"] for event in cepheid.match(events, query)["a"]}
    some = events[events["tag"].isin([6, 7])]
    parts = [text(24, 34, "1  Events", 15, ACCENT, 'font-weight="600"')]
    for column, name in zip((24, 104, 192), ("ts", "type", "tag"), strict=True):
        parts.append(text(column, 62, name, 12, SOFT, 'font-weight="600"'))
    parts.append(f'<line x1="24" y1="70" x2="226" y2="70" stroke="{LINE}"/>')
    for number, event in enumerate(some.itertuples()):
        y = 90 + 22 * number
        if event.tag in stolen:
            parts.append(f'<rect x="18" y="{y - 15}" width="212" height="21" rx="3" fill="{PALE}"/>')
        for column, value in zip((24, 104, 192), (f"{event.ts:%H:%M:%S}", event.type, str(event.tag)), strict=True):
            parts.append(text(column, y, value, 13))
    parts.append(text(268, 34, "2  Pattern", 15, ACCENT, 'font-weight="600"'))
    lines = (
        "PATTERN SEQ(Shelf a,",
        "            !(Register b),",
        "            Exit c)",
        "WHERE [tag]",
        "WITHIN 12 hours",
    )
    mono = 'font-family="ui-monospace, Consolas, monospace" xml:space="preserve"'
    parts += [text(268, 66 + 22 * number, line, 13, INK, mono) for number, line in enumerate(lines)]
    parts.append(text(268, 190, "Taken from a shelf, not paid, carried out.", 12, SOFT))
    parts.append(text(556, 34, "3  Matches", 15, ACCENT, 'font-weight="600"'))
    parts += timeline(some, stolen)
    return sheet(880, 222, "A table of events, a pattern, and the match that it finds, on a timeline", parts)


def timeline(some: pd.DataFrame, stolen: set[int]) -> list[str]:
    parts = []
    begin, span = some["ts"].min(), (some["ts"].max() - some["ts"].min()).total_seconds()
    for lane, (tag, group) in enumerate(some.groupby("tag")):
        y, found = 84 + 68 * lane, tag in stolen
        places = [620 + 220 * (ts - begin).total_seconds() / span for ts in group["ts"]]
        parts.append(text(556, y + 4.5, f"tag {tag}", 13, INK, 'font-weight="600"' if found else ""))
        style = f'stroke="{ACCENT}" stroke-width="4"' if found else f'stroke="{LINE}" stroke-width="2"'
        parts.append(f'<line x1="{places[0]:g}" y1="{y}" x2="{places[-1]:g}" y2="{y}" {style}/>')
        for x, kind in zip(places, group["type"], strict=True):
            fill = ACCENT if found else "#9aa3b2"
            parts.append(f'<circle cx="{x:g}" cy="{y}" r="7" fill="{fill}"/>')
            low = kind == "Register"
            parts.append(text(x, y + 25 if low else y - 14, kind, 12, SOFT, 'text-anchor="middle"'))
        if found:
            parts.append(text(places[0], y + 25, "a match", 12, ACCENT, 'font-weight="600"'))
        else:
            parts.append(text(places[-1] + 16, y + 4.5, "no match", 12, SOFT))
    return parts


DRAWINGS = {"strategies.svg": strategies, "first-match.svg": first_match}

if __name__ == "__main__":
    for name, draw in DRAWINGS.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
