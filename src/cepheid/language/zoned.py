"""The query's zone: parts of times, casts and literals are those that its clocks show (docs/time.md).

Instants are whole microseconds in UTC to every engine. Binding puts `local_time(ts, zone)` around what a function of
dates reads, and turns back what it returns, so that nothing else has to know of zones.
"""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.library.time_functions import FUNCTIONS, keeps_offset
from cepheid.language.library.zone_functions import READ, TO_INSTANT, TO_WALL
from cepheid.language.schema import TIMES, DataType, Schema
from cepheid.language.typing import type_of
from cepheid.language.zones import IN_UTC

_OF_CLOCKS = frozenset(function.name for function in FUNCTIONS if not function.instant)
_CASTS = ("cast", "try_cast")
_CHOICES = frozenset({"coalesce", "ifnull", "nvl", "least", "greatest", "nullif"})


def is_wall(node: s.Expression, schema: Schema) -> bool:
    """Is a time one that a clock shows, without a zone, rather than an instant?"""
    match node:
        case s.Attribute(name=name):
            return name in schema.walls
        case s.Call(function=function, arguments=arguments):
            name = function.lower()
            if name == TO_WALL or type_of(node, schema) is DataType.DATE:
                return True
            if name in (*_CASTS, TO_INSTANT, READ):
                return False
            of = arguments[1:2] if name == "date_trunc" else arguments[:1] if name in AGGREGATES else arguments
            times = [each for each in of if _is_time(each, schema)]
            return bool(times) and all(is_wall(each, schema) for each in times)
        case s.Arithmetic(left=left):
            return is_wall(left, schema)
    return False


def zoned(node: s.Expression, schema: Schema) -> s.Expression:
    """An expression whose parts are in the query's zone, in that zone itself."""
    if schema.zone == IN_UTC:
        return node
    match node:
        case s.Call(function=function, arguments=arguments) if function.lower() in _OF_CLOCKS:
            shown = tuple(_shown(each, schema) for each in arguments)
            found = s.Call(function, shown, span=node.span)
            turned = any(each is not own for each, own in zip(shown, arguments, strict=True))
            if not turned or not _is_time(node, schema):
                return found
            unit = arguments[0].value if isinstance(arguments[0], s.Literal) else ""
            return _at(found, schema, arguments[1] if keeps_offset(str(unit)) else None)
        case s.Call(function=function, arguments=(operand, wanted, kind)) if function.lower() in _CASTS:
            if _is_time(operand, schema) and type_of(node, schema) in (DataType.DATE, DataType.STRING):
                return s.Call(function, (_shown(operand, schema), wanted, kind), span=node.span)
            if _is_time(operand, schema) and _wanted(node) == "timestamp" and is_wall(operand, schema):
                return _at(node, schema)
            if type_of(operand, schema) is DataType.STRING and _wanted(node) == "timestamp":
                return s.Call(READ, (operand, s.Literal(schema.zone)), span=node.span)
        case s.Call(function=function, arguments=arguments) if function.lower() in ("concat", "concat_ws"):
            return s.Call(function, tuple(zoned(each, schema) for each in arguments), span=node.span)
        case s.Call(function=function, arguments=arguments) if function.lower() in _CHOICES:
            return s.Call(function, tuple(_alike(list(arguments), schema)), span=node.span)
        case s.Comparison(left=left, right=right):
            return s.Comparison(node.operator, *_alike([left, right], schema), span=node.span)
        case s.Arithmetic(operator="-", left=left, right=right):
            return s.Arithmetic("-", *_alike([left, right], schema), span=node.span)
        case s.Between(operand=operand, low=low, high=high):
            middle, lower, upper = _alike([operand, low, high], schema)
            return s.Between(middle, lower, upper, node.negated, span=node.span)
        case s.Membership(operand=operand, values=tuple() as values):
            first, *others = _alike([operand, *values], schema)
            return s.Membership(first, tuple(others), node.negated, span=node.span)
    return node


def _alike(nodes: list[s.Expression], schema: Schema) -> list[s.Expression]:
    """Times beside each other: if one is an instant, so are all. (Literals are what they stand beside already.)"""
    times = [node for node in nodes if not isinstance(node, s.Literal) and _is_time(node, schema)]
    walls = [node for node in times if is_wall(node, schema)]
    if not walls or len(walls) == len(times):
        return nodes
    return [_at(node, schema) if any(node is wall for wall in walls) else node for node in nodes]


def _shown(node: s.Expression, schema: Schema) -> s.Expression:
    """What the clocks show at an instant; anything else as it is."""
    if isinstance(node, s.Literal) or not _is_time(node, schema) or is_wall(node, schema):
        return node
    return s.Call(TO_WALL, (node, s.Literal(schema.zone)), span=node.span)


def _at(node: s.Expression, schema: Schema, near: s.Expression | None = None) -> s.Expression:
    beside = () if near is None else (near,)
    return s.Call(TO_INSTANT, (node, s.Literal(schema.zone), *beside), span=node.span)


def _wanted(node: s.Call) -> str:
    wanted = node.arguments[1] if len(node.arguments) > 1 else None
    return str(wanted.value).lower() if isinstance(wanted, s.Literal) else ""


def _is_time(node: s.Expression, schema: Schema) -> bool:
    if isinstance(node, s.Attribute):
        return schema.type_of(node.name) in TIMES
    return isinstance(node, s.Call | s.Arithmetic) and type_of(node, schema) in TIMES
