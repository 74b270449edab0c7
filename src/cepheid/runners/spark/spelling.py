"""Names of columns and formats of times as Spark writes them."""

from __future__ import annotations

from cepheid.errors import CepheidError

# strptime's letters in Java's spelling
_PATTERN = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "H": "HH", "I": "hh", "M": "mm", "S": "ss", "f": "SSSSSS",
    "p": "a", "b": "MMM", "B": "MMMM", "a": "EEE", "z": "Z", "j": "DDD",
}  # fmt: skip


def quoted(name: str) -> str:
    """A column name that Spark takes literally, dots and all.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def java_pattern(strptime: str) -> str:
    """A format of strptime as Spark writes it.

    >>> java_pattern("%d/%m/%Y %H:%M")
    'dd/MM/yyyy HH:mm'
    """
    found, letters = [], iter(strptime)
    for letter in letters:
        if letter != "%":
            found.append(f"'{letter}'" if letter.isalpha() else letter)
            continue
        code = next(letters, "")
        if code not in _PATTERN:
            raise CepheidError(f"the time format has %{code}, which Spark does not know", hint="use %Y %m %d %H %M %S")
        found.append(_PATTERN[code])
    return "".join(found)
