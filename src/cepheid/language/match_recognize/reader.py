"""A cursor over tokens, with the errors that point at what was found and say what could stand there."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn, TypeAlias, TypeVar

from cepheid.errors import QueryError, closest
from cepheid.language.match_recognize.dialects import DIALECTS
from cepheid.language.match_recognize.syntax import Identifier, Scalar
from cepheid.language.match_recognize.tokens import Kind, Token
from cepheid.language.pattern import Span

_CLAUSES = ("PARTITION", "ORDER", "MEASURES", "PATTERN", "SUBSET", "DEFINE", "WITHIN", "AFTER", "OPTIONS")
# Words that no label, column or measure may be called without quotes: they would read as something else.
RESERVED = frozenset(
    {"AND", "AS", "BETWEEN", "CASE", "CAST", "ELSE", "END", "FALSE", "FROM", "IN", "IS", "LIKE", "NOT", "NULL", "OR"}
    | {"SELECT", "THEN", "TRUE", "WHEN", "WHERE"}
)

# Runs a query inside of a clause: the word before its parenthesis, and where it stands, to the values of its column.
T = TypeVar("T")
Subquery: TypeAlias = Callable[[str, Span], tuple[Scalar, ...]]


class Reader:
    """Reads tokens one after the other."""

    subquery: Subquery | None = None
    tables: frozenset[str] = frozenset()  # names of the table before the clause, in capitals

    def __init__(self, text: str, tokens: list[Token], position: int = 0, dialect: str = "spark") -> None:
        self.text = text
        self.tokens = tokens
        self.position = position
        self.dialect, self.overrides = dialect, DIALECTS[dialect]
        self.parameters: frozenset[str] = frozenset()  # of the lambdas around the place

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        if token.kind is not Kind.END:
            self.position += 1
        return token

    def at_words(self, *words: str) -> bool:
        """Do these keywords come next, in this order?"""
        return all(self.ahead(number).upper == word for number, word in enumerate(words))

    def take_words(self, *words: str) -> bool:
        """Takes these keywords if they come next."""
        if not self.at_words(*words):
            return False
        self.position += len(words)
        return True

    def at_symbol(self, symbol: str) -> bool:
        return self.token.kind is Kind.SYMBOL and self.token.text == symbol

    def take_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self.position += 1
        return True

    def listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more of what `read` reads, with commas between them."""
        found = [read()]
        while self.take_symbol(","):
            found.append(read())
        return tuple(found)

    def expect_words(self, *words: str) -> None:
        for word in words:
            if self.token.upper != word:
                self.unexpected(word)
            self.position += 1

    def expect_symbol(self, symbol: str) -> Token:
        if not self.at_symbol(symbol):
            self.unexpected(f"'{symbol}'")
        return self.advance()

    def identifier(self, what: str) -> Identifier:
        """A name, quoted or not."""
        token = self.token
        if token.kind is Kind.QUOTED:
            self.advance()
            return Identifier(token.value, True, token.span)
        if token.kind is not Kind.WORD or token.upper in RESERVED:
            self.unexpected(what)
        self.advance()
        return Identifier(token.text, False, token.span)

    def whole_number(self, what: str) -> int:
        if self.token.kind is not Kind.NUMBER or not self.token.text.isdigit():
            self.unexpected(what)
        return int(self.advance().text)

    def unexpected(self, *expected: str) -> NoReturn:
        """Raises an error at the token: these were expected instead."""
        token = self.token
        hint = f"expected {' or '.join(expected)}"
        if token.kind is Kind.END:
            self.fail("the clause ends too early", (token.start, token.end), "syntax", hint)
        guess = closest(token.upper, [word for word in expected if word.isupper()]) if len(token.upper) > 2 else None
        guess = guess or next(iter(get_close_matches(token.upper, _CLAUSES, n=1, cutoff=0.8)), None)
        before = self.tokens[self.position - 1] if self.position else token
        if guess is not None:
            hint = f"did you mean {guess}?"
        elif token.kind is before.kind is Kind.WORD and not {token.upper, before.upper} & RESERVED:
            hint += f"; write a name with a space in backquotes: `{before.text} {token.text}`"
        self.fail(f"unexpected '{token.text[:40]}'", token.span, "syntax", hint)

    def fail(self, message: str, span: Span, code: str, hint: str | None = None) -> NoReturn:
        raise QueryError(message, text=self.text, start=span[0], end=span[1], hint=hint, code=code)
