"""What is known of a function: one entry says its types, its meaning in plain Python, and its other forms.

The reference calls `call`. Conditions on one event are computed over whole columns by `columnwise` (Arrow), and on
Spark by `spark` in front of the shuffle; without these forms it is called once for each value, or left to the engine.
Kernels take `inline`, `source` or `kernel`; a function without one of them is computed over whole columns beforehand if
it reads one event, and else runs as Python. All forms give the same result: `tests/language/test_functions_agree.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cepheid.language.library.decimals import Precision
from cepheid.language.library.growth import check_text
from cepheid.language.schema import NUMBERS, DataType

Kinds = frozenset[DataType]
MANY = 20  # arguments that a function may take at most

INT: Kinds = frozenset({DataType.INT})
NUMBER: Kinds = NUMBERS
STRING: Kinds = frozenset({DataType.STRING})
BOOL: Kinds = frozenset({DataType.BOOL})
TIMES: Kinds = frozenset({DataType.TIME, DataType.DATE})
LISTS: Kinds = frozenset({DataType.LIST, DataType.TEXTS})
ORDERED: Kinds = NUMBERS | STRING | TIMES
ANY: Kinds = frozenset(DataType) - {DataType.OTHER}


@dataclass(frozen=True)
class Function:
    """A function of values. NULL arguments give NULL without a call, unless it is not `strict`."""

    shown: str  # how the manual writes it: its name, and its arguments; "" for a function of the user's
    call: Callable[..., Any]
    accepts: Kinds | tuple[Kinds, ...]  # of every argument, or of each in turn; the last one of the further ones
    result: DataType | None  # None: that of the arguments, unless `typed` says more
    name: str = ""  # where it is written in another way
    least: int = -1  # how many arguments at least and at most, where `shown` does not tell
    most: int = -1
    user: bool = False
    kernel: Callable[..., Any] | None = None  # a form that numba takes
    kernels: Mapping[int, Callable[..., Any]] = field(default_factory=dict)  # others, by the number of arguments
    inline: str | None = None  # the function as source over its arguments, where it is that short
    source: Callable[[Sequence[str], Sequence[object]], str | None] | None = None  # the same, from constants, too
    null: str | None = None  # where it is NULL although its arguments are not, as source over them
    columnwise: Callable[..., object] | None = None  # over Arrow columns
    spark: Callable[..., Any] | None = None  # Spark's functions module and columns -> a column of the same values
    ascii: Callable[..., object] | None = None  # the same for text of ASCII alone, where Spark knows other rare letters
    strict: bool = True
    constants: tuple[int, ...] = ()  # arguments that must be written as constants; other forms get them as they are
    wrong: Callable[[Sequence[object]], str | None] | None = None  # what is wrong with the constants
    typed: Callable[[Sequence[DataType], Sequence[object]], DataType | str] | None = None  # the type, or what is wrong
    precision: Callable[[Sequence[Precision], Sequence[Any]], Precision] | None = None  # of a result that is a decimal
    narrow: bool = False  # is its result a whole number of 32 bits in Spark?
    instant: bool = False  # does it take times as instants? The others take what a clock shows
    gives_instant: bool | None = None  # is a time that it gives an instant? None: as what it takes was
    says: str = ""  # what the manual says of it
    fractions: tuple[int, ...] = ()  # of a function of the user's: arguments annotated as float, given as such
    arithmetic: bool | None = None  # and does it calculate? None: compiled it might differ (`language/compilable.py`)

    vouched: bool = False  # and does the user say that it is the same compiled?

    def __post_init__(self) -> None:
        name, _, written = self.shown.partition("(")
        arguments = [each for each in written.removesuffix(")").split(", ") if each]
        without_end = arguments[-1:] == ["..."]
        known = {
            "name": self.name or name,
            "least": len(arguments) - without_end if self.least < 0 else self.least,
            "most": self.most if self.most >= 0 else MANY if without_end else len(arguments),
        }
        self.__dict__.update(known)

    def is_compiled(self, kinds: Sequence[DataType]) -> bool:
        """May kernels call a compiled form of a function of the user's with arguments of these types?"""
        numbers = (DataType.INT, DataType.FLOAT, DataType.BOOL, DataType.TIME, DataType.NULL, DataType.LIST)
        if not all(kind in numbers for kind in kinds):
            return False  # text is a rank there
        if self.vouched or hasattr(self.call, "py_func"):
            return True
        if self.arithmetic is None or DataType.LIST in kinds or DataType.BOOL in kinds:
            return False
        whole = [
            place for place, kind in enumerate(kinds) if kind is not DataType.FLOAT and place not in self.fractions
        ]
        return not (self.arithmetic and whole)

    def apply(self, *arguments: object) -> Any:
        """The function of values, none of them NULL if it is strict."""
        if self.fractions:
            arguments = tuple(
                float(each) if place in self.fractions and type(each) is int else each
                for place, each in enumerate(arguments)
            )
        check_text(self.name, arguments)
        return self.call(*arguments)

    def compiled(self, arguments: int) -> Callable[..., object]:
        """The form that kernels call with so many arguments."""
        return self.kernels.get(arguments) or self.kernel or self.call

    @property
    def columns(self) -> bool:
        """Is it computed for whole columns before any matching, as kernels have no form of it?"""
        forms = (self.kernel, self.inline, self.source)
        return not self.user and all(form is None for form in forms) and self.name not in SPECIAL

    def constants_of(self, values: Sequence[object]) -> list[object]:
        """Those of its arguments that must be constants."""
        return [each for place, each in enumerate(values) if place in self.constants]

    def accepted(self, place: int) -> Kinds:
        """The types that an argument may have."""
        if isinstance(self.accepts, tuple):
            return self.accepts[min(place, len(self.accepts) - 1)]
        return self.accepts


def named_twice(first: Function, *others: str) -> tuple[Function, ...]:
    """A function under several names."""
    again = [replace(first, name=name, shown=first.shown.replace(first.name, name), says="the same") for name in others]
    return (first, *again)


SPECIAL = frozenset(
    {"case", "if", "coalesce", "ifnull", "nvl", "least", "greatest", "mod"}
)  # kernels have them without a call
