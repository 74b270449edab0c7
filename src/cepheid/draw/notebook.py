"""What a notebook shows of a query: its text and its automaton, as one piece of HTML without scripts."""

from __future__ import annotations

from html import escape

from cepheid.draw.automaton import automaton_svg
from cepheid.language import syntax as s
from cepheid.language.printing import to_text

# Colours and fonts are the notebook's, in light and dark; only what must not happen is red, as in reports.
_STYLE = (
    "<style>.cepheid pre { font-family: ui-monospace, monospace; white-space: pre; overflow-x: auto } "
    ".cepheid .negative { fill: #c0392b } .cepheid .drawing { overflow-x: auto } "
    "@media (prefers-color-scheme: dark) { .cepheid .negative { fill: #ff8a7a } }</style>"
)


def query_html(query: s.QuerySyntax, below: str = "") -> str:
    """The text of a query, its automaton, and what else there is to say, which is plain text.

    >>> from cepheid.language.sase.parse import parse
    >>> shown = query_html(parse("PATTERN SEQ(`<b>` a, B b) WITHIN 5"), below="a < b")
    >>> "<b>" in shown, "&lt;b&gt;" in shown, "<pre>a &lt; b</pre>" in shown
    (False, True, True)
    """
    drawing = f'<div class="drawing">{automaton_svg(query)}</div>'
    after = f"<pre>{escape(below)}</pre>" if below else ""
    return f'<div class="cepheid">{_STYLE}<pre>{escape(to_text(query))}</pre>{drawing}{after}</div>'
