"""SQL text as tokens: enough to find clauses in a statement, and to parse one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from cepheid.errors import QueryError
from cepheid.language.pattern import Span


class Kind(Enum):
    """What a token is."""

    WORD = "a name"
    QUOTED = "a quoted name"
    STRING = "a 'string'"
    NUMBER = "a number"
    SYMBOL = "a symbol"
    END = "the end of the text"


@dataclass(frozen=True)
class Token:
    """A piece of the text: `text` as written, `value` without quotes."""

    kind: Kind
    text: str
    value: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return (self.start, self.end)

    @property
    def upper(self) -> str:
        """The word in capitals, as keywords are compared; quoted names are never keywords."""
        return self.text.upper() if self.kind is Kind.WORD else ""


_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --[^\n]* | /\*(?s:.*?)\*/)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*`)
    | (?P<number>(?:\d[\d_]*(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>\{-|-\}|<=>|<>|!=|<=|>=|==|\|\||::|=>|->|.)
    """,
    re.VERBOSE,
)
_OPENINGS = {"'": ("a string", "open-string"), '"': ("a quoted name", "open-name"), "`": ("a quoted name", "open-name")}


def tokens(text: str, start: int = 0) -> list[Token]:
    """The tokens of a text from an offset on, ending with one of kind END; comments and spaces are left out.

    >>> [token.text for token in tokens("A.x >= 'it''s' -- why")]
    ['A', '.', 'x', '>=', "'it''s'", '']
    """
    result = []
    position = start
    while position < len(text):
        if text.startswith("/*", position) and "*/" not in text[position + 2 :]:
            raise _unclosed(text, position, "a comment", "open-comment", 2)
        matched = _TOKEN.match(text, position)
        if matched is None:  # only a line break is no symbol, and that is a space
            raise QueryError("a character that means nothing here", text=text, start=position, end=position + 1)
        written, group = matched.group(), matched.lastgroup
        if group == "symbol" and written in _OPENINGS:
            raise _unclosed(text, position, *_OPENINGS[written], 1)
        if group != "space":
            result.append(Token(_KINDS[str(group)], written, _value(str(group), written), position, matched.end()))
        position = matched.end()
    result.append(Token(Kind.END, "", "", len(text), len(text)))
    return result


_KINDS = {
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}


def _value(group: str, written: str) -> str:
    if group in ("string", "quoted"):
        quote = written[0]
        return written[1:-1].replace(quote * 2, quote)
    return written


def _unclosed(text: str, at: int, what: str, code: str, length: int) -> QueryError:
    hint = f"close it with {'*/' if length == 2 else text[at]}"
    return QueryError(f"{what} that is never closed", text=text, start=at, end=at + length, code=code, hint=hint)
