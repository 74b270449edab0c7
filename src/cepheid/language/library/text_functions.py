"""Functions of text, with Spark's names and rules.

Regular expressions are RE2's: matched in time linear in the text, so no pattern can hang a stream. Java's, which Spark
uses, are close but not the same; a pattern goes to Spark only if both are known to read it alike (`java_pattern`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library.function import INT, LISTS, STRING, Function, named_twice
from cepheid.language.library.json_texts import get_json_object, json_value, wrong_path
from cepheid.language.library.text_parts import joined, padded, repeated, substring
from cepheid.language.schema import PLAIN, DataType

_TEXT, _BOOL, _WHOLE = DataType.STRING, DataType.BOOL, DataType.INT
_ESCAPE = "\\"
# What RE2 and Java read alike: plain ASCII, escapes, anchors, groups, repetition; a bracket is one character here.
# Both patterns are possessive (`*+`, `++`): a query's text is not trusted, and they never go back.
_ALIKE = re.compile(
    r"(?>[A-Za-z0-9 _,:;@/#=<>!~'\"%&\x00-]|\\[dDwW.^$*+?()\[\]{}|\\/-]|[.^|]|\((?!\?)|\(\?:|\)"
    r"|[*+?]\??|\{\d+(?:,\d*)?\})*+\$?\Z"
)
_BRACKET = re.compile(r"\[\^?(?>[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 _.,:;@/#=<>!~'\"%*+?(){}|$]|\\[dDwW\]\[\\^-])++\]")


def _one(compute: Any, text: str, *arguments: object) -> Any:
    """An Arrow function of one text."""
    return compute(pa.array([text], pa.string()), *arguments)[0].as_py()


# --- LIKE -------------------------------------------------------------------------------------------------------------


def like_parts(pattern: str, escape: str = _ESCAPE) -> list[str | None]:
    """The characters of a LIKE pattern: None for `%`, the empty text for `_`, else the character itself.

    >>> like_parts("a%_" + chr(92) + "%")
    ['a', None, '', '%']
    """
    parts: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(next(characters))
        else:
            parts.append(None if character == "%" else "" if character == "_" else character)
    return parts


def like(text: str, pattern: str, escape: str = _ESCAPE) -> bool:
    """Is the text like the pattern? `%` stands for any characters, `_` for one, a backslash takes them as they are.

    >>> like("anna", "a%a"), like("anna", "_nn"), like("50%", "50" + chr(92) + "%")
    (True, False, True)
    """
    reached = {0}  # how many parts of the pattern the characters so far may have used up
    parts = like_parts(pattern, escape)

    def skipping(places: set[int]) -> set[int]:
        found = set(places)
        for place in sorted(places):
            while place < len(parts) and parts[place] is None:
                place += 1
                found.add(place)
        return found

    reached = skipping(reached)
    for character in text:
        stayed = {place for place in reached if place < len(parts) and parts[place] is None}
        moved = {p + 1 for p in reached if p < len(parts) and parts[p] is not None and parts[p] in ("", character)}
        reached = skipping(stayed | moved)
    return len(parts) in reached


def wrong_like(constants: Sequence[object]) -> str | None:
    """What is wrong with a LIKE pattern, which may have its own escape character behind it."""
    pattern, escape = constants[0], constants[1] if len(constants) > 1 else _ESCAPE
    if not isinstance(pattern, str):
        return "a pattern is a text"
    named, other = ("a backslash", "backslash") if escape == _ESCAPE else (f"'{escape}'", "one")
    escaped = False
    for character in pattern:
        if escaped and character not in ("%", "_", escape):
            return f"'{escape}{character}' in a LIKE pattern: {named} stands before %, _ or another {other}"
        escaped = character == escape and not escaped
    return f"a LIKE pattern ends with '{escape}'" if escaped else None


def _by_backslash(pattern: str, escape: str) -> str:
    """A LIKE pattern with backslashes in place of its own escape character.

    >>> print(_by_backslash("a!%b!!_", "!"), _by_backslash("%", "!"))
    a\\%b!_ %
    """
    if escape == _ESCAPE:
        return pattern
    found, escaped = "", False
    for character in pattern:
        if character == escape and not escaped:
            escaped = True
            continue
        special = character == _ESCAPE or (escaped and character in "%_")
        found, escaped = f"{found}{_ESCAPE if special else ''}{character}", False
    return found


def ilike(text: str, pattern: str) -> bool:
    """LIKE without regard to case."""
    return like(text.lower(), pattern.lower())


def _lowered(column: object) -> Any:
    """Lower case as Python has it: Arrow's differs in rare letters."""
    if isinstance(column, pa.Scalar):
        return pa.scalar(column.as_py().lower(), pa.string()) if column.is_valid else column
    coded = pc.dictionary_encode(column)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return pa.array([text.lower() for text in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


# --- regular expressions ----------------------------------------------------------------------------------------------


def wrong_regex(constants: Sequence[object]) -> str | None:
    """What is wrong with a regular expression."""
    pattern = constants[0]
    if not isinstance(pattern, str):
        return "a regular expression is a text"
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None


def java_pattern(pattern: str) -> str | None:
    """The same pattern for Java's regular expressions, or None where that is not known to be the same.

    >>> java_pattern("^a.c$"), java_pattern(chr(92) + "s+")
    ('(?d)^a.c\\\\z', None)
    """
    outside = _BRACKET.sub("\x00", pattern)
    if "\x00" in pattern or not _ALIKE.match(outside):
        return None
    if re.search(r"\\d-|-\\d|\\w-|-\\w", pattern) or "^" in pattern[1:].replace("[^", "").replace("\\^", ""):
        return None
    # Java goes back and forth: without repeated groups and with two repetitions at most, time stays bounded.
    if re.search(r"\)[*+{]", outside) or len(re.findall(r"(?<!\\)[*+]|\{\d+,", outside)) > 2:
        return None
    ends = pattern.endswith("$") and not pattern.endswith("\\$")
    return "(?d)" + (pattern[:-1] + "\\z" if ends else pattern)  # (?d): only a newline ends a line, as in RE2


def _spark_rlike(F: Any, text: object, pattern: str) -> Any:
    java = java_pattern(pattern)
    return None if java is None else F.rlike(text, F.lit(java))


def group_named(pattern: str) -> tuple[str, int]:
    """The pattern with a name for the whole and for each group, as Arrow wants them, and how many groups there are.

    >>> group_named("(a)(?:b)")
    ('(?P<g0>(?P<g1>a)(?:b))', 1)
    """
    named, count, brackets, escaped = "", 0, False, False
    for place, character in enumerate(pattern):
        if escaped or character == _ESCAPE:
            escaped = not escaped
        elif brackets:
            brackets = character != "]"
        elif character == "[":
            brackets = True
        elif character == "(" and pattern[place + 1 : place + 2] != "?":
            count += 1
            named += f"(?P<g{count}>"
            continue
        named += character
    return f"(?P<g0>{named})", count


def _wrong_extract(constants: Sequence[object]) -> str | None:
    wrong = wrong_regex(constants)
    if wrong is not None:
        return wrong
    group, pattern = constants[1] if len(constants) > 1 else 1, str(constants[0])
    _, groups = group_named(pattern)
    if "(?P<" in pattern or "(?<" in pattern:
        return "groups go by their number, not by a name"
    if type(group) is not int or not 0 <= group <= groups:
        return f"the expression has no group {group!r}"
    return wrong_regex((group_named(pattern)[0],))


def _extract_column(column: object, pattern: str, group: int = 1) -> Any:
    found = pc.struct_field(pc.extract_regex(column, group_named(pattern)[0]), f"g{group}")
    return pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), pc.fill_null(found, ""))


