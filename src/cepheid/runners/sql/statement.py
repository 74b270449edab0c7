"""A whole SELECT with MATCH_RECOGNIZE in it: each clause is run, and its result stands in its place as a view.

What surrounds the clauses goes to Spark as it is or, if it was written for another system, translated by sqlglot.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias

from cepheid.errors import CepheidError, QueryError
from cepheid.language.match_recognize.parse import clause_at
from cepheid.language.match_recognize.reader import Reader
from cepheid.language.match_recognize.syntax import Clause
from cepheid.language.match_recognize.tokens import Kind, Token, tokens
from cepheid.runners.sql.translate import translated

DataFrame: TypeAlias = Any  # importing PySpark for its name costs a second
Session: TypeAlias = Any

# Words that may stand right before a table, so that a name after them is no alias.
_BEFORE_TABLE = frozenset({"FROM", "JOIN", "LATERAL", "USING", "INTO"})
_KEYWORDS = _BEFORE_TABLE | {
    "SELECT",
    "WHERE",
    "ON",
    "AS",
    "WITH",
    "UNION",
    "ALL",
    "AND",
    "OR",
    "BY",
    "VALUES",
    "TABLE",
}


@dataclass(frozen=True)
class Found:
    """A clause in a statement: where its table begins, where the clause begins, and where it ends."""

    clause: Clause
    source: int
    keyword: int
    end: int


def query(spark: Session, statement: str, dialect: str = "spark", **limits: Any) -> DataFrame:
    """The result of a statement, with any number of MATCH_RECOGNIZE in it, as a Spark table.

    `dialect` is the system it was written for: spark, trino, snowflake, oracle, flink and others that sqlglot knows.
    `limits` are those of each clause: max_matches, timeout and max_bytes of a task.
    """
    from cepheid.runners.rows import match_clause

    dialect = dialect.lower()
    views: list[str] = []
    text = statement.strip().rstrip(";")
    try:
        while True:
            text = with_values_of_subqueries(spark, text, dialect)
            found = first_clause(text, dialect)
            if found is None:
                refuse_window_patterns(text)
                return spark.sql(translated(text, dialect))
            select = f"{_tables_before(text, found.keyword)}SELECT * FROM {text[found.source : found.keyword]}"
            source = spark.sql(translated(select, dialect))
            view = f"cepheid_rows_{uuid.uuid4().hex[:12]}"
            match_clause(source, found.clause, limits).createOrReplaceTempView(view)
            views.append(view)
            text = f"{text[: found.source]} {view} {text[found.end :]}"
    finally:
        if type(spark).__module__.startswith("pyspark.sql.session"):  # over Connect the plan still needs them
            for view in views:
                spark.catalog.dropTempView(view)


def first_clause(text: str, dialect: str) -> Found | None:
    """The first MATCH_RECOGNIZE of a statement; its table holds no other one.

    >>> found = first_clause("SELECT * FROM t AS x MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true) m", "spark")
    >>> found.source, found.keyword, found.end
    (14, 21, 67)
    """
    words = tokens(text)
    for number, token in enumerate(words):
        if _begins_clause(words, number, token):
            _refuse_recursion(text, words, number)
            source = _source(text, words, number)
            reader = Reader(text, words, number + 1, dialect)
            clause = clause_at(reader)
            return Found(clause, source, token.start, reader.ahead(-1).end)
    return None


def refuse_window_patterns(text: str) -> None:
    """A row pattern in a window, `OVER (... PATTERN (A+) DEFINE ...)`, is another part of the standard."""
    words = tokens(text)
    for number, token in enumerate(words[:-1]):
        if token.upper == "PATTERN" and words[number + 1].text == "(":
            closing = _closing(words, number + 1)
            if words[min(closing + 1, len(words) - 1)].upper in ("DEFINE", "SUBSET"):
                hint = "write the pattern in a MATCH_RECOGNIZE clause"
                raise _error(text, token, "a row pattern in a window is not possible", "window-function", hint)


def _refuse_recursion(text: str, words: list[Token], clause: int) -> None:
    """A clause inside of WITH RECURSIVE, which the standard forbids."""
    for level, token in enumerate(words[:clause]):
        if token.upper == "WITH" and words[level + 1].upper == "RECURSIVE":
            inside = _depth(words, clause) > _depth(words, level)
            if inside and not any(_depth(words, at) < _depth(words, level) for at in range(level, clause)):
                hint = "run the clause over the result of the recursion"
                message = "MATCH_RECOGNIZE in a recursive query"
                raise _error(text, words[clause], message, "nested-clause", hint)


def _depth(words: list[Token], at: int) -> int:
    """How many parentheses are open before a token."""
    symbols = [word.text for word in words[:at] if word.kind is Kind.SYMBOL]
    return symbols.count("(") - symbols.count(")")


def _error(text: str, token: Token, message: str, code: str, hint: str | None = None) -> QueryError:
    return QueryError(message, text=text, start=token.start, end=token.end, hint=hint, code=code)


def _begins_clause(words: list[Token], at: int, token: Token) -> bool:
    return token.upper == "MATCH_RECOGNIZE" and words[at + 1].text == "("


def _source(text: str, words: list[Token], keyword: int) -> int:
    """Where the table before a clause begins: a name, a query in parentheses or a table function, with its alias."""
    at = keyword - 1
    if at < 0:
        raise _error(text, words[keyword], "MATCH_RECOGNIZE without a table", "no-table", "write it after FROM t")
    if words[at].text == ")":
        opening = _opening(words, at)
        before = words[opening - 1] if opening else None
        if before is None or not _is_name(before):
            return _primary(words, at)
        if opening >= 2 and _may_precede_alias(words[opening - 2]):  # (VALUES ...) t(id, value)
            return _primary(words, opening - 3 if words[opening - 2].upper == "AS" else opening - 2)
        return _chain(words, opening - 1)  # a table function
    if not _is_name(words[at]):
        raise _error(text, words[keyword], "MATCH_RECOGNIZE without a table", "no-table", "write it after FROM t")
    first = _chain_index(words, at)
    if first == at and at >= 1 and _may_precede_alias(words[at - 1]):
        return _primary(words, at - 2 if words[at - 1].upper == "AS" else at - 1)
    return words[first].start


def _is_name(token: Token) -> bool:
    if token.kind is Kind.QUOTED:
        return True
    return token.kind is Kind.WORD and token.upper not in _KEYWORDS


def _may_precede_alias(token: Token) -> bool:
    return token.text == ")" or token.upper == "AS" or (_is_name(token) and token.upper not in _BEFORE_TABLE)


def _primary(words: list[Token], last: int) -> int:
    """Where the table that ends at a token begins."""
    if words[last].text != ")":
        return _chain(words, last)
    opening = _opening(words, last)
    if opening and _is_name(words[opening - 1]):
        return _chain(words, opening - 1)
    first = opening  # FROM VALUES (1, 2), (3, 4) AS t(a, b): the rows of a list
    while first >= 2 and words[first - 1].text == "," and words[first - 2].text == ")":
        first = _opening(words, first - 2)
    return words[first - 1].start if first and words[first - 1].upper == "VALUES" else words[opening].start


def _chain_index(words: list[Token], last: int) -> int:
    while last >= 2 and words[last - 1].text == ".":
        last -= 2
    return last


def _chain(words: list[Token], last: int) -> int:
    """Where a name with dots begins."""
    return words[_chain_index(words, last)].start


def _opening(words: list[Token], closing: int) -> int:
    depth = 0
    for index in range(closing, -1, -1):
        depth += (words[index].text == ")") - (words[index].text == "(") if words[index].kind is Kind.SYMBOL else 0
        if depth == 0:
            return index
    return 0


def _closing(words: list[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(words)):
        depth += (words[index].text == "(") - (words[index].text == ")") if words[index].kind is Kind.SYMBOL else 0
        if depth == 0:
            return index
    return len(words) - 1


def _tables_before(text: str, position: int) -> str:
    """The WITH that a table at a position may refer to: the queries that are complete before it, at every level."""
    words = tokens(text)
    levels = [0]
    for index, token in enumerate(words):
        if token.start >= position:
            break
        if token.kind is Kind.SYMBOL and token.text == "(":
            levels.append(index + 1)
        elif token.kind is Kind.SYMBOL and token.text == ")" and len(levels) > 1:
            levels.pop()
    named = [entry for level in levels for entry in _with_entries(text, words, level, position)]
    recursive = any(words[level].upper == "WITH" and words[level + 1].upper == "RECURSIVE" for level in levels)
    return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(named)} " if named else ""


def _with_entries(text: str, words: list[Token], level: int, position: int) -> list[str]:
    """The texts `name AS (...)` of a WITH that begins at a token, as far as they end before a position."""
    if words[level].upper != "WITH":
        return []
    at = level + (2 if words[level + 1].upper == "RECURSIVE" else 1)
    entries = []
    while words[at].kind in (Kind.WORD, Kind.QUOTED):
        start = words[at].start
        at += 1
        if words[at].text == "(":
            at = _closing(words, at) + 1
        if words[at].upper != "AS":
            break
        at = _closing(words, at + 1)
        if words[at].end > position:
            break
        entries.append(text[start : words[at].end])
        at += 1
        if words[at].text != ",":
            break
        at += 1
    return entries


def with_values_of_subqueries(spark: Session, text: str, dialect: str) -> str:
    """Queries inside of the first clause, such as `(SELECT max(x) FROM t)`, replaced by the values they give."""
    while True:
        words = tokens(text)
        start = next(
            (i for i, w in enumerate(words) if w.upper == "MATCH_RECOGNIZE" and words[i + 1].text == "("), None
        )
        if start is None:
            return text
        end = _closing(words, start + 1)
        inner = [i for i in range(start + 2, end) if words[i].text == "(" and words[i + 1].upper in ("SELECT", "WITH")]
        if not inner:
            return text
        opening = inner[0]
        closing = _closing(words, opening)
        nested = [word for word in words[opening:closing] if word.upper == "MATCH_RECOGNIZE"]
        if nested:
            hint = "run the inner clause in a query before"
            raise _error(text, nested[0], "MATCH_RECOGNIZE inside MATCH_RECOGNIZE", "nested-clause", hint)
        body = text[words[opening].end : words[closing].start]
        before = _tables_before(text, words[opening].start)
        try:
            first, value = _subquery_value(spark, words[opening - 1].upper, f"{before}{body}", dialect)
        except CepheidError:
            raise
        except Exception as error:  # as Spark says it; it knows neither the labels nor the columns of the clause
            said = str(error).strip().splitlines()[0][:300]
            hint = "a query in a clause sees neither labels nor columns of the clause"
            raise _error(text, words[opening + 1], f"Spark cannot run this query: {said}", "subquery", hint) from None
        begin = words[opening - 1].start if first else words[opening].start
        text = text[:begin] + value + text[words[closing].end :]


def _subquery_value(spark: Session, word: str, select: str, dialect: str) -> tuple[bool, str]:
    """What a query gives, as text: a value, or a list after IN, or true or false for EXISTS (whose word goes, too)."""
    rows = spark.sql(translated(select, dialect)).limit(10_000).collect()
    if word == "EXISTS":
        return True, "TRUE" if rows else "FALSE"
    if word == "IN":
        return False, f"({', '.join(literal(row[0]) for row in rows) or 'NULL'})"
    if len(rows) > 1:
        raise QueryError("a query inside MATCH_RECOGNIZE gives more than one row", code="subquery")
    return False, literal(rows[0][0]) if rows else "NULL"


def literal(value: Any) -> str:
    """A value as it is written in SQL.

    >>> literal("it's"), literal(None), literal(date(2026, 1, 31))
    ("'it''s'", 'NULL', "DATE '2026-01-31'")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + re.sub("'", "''", value) + "'"
    return str(value)
