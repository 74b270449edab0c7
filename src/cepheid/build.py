"""Queries without text, for programs that compose them: `from cepheid.build import event, seq, equivalent`.

>>> shelf, register, exit_ = event("Shelf").as_("a"), event("Register").as_("b"), event("Exit").as_("c")
>>> print(seq(shelf, ~register, exit_).where(equivalent("tag"), shelf["price"] > 10).within(hours=12))
PATTERN SEQ(Shelf a, !(Register b), Exit c)
WHERE [tag] AND a.price > 10
WITHIN 12 hours
"""

from cepheid.language.build import *  # noqa: F403  # the same names, under the name that users know
from cepheid.language.build import __all__ as __all__