def _extract(text: str, pattern: str, group: int = 1) -> Any:
    return _one(_extract_column, text, pattern, group)


def _split(text: str, pattern: str) -> Any:
    return _one(_split_column, text, pattern)


def _split_column(column: object, pattern: str) -> Any:
    """The parts between matches. A match of nothing parts two characters; at the start of the text it does not count.

    Arrow's own function never ends where a match is empty. So matches are put between marks first.
    """
    if isinstance(column, pa.Scalar):
        return _split_column(pa.array([column.as_py()], pa.string()), pattern)[0]
    if not pattern:  # no part behind the last character
        return _characters(column)
    begin, end = _marks(column)
    marked = pc.replace_substring_regex(column, pattern, f"{begin}\\0{end}")
    marked = pc.replace_substring_regex(marked, f"^{begin}{end}", "")
    plain = pc.replace_substring_regex(marked, f"(?s){begin}[^{end}]*{end}", begin)
    return pc.split_pattern(plain, begin)


def _characters(column: Any) -> Any:
    found = [None if text is None else list(text) or [""] for text in column.to_pylist()]
    kept = pa.array(found, pa.list_(pa.string()))
    return pa.chunked_array([kept]) if isinstance(column, pa.ChunkedArray) else kept


def _marks(column: object) -> tuple[str, str]:
    """Two characters that no text of the column has."""
    free = (chr(code) for code in range(0xE000, 0xF8FF))
    unused = (mark for mark in free if not pc.any(pc.match_substring(column, mark)).as_py())
    return next(unused), next(unused)


# --- parts of texts ---------------------------------------------------------------------------------------------------


def _spark_substring(F: Any, text: object, start: object, length: object = None) -> Any:
    # Spark counts in 32 bits
    if not all(isinstance(given, int) and abs(given) < 2**30 for given in (start, length) if given is not None):
        return None
    return F.substring(text, start, 2**30 if length is None else length)


