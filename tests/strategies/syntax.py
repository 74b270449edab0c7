"""Drawn syntax trees that need make no sense: any names, any nesting, every kind of node.

They are trees as the parser makes them, so each is the only tree of its text. `strategies.queries` draws sound ones.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

from hypothesis import assume
from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.expressions import node_of
from cepheid.language.units import UNITS

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

_TRICKY = ["in", "AND", "len", "LEN", "Hi-Tech", "a b", "`", "``", "'", '"', "x₁", "名前", "i", "1st", "--", "/*", "*/"]
_TRICKY += [
    "within",
    "skip_till_any_match",
    "event",
    "null",
    "TRUE",
    "a\nb",
    "\0",
    "\ud800",
    "a.b",
    "a[]",
    " ",
    "%",
    "e5",
]
_WORDS = ["a", "b", "price", "x_1", "_", "Straße"]

names = st.sampled_from(_WORDS) | st.sampled_from(_TRICKY) | st.text(min_size=1, max_size=5)
functions = st.sampled_from(["f", "Corr", "abs", "größe", "in", "and", "where"])


def as_written(number: float) -> Any:
    """A number as the text of a query holds it: a decimal unless it has an exponent."""
    return node_of(number).value  # type: ignore[attr-defined]


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False).map(as_written)
texts = st.sampled_from(["", "it's", '"', "`", "a\nb", "--", "/*", "\\"]) | st.text(max_size=5)
literals = st.builds(s.Literal, st.none() | st.booleans() | numbers | texts)
references = st.builds(s.Reference, names, st.sampled_from(s.Element))
_WRITTEN_ALONE = [element for element in s.Element if element is not s.Element.SINGLE]  # a lone word is a Name


@cache  # building a strategy costs more than drawing from it
def expressions() -> st.SearchStrategy[s.Expression]:
    """Any expression, a few levels deep."""
    fixed = st.none() | literals | st.builds(s.Name, names)
    leaves = (
        literals
        | st.builds(s.Name, names)
        | st.builds(s.Reference, names, st.sampled_from(_WRITTEN_ALONE))
        | st.builds(s.Attribute, references, names)
        | st.builds(s.Length, names)
        | st.builds(s.Equivalence, st.lists(st.tuples(names, fixed), min_size=1, max_size=3).map(tuple))
    )
    return st.recursive(leaves, _grown, max_leaves=12)


def _grown(inner: st.SearchStrategy[s.Expression]) -> st.SearchStrategy[s.Expression]:
    some = st.lists(inner, min_size=2, max_size=3).map(tuple)
    members = st.lists(inner, min_size=1, max_size=3).map(tuple) | st.builds(s.Name, names)
    return (
        st.builds(s.Attribute, references, names, inner)
        | st.builds(s.Call, functions, st.lists(inner, max_size=3).map(tuple))
        | st.builds(s.Negative, inner.filter(lambda node: not _is_number(node)))
        | st.builds(s.Arithmetic, st.sampled_from("+-*/%"), inner, inner)
        | st.builds(s.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), inner, inner)
        | st.builds(s.Membership, inner, members, st.booleans())
        | st.builds(s.Between, inner, inner, inner, st.booleans())
        | st.builds(s.IsNull, inner, st.booleans())
        | st.builds(s.Not, inner)
        | st.builds(s.And, some)
        | st.builds(s.Or, some)
    )


def _is_number(node: s.Expression) -> bool:
    """The parser makes one literal of a minus and a number."""
    return isinstance(node, s.Literal) and type(node.value) in (int, float, Decimal)


@st.composite
def components(draw: Draw[Any]) -> s.Component:
    """Any place of a pattern."""
    types = draw(st.none() | st.lists(names, min_size=1, max_size=3).map(tuple))
    named = types is None or draw(st.integers(0, 3)) > 0
    variable = draw(names) if named else "_or_".join(types or ())
    wildcard = types is not None and (len(types) > 1 or draw(st.booleans()))
    return s.Component(variable, types, wildcard, draw(st.booleans()), named and draw(st.booleans()), named)


_conditions = st.none() | expressions()
_selections = st.none() | st.builds(
    s.Selection, st.sampled_from(s.Strategy), st.lists(names, min_size=1, max_size=3).map(tuple)
)
_lengths = st.integers(1, 10**30) | st.floats(1e-9, 1e300) | st.builds(s.Name, names)
_windows = st.none() | st.builds(s.Window, _lengths, st.none() | st.sampled_from([*UNITS, "events"]))
_thresholds = st.none() | st.floats(0, 1, exclude_min=True)
_confidences = _thresholds | st.just(0.0)
_returns = st.none() | st.lists(st.builds(s.Returned, expressions(), st.none() | names), min_size=1, max_size=3).map(
    tuple
)
_modes = st.sampled_from([mode for mode in s.OutputMode if mode is not s.OutputMode.TOP])
_outputs = st.builds(s.Output, _modes) | st.builds(s.Output, st.just(s.OutputMode.TOP), st.integers(1, 10**9))


@st.composite
def query_trees(draw: Draw[Any]) -> s.QuerySyntax:
    """Any query that a text could give, sound or not."""
    places = draw(st.lists(components(), min_size=1, max_size=4).map(tuple))
    sequence = len(places) > 1 or draw(st.booleans())
    if not sequence and not places[0].named:
        places = (s.Component("event", places[0].types, places[0].any, places[0].negative, named=False),)
    query = s.QuerySyntax(
        places,
        sequence,
        draw(_conditions),
        draw(_selections),
        draw(_windows),
        draw(_thresholds),
        draw(_confidences),
        draw(_returns),
        draw(_outputs),
    )
    # A variable that is a group anywhere is one everywhere.
    groups = {place.variable for place in places if place.kleene}
    assume(all(place.kleene for place in places if place.variable in groups))
    # A bare word that is mentioned as a variable is one: see parse.
    mentioned = s.mentioned_words(query)
    bare = [place for place in query.components if not place.named and not place.any]
    assume(not any(word in mentioned for place in bare for word in place.types or ()))
    return query


# In aggregates, a[i-1] is read as a[..i-1].
assert not {"f", "Corr", "abs", "größe", "in", "and", "where"} & AGGREGATES.keys()
