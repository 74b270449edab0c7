"""A whole SELECT with MATCH_RECOGNIZE in it: each clause is run, and its result stands in its place as a view.

What surrounds the clauses goes to Spark as it is or, if it was written for another system, translated by sqlglot.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeAlias

from cepheid.errors import QueryError
from cepheid.language.match_recognize.dialects import DIALECTS, known_dialect
from cepheid.language.match_recognize.parse import clause_at
from cepheid.language.match_recognize.reader import Reader, Subquery
from cepheid.language.match_recognize.syntax import Clause
from cepheid.language.match_recognize.tokens import Kind, Token, tokens
from cepheid.runners.spark.row_values import MOST_VALUES, values_of
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
class FoundClause:
    """A clause in a statement: where its table begins, where the clause begins, and where it ends."""

    clause: Clause
    source: int
    keyword: int
    end: int


def query(spark: Session, statement: str, dialect: str = "spark", **options: object) -> DataFrame:
    """The result of a statement, with any number of MATCH_RECOGNIZE in it, as a Spark table.

    `dialect` is the system it was written for: spark, trino, snowflake, oracle, flink and others that sqlglot knows.
    `options` are those of each clause: max_matches, timeout and max_bytes of a task, and unsafe_functions.
    """
    from cepheid.runners.languages import match_events
    from cepheid.runners.rows import RowLanguage

    dialect = known_dialect(dialect)
    views: list[str] = []
    text = statement.strip().rstrip(";")
    try:
        while True:
            found = first_clause(text, dialect, partial(run_subquery, spark, text, dialect))
            if found is None:
                refuse_window_patterns(text, dialect)
                return spark.sql(translated(text, dialect))
            select = f"{_tables_before(text, found.keyword, dialect)}SELECT * FROM {text[found.source : found.keyword]}"
            source = spark.sql(translated(select, dialect))
            view = f"cepheid_rows_{uuid.uuid4().hex[:12]}"
            match_events(RowLanguage(found.clause), source, options).createOrReplaceTempView(view)
            views.append(view)
            text = f"{text[: found.source]} {view} {text[found.end :]}"
    finally:
        if type(spark).__module__.startswith("pyspark.sql.session"):  # over Connect the plan still needs them
            for view in views:
                spark.catalog.dropTempView(view)


def first_clause(text: str, dialect: str, subquery: Subquery | None = None) -> FoundClause | None:
    """The first MATCH_RECOGNIZE of a statement; its table holds no other one. `subquery` runs queries inside of it.

    >>> found = first_clause("SELECT * FROM t AS x MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true) m", "spark")
    >>> found.source, found.keyword, found.end
    (14, 21, 67)
    """
    words = tokens(text, escapes=DIALECTS[dialect].escapes)
    for number, token in enumerate(words):
        if _begins_clause(words, number, token):
            _refuse_recursion(text, words, number)
            source = _source(text, words, number)
            reader = Reader(text, words, number + 1, dialect)
            reader.subquery, reader.tables = subquery, _table_names(words, number)
            clause = clause_at(reader)
            return FoundClause(clause, source, token.start, reader.ahead(-1).end)
    return None


def refuse_window_patterns(text: str, dialect: str = "spark") -> None:
    """A row pattern in a window, `OVER (... PATTERN (A+) DEFINE ...)`, is another part of the standard."""
    words = tokens(text, escapes=DIALECTS[dialect].escapes)
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


def _table_names(words: list[Token], keyword: int) -> frozenset[str]:
    """The name of the table before a clause, or its alias: `FROM t`, `FROM (...) AS t`, `FROM (VALUES ...) t(a, b)`."""
    last = words[keyword - 1]
    if last.text == ")":
        last = words[max(_opening(words, keyword - 1) - 1, 0)]
    return frozenset({last.value.upper()}) if _is_name(last) else frozenset()


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


def _tables_before(text: str, position: int, dialect: str) -> str:
    """The WITH that a table at a position may refer to: the queries that are complete before it, at every level."""
    words = tokens(text, escapes=DIALECTS[dialect].escapes)
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


def run_subquery(spark: Session, text: str, dialect: str, word: str, span: tuple[int, int]) -> tuple[object, ...]:
    """The values of a query inside of a clause, such as `(SELECT max(x) FROM t)`: one, or all of them after IN.

    EXISTS gets one value for a query with rows and none for one without.
    """
    select = translated(f"{_tables_before(text, span[0], dialect)}{text[slice(*span)]}", dialect)

    def fail(message: str, hint: str | None = None) -> NoReturn:
        word = text[slice(*span)].split(maxsplit=1)[0]
        raise QueryError(message, text=text, start=span[0], end=span[0] + len(word), hint=hint, code="subquery")

    try:
        found = spark.sql(select)
        if word == "EXISTS":
            return tuple(found.limit(1).collect())
        if word == "IN":
            values = values_of(found.distinct().limit(MOST_VALUES + 1))
            if len(values) > MOST_VALUES:
                hint = "join the table before the clause, and use a column of the join"
                fail(f"a query after IN gives more than {MOST_VALUES:,} values", hint)
            return tuple(values)
        values = values_of(found.limit(2))
    except QueryError as error:
        fail(error.message, error.hint)
    except Exception as error:  # as Spark says it; it knows neither the labels nor the columns of the clause
        said = str(error).strip().splitlines()[0][:300]
        fail(
            f"Spark cannot run this query: {said}", "a query in a clause sees neither labels nor columns of the clause"
        )
    if len(values) > 1:
        fail(
            "a query inside MATCH_RECOGNIZE gives more than one row", "write max(...), for example, or IN (SELECT ...)"
        )
    return tuple(values) or (None,)