def _instr(text: str, part: str) -> int:
    return text.find(part) + 1


def _replaced(column: object, part: str, other: str = "") -> Any:
    return column if not part else pc.replace_substring(column, part, other)


def _replace(text: str, part: str, other: str = "") -> str:
    return text if not part else text.replace(part, other)


def _wrong_texts(constants: Sequence[object]) -> str | None:
    return None if all(isinstance(given, str) for given in constants) else "write it as a text in quotes"


def _wrong_whole(constants: Sequence[object]) -> str | None:
    return None if all(type(given) is int for given in constants) else "write it as a whole number"


def _concatenated(*columns: object) -> Any:
    return pc.binary_join_element_wise(*columns, pa.scalar("", pa.string()))


def _size(value: Any) -> int:
    return len(value)


def _pattern_test(
    shown: str, call: Any, columnwise: Any, spark: Any, says: str, wrong: Any, ascii: Any = None
) -> Function:
    return Function(
        shown,
        call,
        STRING,
        _BOOL,
        constants=(1, 2),  # a clause may name the escape character
        columnwise=columnwise,
        spark=spark,
        ascii=ascii,
        wrong=wrong,
        says=says,
    )


def _test(name: str, call: Any, columnwise: Any, spark: str, says: str) -> Function:
    return Function(
        f"{name}(s, part)",
        call,
        STRING,
        _BOOL,
        constants=(),
        columnwise=lambda text, part: (
            columnwise(text, part.as_py()) if isinstance(part, pa.Scalar) else _each(call, text, part)
        ),
        spark=lambda F, text, part: getattr(F, spark)(text, part),
        says=says,
    )


def _each(call: Any, *columns: Any) -> Any:
    """A test of several columns, row by row."""
    length = next(len(column) for column in columns if not isinstance(column, pa.Scalar))
    lists = [[c.as_py()] * length if isinstance(c, pa.Scalar) else c.to_pylist() for c in columns]
    return pa.array([None if None in row else call(*row) for row in zip(*lists, strict=True)], pa.bool_())


