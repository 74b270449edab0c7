"""What can be said of a query before its data is known: is its structure sound?

`resolve` turns bare words that name variables into references; `problems` yields every error it finds, so that
`cepheid check` can list them all; `check` raises the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.forecasts import forecast_problems
from cepheid.language.functions import find_function, function_names
from cepheid.language.normal import disjuncts, negation_normal_form
from cepheid.language.partial import partial_problems
from cepheid.language.pattern import AnyOrder, Repeat, Single, exposed, walk, with_leaves
from cepheid.language.printing import expression_text
from cepheid.language.step_strategies import step_problems
from cepheid.language.totals import total_problems
from cepheid.language.until import until_problems

RESULT_COLUMNS = frozenset({"match_start", "match_end", "probability", "confidence", "earliest", "latest"})
_GROUP_ELEMENTS = frozenset({s.Element.ALL, s.Element.BEFORE})
_STRATEGIES = frozenset(strategy.value for strategy in s.Strategy)


def check(query: s.QuerySyntax, text: str | None = None) -> s.QuerySyntax:
    """The query with its variables resolved, if its structure is sound; otherwise the first error."""
    for expression in (*query.conditions(), *query.values()):
        if s.deeper_than(expression, s.MAX_DEPTH) is not None:
            raise QueryError(f"expressions are nested more than {s.MAX_DEPTH} levels deep", code="too-deep")
    resolved = resolve(query)
    for problem in problems(resolved, text):
        raise problem
    return resolved


def resolve(query: s.QuerySyntax) -> s.QuerySyntax:
    """Bare words that are variables become references: `RETURN a`, `count(b)`."""
    variables = {component.variable for component in query.components}

    def change(node: s.Expression) -> s.Expression:
        if isinstance(node, s.Name) and node.name in variables:
            return s.Reference(node.name, span=node.span)
        if isinstance(node, s.Membership) and isinstance(node.values, s.Name):
            return replace(node, operand=change(node.operand))  # the name of a list of values, never an event
        return s.rebuild(node, change)

    where = change(query.where) if query.where is not None else None
    return replace(query.with_values(change).with_ends(change), where=where)


def _definition_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    """What is wrong with DEFINE: each condition is on the attributes of one event, by their names alone."""
    used = {name for component in query.components for name in (*(component.types or ()), *component.defined)}
    seen: set[str] = set()
    variables = {component.variable for component in query.components}
    for definition in query.definitions:
        name = definition.name
        if name in seen:
            yield f"'{name}' is defined twice", definition, "duplicate-definition", "join the conditions with AND or OR"
        seen.add(name)
        if name not in used:
            guess = closest(name, sorted(used))
            hint = f"did you mean {guess}?" if guess else f"write {name} x in the pattern, or leave the definition out"
            yield f"no component takes '{name}'", definition, "unused-definition", hint
        for node in s.walk(definition.condition):
            match node:
                case s.Reference(variable=variable) if variable in variables and variable != name:
                    hint = "write the attribute alone, and conditions on other events into WHERE"
                    yield f"'{variable}' in the definition of '{name}'", node, "definition-of-several", hint
                case s.Length() | s.Equivalence():
                    yield (
                        "a definition is a condition on a single event",
                        node,
                        "definition-of-several",
                        "write it into WHERE",
                    )
                case s.Call(function=function) if function.lower() in AGGREGATES:
                    hint = "write it into WHERE"
                    yield "a definition is a condition on a single event", node, "definition-of-several", hint
                case s.Call(function=function, arguments=arguments):
                    yield from _call_problems(node, function, arguments, {}, False)


def problems(query: s.QuerySyntax, text: str | None = None) -> Iterator[QueryError]:
    """Every structural error of a resolved query, in the order of the clauses."""

    def error(message: str, node: s.Node, code: str, hint: str | None = None) -> QueryError:
        start, end = node.span
        known = text if text is not None and end > start else None
        return QueryError(message, text=known, start=start, end=end, hint=hint, code=code)

    yield from (error(*found) for found in _pattern_problems(query))
    yield from (error(*found) for found in _definition_problems(query))
    yield from (error(*found) for found in _selection_problems(query))
    yield from (error(*found) for found in _text_problems(query))
    yield from (error(*found) for found in _until_problems(query))
    if query.where is not None:
        yield from (error(*found) for found in _expression_problems(query, query.where, returned=False))
    for item in query.returns or ():
        yield from (error(*found) for found in _expression_problems(query, item.expression, returned=True))
    yield from (error(*found) for found in _return_problems(query))
    yield from (error(*found) for found in total_problems(query))
    yield from (error(*found) for found in partial_problems(query))
    yield from (error(*found) for found in forecast_problems(query))
    yield from (error(*found) for found in _negation_problems(query))
    try:
        yield from (error(*found) for found in _threshold_problems(query))
    except QueryError as too_many:
        yield located(too_many, text)


def located(error: QueryError, text: str | None) -> QueryError:
    """The same error with the text it points into, once that is known."""
    if text is None or error.text is not None or error.start is None or error.start == error.end:
        return error
    return QueryError(error.message, text=text, start=error.start, end=error.end, hint=error.hint, code=error.code)


MOST_COMPONENTS = 63  # which of them an event can fill is kept in the bits of one whole number

HALF_A_PAIR = ("text with half of a surrogate pair", "bad-text", "no valid text is equal to it; leave the half out")

_Problem = tuple[str, s.Node, str, str | None]


def _pattern_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    seen: set[str] = set()
    for component in query.components:
        name = component.variable
        if name in seen:
            hint = "give each component its own name"
            yield f"variable '{name}' is declared twice", component, "duplicate-variable", hint
        seen.add(name)
        if name in RESULT_COLUMNS:
            yield f"'{name}' is a column of every result", component, "reserved-name", "choose another variable"
    if len(query.components) > MOST_COMPONENTS:
        hint = "split it: match parts of the pattern, then match their results"
        message = f"a pattern of {len(query.components)} components; there may be at most {MOST_COMPONENTS}"
        yield message, query.components[MOST_COMPONENTS], "too-many-components", hint
    yield from _combination_problems(query)


def is_text(value: str) -> bool:
    """Can a column hold it?

    >>> is_text("a"), is_text(chr(0xD800))
    (True, False)
    """
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _text_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    message, code, hint = HALF_A_PAIR
    for expression in (*query.conditions(), *(item.expression for item in query.returns or ())):
        for node in s.walk(expression):
            if isinstance(node, s.Literal) and isinstance(node.value, str) and not is_text(node.value):
                yield message, node, code, hint
    for component in query.components:
        if not all(is_text(name) for name in component.types or ()):
            yield message, component, code, hint


def _combination_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    """What is wrong with how components combine (docs/semantics.md, "Patterns are expressions").

    Components go by their numbers here, since two of them may have been given the same name.
    """
    numbers = map(str, range(len(query.components)))
    pattern = with_leaves(query.pattern, lambda leaf: Single(next(numbers), leaf.span))
    by_number = {str(number): component for number, component in enumerate(query.components)}
    negative = frozenset(number for number, component in by_number.items() if component.negative)
    for node in walk(pattern):
        match node:
            case Repeat(part=Single(label=number)) if number in negative:
                hint = f"write !({_type(by_number[number])} {by_number[number].variable})"
                yield "a negated component is a single event", by_number[number], "negated-kleene", hint
            case AnyOrder(parts=parts):
                for part in parts:
                    if isinstance(part, Single) and part.label in negative:
                        hint = "put it between two parts of a sequence"
                        yield "AND cannot have a negated part", by_number[part.label], "negation-in-any-order", hint
    opening, vanishes = exposed(pattern, negative)
    absent = len(negative) == len(by_number)
    if vanishes:
        hint = "add a component without '!'" if absent else "make one of its parts mandatory"
        yield "a pattern needs at least one positive component", query.components[0], "only-negation", hint
    if query.within is not None or absent:
        return
    for place, numbers_there in (("start", opening), ("end", exposed(pattern, negative, last=True)[0])):
        for number in sorted(numbers_there):
            hint = "add WITHIN, for example WITHIN 1 hour"
            message = f"negation at the {place} of a pattern needs a window"
            yield message, by_number[number], "negation-without-within", hint


def _until_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    """What is wrong with the conditions that end groups."""
    known = [component.variable for component in query.components]
    by_name = {component.variable: component for component in query.components}
    for component in query.components:
        if component.until is None:
            continue
        for node in s.walk(component.until):
            match node:
                case s.Reference(variable=variable) | s.Length(variable=variable) if variable not in known:
                    yield _unknown_variable(variable, known, node)
                case s.Call(function=function, arguments=arguments):
                    yield from _call_problems(node, function, arguments, by_name, False)
        yield from until_problems(query, component)


def _type(component: s.Component) -> str:
    return component.types[0] if component.types else ""


def _selection_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    known = [component.variable for component in query.components]
    for step in (step for selection in query.step_selections for step in selection.steps):
        if step.variable not in known:
            yield _unknown_variable(step.variable, known, step)
    yield from step_problems(query)
    if query.selection is None:
        return
    for name in query.selection.variables:
        if name not in known:
            yield _unknown_variable(name, known, query.selection)


def _unknown_variable(name: str, known: list[str], node: s.Node) -> _Problem:
    guess = closest(name, known)
    hint = f"did you mean {guess}?" if guess else f"the variables are {', '.join(known)}"
    return f"no variable '{name}'", node, "unknown-variable", hint


def _expression_problems(query: s.QuerySyntax, expression: s.Expression, *, returned: bool) -> Iterator[_Problem]:
    by_name = {component.variable: component for component in query.components}
    known = list(by_name)

    def visit(node: s.Expression, aggregate: bool, condition: bool) -> Iterator[_Problem]:
        match node:
            case s.Reference(variable=name) | s.Length(variable=name) if name not in by_name:
                yield _unknown_variable(name, known, node)
                return
            case s.Length(variable=name) if not by_name[name].kleene:
                hint = f"{_kleene_hint(by_name[name])}, or write {name}.`len` for an attribute of that name"
                yield f"'{name}' is a single event, so it has no LEN", node, "not-kleene", hint
            case s.Reference(variable=name) if by_name[name].kleene and not aggregate:
                yield from _element_problems(node, returned and not _is_whole(expression, node), returned)
            case s.Reference(variable=name, element=element) if element is not s.Element.SINGLE and not aggregate:
                hint = f"write {name}, or {_kleene_hint(by_name[name])}"
                yield f"'{name}' is a single event", node, "not-kleene", hint
            case s.Call(function=function, arguments=arguments):
                yield from _call_problems(node, function, arguments, by_name, aggregate)
            case s.Equivalence() if not condition:
                hint = "join it to other conditions with AND, OR, NOT"
                yield "an equivalence test is a condition, not a value", node, "equivalence-as-value", hint
            case s.Membership(values=s.Name(name=name) as values) if name in by_name:
                hint = "write the values in parentheses, or pass a list as parameter under another name"
                yield f"'{name}' is an event, not a list of values", values, "event-as-list", hint
        inside = aggregate or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES)
        joining = condition and isinstance(node, s.And | s.Or | s.Not)
        for child in s.children(node):
            yield from visit(child, inside, joining)

    yield from visit(expression, False, not returned)


def _is_whole(expression: s.Expression, reference: s.Reference) -> bool:
    """Is the reference, or an attribute of it, all there is? Then RETURN gives a list for a Kleene group."""
    return (
        expression is reference
        or isinstance(expression, s.Star)
        or (isinstance(expression, s.Attribute) and expression.of is reference and expression.default is None)
    )


def _element_problems(node: s.Reference, part_of_value: bool, returned: bool) -> Iterator[_Problem]:
    """What is wrong with naming this element of a Kleene group outside an aggregate?"""
    name, element = node.variable, node.element
    many = element in _GROUP_ELEMENTS or (returned and element is s.Element.SINGLE)
    if returned and element in (s.Element.CURRENT, s.Element.PREVIOUS, s.Element.BEFORE):
        hint = f"return {name}[1].x, {name}[{name}.LEN].x, {name}, or an aggregate"
        yield "RETURN sees only the complete group", node, "bad-index", hint
    elif many and (part_of_value or not returned):
        hint = f"for example avg({name}{element.value or '[]'}.x)"
        message = f"'{name}{element.value}' is many events; aggregate them"
        yield message, node, "group-outside-aggregate", hint


def _kleene_hint(component: s.Component) -> str:
    return f"declare {_type(component) or '*'}+ {component.variable}[]"


def _call_problems(
    node: s.Expression,
    function: str,
    arguments: tuple[s.Expression, ...],
    by_name: dict[str, s.Component],
    aggregate: bool,
) -> Iterator[_Problem]:
    name = function.lower()
    if name in AGGREGATES:
        if aggregate:
            yield "an aggregate inside an aggregate", node, "nested-aggregate", "aggregate an attribute: avg(a[].x)"
        elif len(arguments) != 1:
            hint = "use least(...) or greatest(...) for several values" if name in ("min", "max") else None
            yield f"{name}() takes one argument", node, "wrong-arguments", hint
        else:
            yield from _aggregate_problems(node, name, arguments[0], by_name)
        return
    if name.replace("-", "_") in _STRATEGIES:
        hint = f"write WHERE {name} {{ ... }}, or join it to all other conditions with AND"
        yield "an event selection strategy is not a condition", node, "strategy-as-condition", hint
        return
    found = find_function(function)
    if found is None:
        guess = closest(name, function_names())
        hint = f"did you mean {guess}?" if guess else "register it with @cepheid.function"
        yield f"no function '{function}'", node, "unknown-function", hint
    elif not found.least <= len(arguments) <= found.most:
        takes = str(found.least) if found.least == found.most else f"{found.least} to {found.most}"
        noun = "argument" if takes == "1" else "arguments"
        shown = found.shown or f"{name}({', '.join('xyz'[: found.least])})"
        hint = f"it is written {shown}" if found.shown or found.least == found.most <= len("xyz") else None
        yield f"{function}() takes {takes} {noun}, not {len(arguments)}", node, "wrong-arguments", hint


def _aggregate_problems(
    node: s.Expression, name: str, argument: s.Expression, by_name: dict[str, s.Component]
) -> Iterator[_Problem]:
    mentioned = sorted(s.variables_of(argument))
    groups = [variable for variable in mentioned if variable in by_name and by_name[variable].kleene]
    if not groups:
        example = mentioned[0] if mentioned else "a"
        hint = f"declare Type+ {example}[] and write {name}({example}[].x)"
        yield f"{name}() needs the events of a Kleene component", node, "aggregate-outside-kleene", hint
        return
    elements = {inner.element for inner in s.walk(argument) if isinstance(inner, s.Reference)}
    ones = elements - _GROUP_ELEMENTS - {s.Element.SINGLE}
    if len(mentioned) > 1 or (s.Element.BEFORE in elements and len(elements) > 1 and not ones):
        hint = f"name {groups[0]}[] or {groups[0]}[..i-1] only, and combine aggregates outside"
        yield f"{name}() aggregates one Kleene group", node, "aggregate-over-several", hint
    elif ones:
        hint = f"write {groups[0]}[] for the whole group, {groups[0]}[..i-1] for the events before this one"
        one = min(f"{groups[0]}{_element_text(groups[0], element)}" for element in ones)
        yield f"{name}() aggregates several events, and '{one}' is a single one", node, "aggregate-of-one", hint


def _element_text(variable: str, element: s.Element) -> str:
    return f"[{variable}.LEN]" if element is s.Element.LAST else element.value


def _return_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    negative = {component.variable for component in query.components if component.negative}
    seen: set[str] = set()
    for item in query.returns or ():
        for variable in sorted(s.variables_of(item.expression) & negative):
            hint = "return the events that did happen"
            yield f"'{variable}' is the event that must not happen", item, "negated-in-return", hint
        if isinstance(item.expression, s.Star):
            continue  # its columns are known with the schema
        name = returned_name(item)
        if name in RESULT_COLUMNS:
            yield f"'{name}' is a column of every result", item, "reserved-name", "rename it with AS"
        if name in seen:
            yield f"two returned columns are called '{name}'", item, "duplicate-column", "rename one with AS"
        seen.add(name)


def returned_name(item: s.Returned) -> str:
    """The result column of a RETURN item: its alias, the variable, the attribute, or the text itself.

    >>> returned_name(s.Returned(s.Attribute(s.Reference("a"), "tag")))
    'tag'
    """
    if item.alias is not None:
        return item.alias
    match item.expression:
        case s.Reference(variable=name) | s.Attribute(name=name) | s.Name(name=name):
            return name
        case other:
            return expression_text(other)


def _negation_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    """Components that a condition ties together kill together, but a score knows only how sure each is by itself."""
    negative = {component.variable for component in query.components if component.negative}
    if query.where is None or query.threshold is None:
        return
    for node in _literals(negation_normal_form(query.where)):
        both = sorted(s.variables_of(node) & negative)
        if len(both) > 1:
            message = f"THRESHOLD evaluates {' and '.join(both)} separately, and this condition relates them"
            yield message, node, "two-negations", "split it into conditions on one negated component each"


def _literals(node: s.Expression) -> Iterator[s.Expression]:
    if isinstance(node, s.And | s.Or):
        for operand in node.operands:
            yield from _literals(operand)
    else:
        yield node


def _threshold_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    """AYAC section 2.2: every component needs a predicate on itself alone (or, here, a type)."""
    if query.threshold is None:
        return
    selection = query.selection
    if selection is not None and selection.strategy in s.CONTIGUOUS:
        message = f"{selection.strategy.value} requires events without gaps, and a missing event is a gap"
        yield message, selection, "threshold-strategy", "write skip_till_next_match or skip_till_any_match"
    for steps in query.step_selections:
        message = "strategies for single steps cannot be combined with missing events"
        yield message, steps, "threshold-strategy", "use one strategy for all steps"
    if query.within is None:
        hint = "add WITHIN, for example WITHIN 12 hours"
        yield "a query with THRESHOLD needs a window", query.components[-1], "threshold-without-within", hint
    elif query.within.unit == "events":
        hint = "give the window a length of time"
        yield "missing events need a window of time", query.within, "threshold-event-window", hint
    branches = disjuncts(query.where) if query.where is not None else ((),)
    for component in query.components:
        if component.types is not None:
            continue
        name = component.variable
        for branch in branches:
            own = any(s.variables_of(part) == {name} for part in branch)
            fixed = any(isinstance(p, s.Equivalence) and any(v is not None for _, v in p.tests) for p in branch)
            if not own and not fixed:
                hint = f"add one such as {name}.reader = 'A', or a type"
                yield f"'{name}' has no condition on itself alone", component, "no-own-predicate", hint
                break
