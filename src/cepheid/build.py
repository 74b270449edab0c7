"""Queries without text, for programs that compose them: `from cepheid.build import event, seq, equivalent`.

>>> shelf, register, exit_ = event("Shelf").as_("a"), event("Register").as_("b"), event("Exit").as_("c")
>>> print(seq(shelf, ~register, exit_).where(equivalent("tag"), shelf["price"] > 10).within(hours=12))
PATTERN SEQ(Shelf a, !(Register b), Exit c)
WHERE [tag] AND a.price > 10
WITHIN 12 hours
"""

from cepheid.language.build import Event, Pattern, all_of, any_of, event, one_of, only, seq
from cepheid.language.expressions import (
    Expr,
    attr,
    avg,
    call,
    col,
    count,
    equivalent,
    first,
    last,
    lit,
    max_,
    min_,
    param,
    sum_,
    var,
)

__all__ = [
    "Event",
    "Expr",
    "Pattern",
    "all_of",
    "any_of",
    "attr",
    "avg",
    "call",
    "col",
    "count",
    "equivalent",
    "event",
    "first",
    "last",
    "lit",
    "max_",
    "min_",
    "one_of",
    "only",
    "param",
    "seq",
    "sum_",
    "var",
]