def _trimming(name: str, columnwise: Any, says: str) -> Function:
    python = {"trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[name]
    return Function(
        f"{name}(s)",
        lambda text: python(text, " "),
        STRING,
        _TEXT,
        columnwise=lambda column: columnwise(column, " "),
        spark=lambda F, text: getattr(F, name)(text),
        says=says,
    )


def _cased(name: str, call: Any, says: str) -> Function:
    return Function(f"{name}(s)", call, STRING, _TEXT, ascii=lambda F, text: getattr(F, name)(text), says=says)


def rlike(text: str, pattern: str) -> Any:
    """Does a part of the text fit a regular expression?"""
    return _one(pc.match_substring_regex, text, pattern)


def _by_pattern(name: str, call: Any, wrong: Any, written: str) -> Function:
    """The same with a pattern that is a value, of this event or another one; NULL where it is no pattern."""

    def tested(text: str, pattern: str) -> Any:
        return None if wrong((pattern,)) is not None else call(text, pattern)

    return Function(
        f"{name}_pattern(s, t)",
        tested,
        STRING,
        _BOOL,
        says=f"the same with a pattern from a column; also `a.s {written} b.t`; NULL if t is not a pattern",
    )


FUNCTIONS: tuple[Function, ...] = (
    *named_twice(_cased("lower", str.lower, "s in lower case"), "lcase"),
    *named_twice(_cased("upper", str.upper, "s in upper case"), "ucase"),
    *named_twice(
        Function(
            "length(s)",
            _size,
            STRING | LISTS,
            _WHOLE,
            narrow=True,
            columnwise=lambda column: pc.cast(
                pc.list_value_length(column) if pa.types.is_nested(column.type) else pc.utf8_length(column), pa.int64()
            ),
            spark=lambda F, text: F.char_length(text).cast("bigint"),
            says="the number of characters of a string, or of elements of a list",
        ),
        "char_length",
    ),
    _pattern_test(
        "like(s, pattern)",
        like,
        lambda column, pattern, escape=_ESCAPE: pc.match_like(column, _by_backslash(pattern, escape)),
        lambda F, text, pattern: text.like(pattern),
        "true if the whole text matches: `%` any characters, `_` one, a backslash escapes; also `s LIKE '...'`",
        wrong_like,
    ),
    _pattern_test(
        "ilike(s, pattern)",
        ilike,
        lambda column, pattern: pc.match_like(_lowered(column), pattern.lower()),
        None,
        "the same, ignoring case; also `s ILIKE '...'`",
        wrong_like,
        ascii=lambda F, text, pattern: F.lower(text).like(pattern.lower()),
    ),
    *named_twice(
        _pattern_test(
            "rlike(s, regex)",
            rlike,
            pc.match_substring_regex,
            _spark_rlike,
            "true if a part of the text matches the regular expression (RE2); also `s RLIKE '...'`",
            wrong_regex,
        ),
        "regexp_like",
    ),
    _by_pattern("like", like, wrong_like, "LIKE"),
    _by_pattern("ilike", ilike, wrong_like, "ILIKE"),
    _by_pattern("rlike", rlike, wrong_regex, "RLIKE"),
    Function(
        "regexp_extract(s, regex, group)",
        _extract,
        (STRING, STRING, INT),
        _TEXT,
        least=2,
        constants=(1, 2),
        columnwise=_extract_column,
        wrong=_wrong_extract,
        says="the text of a group (default 1; 0: the whole match); an empty text without a match",
    ),
    *named_twice(
        Function(
            "substring(s, start, length)",
            substring,
            (STRING, INT, INT),
            _TEXT,
            least=2,
            constants=(1, 2),
            wrong=_wrong_whole,
            spark=_spark_substring,
            says="characters from a position on (by default all); positions count from 1, negative ones from the end",
        ),
        "substr",
    ),
    Function(
        "get_json_object(s, path)",
        get_json_object,
        STRING,
        _TEXT,
        constants=(1,),
        wrong=wrong_path,
        says="the part of a JSON text at a path such as `'$.items[0].name'`, as a text",
    ),
    *named_twice(
        Function(
            "json_value(s, path)",
            json_value,
            STRING,
            _TEXT,
            constants=(1,),
            wrong=wrong_path,
            says="the same if it is a string, a number or a truth value; NULL if it is an object or an array",
        ),
        "json_extract_scalar",
    ),
    Function(
        "left(s, n)", lambda text, length: text[: max(length, 0)], (STRING, INT), _TEXT, says="the first n characters"
    ),
    Function(
        "right(s, n)",
        lambda text, length: text[-length:] if length > 0 else "",
        (STRING, INT),
        _TEXT,
        says="the last n characters",
    ),
    _trimming("trim", pc.utf8_trim, "s without spaces at both ends"),
    _trimming("ltrim", pc.utf8_ltrim, "s without leading spaces"),
    _trimming("rtrim", pc.utf8_rtrim, "s without trailing spaces"),
    Function(
        "concat(s, t, ...)",
        lambda *texts: "".join(texts),
        PLAIN,  # binding makes texts of them
        _TEXT,
        least=1,
        columnwise=_concatenated,
        spark=lambda F, *texts: F.concat(*texts),
        says="the concatenation; NULL if a part is NULL (`\\|\\|` is OR)",
    ),
    Function(
        "replace(s, part, other)",
        _replace,
        STRING,
        _TEXT,
        least=2,
        constants=(1, 2),
        wrong=_wrong_texts,
        columnwise=_replaced,
        spark=lambda F, text, *parts: F.replace(text, *map(F.lit, parts)),
        says="s with every part replaced, or removed",
    ),
    *named_twice(
        _test("starts_with", str.startswith, pc.starts_with, "startswith", "true if s starts with part"), "startswith"
    ),
    *named_twice(_test("ends_with", str.endswith, pc.ends_with, "endswith", "true if s ends with part"), "endswith"),
    _test("contains", lambda text, part: part in text, pc.match_substring, "contains", "true if s contains part"),
    *named_twice(
        Function(
            "instr(s, part)",
            _instr,
            STRING,
            _WHOLE,
            narrow=True,
            says="the position of the first occurrence, from 1; 0 if there is none",
        ),
        "strpos",
    ),
    Function("reverse(s)", lambda text: text[::-1], STRING, _TEXT, says="s reversed"),
    Function("repeat(s, n)", repeated, (STRING, INT), _TEXT, says="s repeated n times"),
    *(
        Function(
            f"{name}(s, length, fill)",
            padded(name == "lpad"),
            (STRING, INT, STRING),
            _TEXT,
            least=2,
            says=f"s at a given length, cut or padded {where} (default: spaces)",
        )
        for name, where in (("lpad", "on the left"), ("rpad", "on the right"))
    ),
    Function(
        "concat_ws(separator, s, t, ...)",
        joined,
        PLAIN | frozenset({DataType.TEXTS}),
        _TEXT,
        least=1,
        strict=False,
        says="the values that are not NULL, with a separator between them; lists contribute their elements",
    ),
    Function(
        "array_join(list, separator)",
        lambda texts, separator: joined(separator, texts),
        (frozenset({DataType.TEXTS}), STRING),
        _TEXT,
        says="the elements of a list that are not NULL, with a separator between them",
    ),
    Function(
        "split(s, regex)",
        _split,
        STRING,
        DataType.TEXTS,
        constants=(1,),
        columnwise=_split_column,
        wrong=wrong_regex,
        says="s split at matches of the regular expression, as a list",
    ),
)
