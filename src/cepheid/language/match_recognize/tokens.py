"""SQL text as tokens: enough to find clauses in a statement, and to parse one."""

from __future__ import annotations

import re
import sys
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
    | (?P<symbol>\{-|-\}|<=>|<>|!=|<=|>=|==|\|\||//|::|=>|->>|->|.)
    """,
    re.VERBOSE,
)
# A string with Spark's escapes, as statements around a clause have them; r'...' has none.
_ESCAPED = re.compile(r"""'(?:[^'\\]|''|\\(?s:.))*'|"(?:[^"\\]|""|\\(?s:.))*\"""")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|(?s:.))")
_MEANINGS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_OPENINGS = {"'": ("a string", "open-string"), '"': ("a quoted name", "open-name"), "`": ("a quoted name", "open-name")}


def tokens(text: str, start: int = 0, escapes: bool = False) -> list[Token]:
    """The tokens of a text from an offset on, ending with one of kind END; comments and spaces are left out.

    With `escapes`, a backslash in a string means what it means in Spark's SQL; inside of a clause it is a character as
    any other, as in the standard.

    >>> [token.text for token in tokens("A.x >= 'it''s' -- why")]
    ['A', '.', 'x', '>=', "'it''s'", '']
    """
    result: list[Token] = []
    position = start
    clause = 0  # how many parentheses of a clause are open
    while position < len(text):
        if text.startswith("/*", position) and "*/" not in text[position + 2 :]:
            raise _unclosed(text, position, "a comment", "open-comment", 2)
        raw = bool(result) and result[-1].upper == "R" and result[-1].end == position
        escaped = _ESCAPED.match(text, position) if escapes and not clause and not raw else None
        matched = escaped or _TOKEN.match(text, position)
        if matched is None:  # only a line break is no symbol, and that is a space
            raise QueryError("an unexpected character", text=text, start=position, end=position + 1)
        written, group = matched.group(), matched.lastgroup
        if group == "symbol" and written in _OPENINGS:
            raise _unclosed(text, position, *_OPENINGS[written], 1)
        if escaped is not None:
            kind = Kind.STRING if written[0] == "'" else Kind.QUOTED
            result.append(Token(kind, written, _unescaped(written), position, matched.end()))
        elif group != "space":
            result.append(Token(_KINDS[str(group)], written, _value(str(group), written), position, matched.end()))
            if clause or (written == "(" and len(result) > 1 and result[-2].upper == "MATCH_RECOGNIZE"):
                clause += (written == "(") - (written == ")")
        position = matched.end()
    result.append(Token(Kind.END, "", "", len(text), len(text)))
    return result


_KINDS = {"string": Kind.STRING, "quoted": Kind.QUOTED, "number": Kind.NUMBER, "word": Kind.WORD, "symbol": Kind.SYMBOL}


def _value(group: str, written: str) -> str:
    if group in ("string", "quoted"):
        quote = written[0]
        return written[1:-1].replace(quote * 2, quote)
    return written


def _unescaped(written: str) -> str:
    """The value of a string with Spark's escapes."""
    quote = written[0]
    value = written[1:-1].replace(quote * 2, quote)

    def meaning(found: re.Match[str]) -> str:
        code = found.group(1)
        if len(code) == 1:
            return _MEANINGS.get(code, code)
        point = int(code[1:], 16) if code[0] in "uU" else int(code, 8)
        return chr(point) if point <= sys.maxunicode else code

    return _ESCAPE.sub(meaning, value)


def _unclosed(text: str, at: int, what: str, code: str, length: int) -> QueryError:
    hint = f"close it with {'*/' if length == 2 else text[at]}"
    return QueryError(f"{what} is never closed", text=text, start=at, end=at + length, code=code, hint=hint)
