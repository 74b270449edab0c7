"""PATTERN: concatenation, alternation, quantifiers, PERMUTE, exclusion, anchors (ISO/IEC 19075-5, section 4.14)."""

from __future__ import annotations

from cepheid.language import pattern as p
from cepheid.language.match_recognize.reader import Reader
from cepheid.language.match_recognize.tokens import Kind

MAX_REPETITIONS = 2**31 - 1
MAX_PERMUTED = 8  # parts of PERMUTE; all their orders are tried
MAX_DEPTH = 100  # groups inside groups


def parse_pattern(reader: Reader, depth: int = 0) -> p.Pattern:
    """A pattern up to the parenthesis that closes it, which is left unread."""
    start = reader.token.start
    if depth > MAX_DEPTH:
        reader.fail("groups are nested too deeply", reader.token.span, "too-deep")
    parts = [_sequence(reader, depth)]
    while reader.take_symbol("|"):
        parts.append(_sequence(reader, depth))
    return parts[0] if len(parts) == 1 else p.Choice(tuple(parts), (start, reader.ahead(-1).end))


def _sequence(reader: Reader, depth: int) -> p.Pattern:
    start = reader.token.start
    parts = []
    while not any(reader.at_symbol(symbol) for symbol in (")", "|", ",", "-}")):
        parts.append(_quantified(reader, depth))
    if not parts and reader.overrides.empty_choices:
        return p.Empty((start, start))
    if not parts:
        reader.unexpected("a label", "'('", "PERMUTE")
    return parts[0] if len(parts) == 1 else p.Sequence(tuple(parts), (start, reader.ahead(-1).end))


def _quantified(reader: Reader, depth: int) -> p.Pattern:
    start = reader.token.start
    part = _primary(reader, depth)
    bounds = _bounds(reader)
    if bounds is None:
        return part
    greedy = not reader.take_symbol("?")
    repeated = p.Repeat(part, bounds[0], bounds[1], greedy, (start, reader.ahead(-1).end))
    if any(reader.at_symbol(symbol) for symbol in "*+?{"):
        reader.fail("a second quantifier", reader.token.span, "second-quantifier", "put the first in parentheses")
    return repeated


def _bounds(reader: Reader) -> tuple[int, int | None] | None:
    """The numbers of a quantifier, if one comes next."""
    for symbol, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
        if reader.take_symbol(symbol):
            return bounds
    if not reader.at_symbol("{"):
        return None
    opening = reader.advance()
    least = reader.whole_number("a number") if reader.token.kind is Kind.NUMBER else None
    most: int | None
    if reader.take_symbol(","):
        most = reader.whole_number("a number") if reader.token.kind is Kind.NUMBER else None
    elif least is None:
        reader.unexpected("a number", "','")
    else:
        most = least
    span = (opening.start, reader.token.end)
    reader.expect_symbol("}")
    if max(least or 0, most or 0) > MAX_REPETITIONS:
        reader.fail(f"at most {MAX_REPETITIONS} repetitions are allowed", span, "quantifier-range")
    if most is not None and most < max(least or 0, 1):
        if most == 0:
            reader.fail("at most 0 repetitions", span, "quantifier-range", "leave the part out")
        reader.fail("the lower bound is above the upper one", span, "quantifier-range", f"write {{{most},{least}}}")
    return least or 0, most


def _primary(reader: Reader, depth: int) -> p.Pattern:
    token = reader.token
    if reader.take_symbol("^"):
        return p.Start(token.span)
    if reader.take_symbol("$"):
        return p.End(token.span)
    if reader.take_symbol("("):
        if reader.at_symbol(")"):
            return p.Empty((token.start, reader.advance().end))
        inner = parse_pattern(reader, depth + 1)
        reader.expect_symbol(")")
        return inner
    if reader.take_symbol("{-"):
        inner = parse_pattern(reader, depth + 1)
        return p.Excluded(inner, (token.start, reader.expect_symbol("-}").end))
    if reader.at_words("PERMUTE") and reader.ahead().text == "(":
        return _permute(reader, depth)
    if token.kind is Kind.SYMBOL and token.text in "*+?{":
        reader.fail("a quantifier without a part before it", token.span, "syntax", "write a label before it")
    label = reader.identifier("a label")
    return p.Single(label.canonical, label.span)


def _permute(reader: Reader, depth: int) -> p.Pattern:
    start = reader.advance().start
    reader.expect_symbol("(")
    parts = reader.listed(lambda: parse_pattern(reader, depth + 1))
    span = (start, reader.expect_symbol(")").end)
    if len(parts) > MAX_PERMUTED:
        reader.fail(f"PERMUTE takes at most {MAX_PERMUTED} parts", span, "too-many-orders")
    return parts[0] if len(parts) == 1 else p.AnyOrder(parts, span)
