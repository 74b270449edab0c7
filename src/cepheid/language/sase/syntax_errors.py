"""What to say when a text does not fit the grammar: where, what was found, and what could stand there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from lark import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from cepheid.errors import QueryError, closest

_READABLE = {
    "NAME": "a name",
    "WORD": "a name",
    "STRING": "a 'string'",
    "NUMBER": "a number",
    "COMPARE": "a comparison",
    "HEAD": "PATTERN",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "DOT": "'.'",
    "EQUALS": "'='",
    "PLUS": "'+'",
    "BANG": "'!'",
    "OUTPUT_MODE": "an output mode",
    "$END": "the end of the query",
}
# Possible in many places, and seldom what the writer forgot.
_UNMENTIONED = {"MINUS", "TIMES", "SLASH", "MODULO", "STRATEGY", "BRACKETS", "DOTS", "QUOTED", "PERCENT", "SEMICOLON"}
_UNMENTIONED |= {"_NOT_IN", "_IS", "_FROM", "_UNTIL"}
_UNMENTIONED |= {"DURATION", "CAST", "_CASE", "LIKE", "WHEN", "THEN", "ELSE", "END"}
_CLAUSES = {"WHERE", "WITHIN", "THRESHOLD", "CONFIDENCE", "FORECAST", "RETURN", "OUTPUT", "DEFINE"}
_KEYWORDS = ["PATTERN", "EVENT", "SEQUENCE", "SEQ", "WHERE", "WITHIN", "THRESHOLD", "CONFIDENCE", "RETURN", "OUTPUT"]
_KEYWORDS += ["FORECAST", "DEFINE", "UNTIL", "AND", "OR", "NOT", "BETWEEN", "NULL", "LIKE", "ILIKE", "RLIKE"]
_NAME = re.compile(r"[^\W\d]\w*")
_SPACED_COLUMN = re.compile(r"[.\[,]\s*([^\W\d]\w*)\s+\Z")  # after a dot or in [...]
_SPACED_TYPE = re.compile(r"[(,|]\s*([^\W\d]\w* [^\W\d]\w*)\s+\Z")
_SPACED_BEFORE_AS = re.compile(r"\.([^\W\d]\w* [^\W\d]\w*)\s+\Z")
_MAX_EXPECTED = 7
_MAX_FOUND = 40  # characters of the offending word that the message repeats

# An opening that the lexer could not find the end of: what it opens, and the code of the error.
_OPENINGS = {
    "'": ("a string", "open-string"),
    '"': ("a string", "open-string"),
    "`": ("a quoted name", "open-name"),
    "/*": ("a comment", "open-comment"),
}


def syntax_error(text: str, error: UnexpectedInput) -> QueryError:
    """The parser's complaint as an error that points into the text."""
    found: str | None = None
    expected: Collection[str]
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start, found = error.token.start_pos or 0, str(error.token)
        expected = error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        start, expected = error.pos_in_stream or 0, error.allowed or ()
        found = _word_at(text, start)
    else:
        start = len(text.rstrip())
        expected = error.accepts or error.expected if isinstance(error, UnexpectedToken) else ()
    unclosed = _unclosed(text, start, found)
    if unclosed is not None:
        return unclosed
    end = start + max(1, len(found or ""))
    message = f"unexpected '{_shortened(found)}'" if found else "the query ends too early"
    hint = (
        _statement(found, text[:start])
        or _spaced(found, text[:start], text[end:])
        or _misspelt(found, text[:start])
        or _chained(text, start, found)
        or _expected(expected)
    )
    return QueryError(message, text=text, start=start, end=end, hint=hint, code="syntax")


def _unclosed(text: str, start: int, found: str | None) -> QueryError | None:
    """A quote or comment without its end, if that is what stopped the parser.

    The parser may have taken the slash of an open comment for a division, and then stumbles over the star.
    """
    at = start - 1 if text[max(start - 1, 0) : start + 1] == "/*" else start
    opening = "/*" if text.startswith("/*", at) else found
    if opening not in _OPENINGS or (opening == "/*" and "*/" in text[at + 2 :]):
        return None
    what, code = _OPENINGS[opening]
    hint = f"close it with {'*/' if opening == '/*' else opening}"
    return QueryError(f"{what} is never closed", text=text, start=at, end=at + len(opening), code=code, hint=hint)


def _statement(found: str | None, before: str) -> str | None:
    """SQL instead of a query."""
    if before.strip() or (found or "").upper() not in ("SELECT", "WITH"):
        return None
    whole = "run a whole SQL statement, with MATCH_RECOGNIZE in it, with cepheid.sql.query(spark, statement)"
    return f"{whole}; a query begins with PATTERN, a clause alone with MATCH_RECOGNIZE"


def _spaced(found: str | None, before: str, after: str) -> str | None:
    """A name with a space in it: of a column, as in a.unit price, or of a type, as in SEQ(Log In a)."""
    if found is None or _NAME.fullmatch(found) is None:
        return None
    if found.upper() == "AS" and (both := _SPACED_BEFORE_AS.search(before)):
        return f"write a name with a space in backquotes: `{both[1]}`"
    column = _SPACED_COLUMN.search(before)
    if column is not None and difflib.get_close_matches(found.upper(), _KEYWORDS, n=1, cutoff=0.65):
        return None
    kind = _SPACED_TYPE.search(before) if re.match(r"\s*[,)]", after) else None
    name = f"{column[1]} {found}" if column is not None else kind[1] if kind is not None else None
    return None if name is None else f"write a name with a space in backquotes: `{name}`"


def _misspelt(found: str | None, before: str) -> str | None:
    if not found or len(found) <= 2 or not found.isidentifier():
        return None
    guess = closest(found.upper(), [word for word in _KEYWORDS if word != found.upper()])
    if guess is not None:
        return f"did you mean {guess}?"
    if found.upper() in _CLAUSES and before.rstrip().endswith((",", "(")):
        return f"write `{found}` in backquotes if it is a name"
    return None


def _chained(text: str, start: int, found: str | None) -> str | None:
    """A second comparison sign, as in 1 < a.x < 3, or one inside an equivalence test, as in [x > 3]."""
    tested = re.search(r"\[\s*(?:[^][]*,)?\s*([\w.`]+)\s*$", text[:start])
    if tested and found in ("<", "<=", ">", ">=", "≤", "≥", "!=", "<>", "≠"):
        return f"[...] tests for equal values; write the comparison with a variable: a.{tested.group(1)} {found} ..."
    if found in ("<", "<=", ">", ">=", "=", "==", "≤", "≥") and text[:start].rstrip()[-1:].isalnum():
        return "join two comparisons with AND, or write BETWEEN"
    return None


def _expected(expected: Collection[str]) -> str | None:
    names = sorted({_READABLE.get(name, name.strip("_")) for name in expected if name not in _UNMENTIONED})
    return f"expected {', '.join(names[:_MAX_EXPECTED])}" if names else None


def _shortened(found: str) -> str:
    return found if len(found) <= _MAX_FOUND else found[:_MAX_FOUND] + "…"


def _word_at(text: str, start: int) -> str:
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[start : max(end, start + 1)]
