"""A query as a MATCH_RECOGNIZE clause with the same matches, where there is one.

MATCH_RECOGNIZE reports one match for each first row. So a query can be translated if an event that begins a match
begins only one: under contiguity, and under skip_till_next_match, where what a run passes over is a pattern variable of
its own that no event may be that the run could take. Rows of one partition must have different times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NoReturn, TypeAlias

from cepheid.errors import QueryError, closest
from cepheid.language import pattern as p
from cepheid.language import syntax as s
from cepheid.language.check import returned_name
from cepheid.language.free_names import free_name
from cepheid.language.match_recognize.from_expression import DIALECTS, Sql, Written
from cepheid.language.printing import expression_text

CODE = "no-translation"
_MOST_ROUNDS = 20
END = ""  # in place of a label: the match may be complete
Follow: TypeAlias = dict[str, frozenset[str]]  # what may come next, each with the negated components in between


def clause_of(
    query: s.QuerySyntax,
    text: str | None,
    parameters: Mapping[str, object],
    *,
    dialect: str,
    time: str,
    type: str | None,
) -> str:
    """The clause; a QueryError names what cannot be said in it."""
    if dialect not in DIALECTS:
        near = closest(dialect, DIALECTS)
        raise QueryError(f"no dialect '{dialect}'", hint=f"choose {near or 'one of ' + ', '.join(DIALECTS)}", code=CODE)
    return _Translation(query, text, parameters, DIALECTS[dialect], time, type).clause()


@dataclass
class _Translation:
    query: s.QuerySyntax
    text: str | None
    parameters: Mapping[str, object]
    sql: Sql
    time: str
    type: str | None
    fixed: dict[str, s.Expression] = field(default_factory=dict)  # keys with the value that they must have
    skips: dict[str, str] = field(default_factory=dict)  # variables for what is passed over, with their conditions

    def __post_init__(self) -> None:
        query = self.query
        self.components = {each.variable: each for each in query.components}
        self.negatives = frozenset(name for name, each in self.components.items() if each.negative)
        strategy = query.selection.strategy if query.selection is not None else s.Strategy.SKIP_TILL_ANY
        if len(query.components) == 1 and not query.components[0].kleene and query.is_linear:
            strategy = s.Strategy.PARTITION_CONTIGUITY  # one event is a match under every strategy
        self.strategy = strategy
        groups = frozenset(name for name, each in self.components.items() if each.kleene)
        only = query.components[0].variable if not query.sequence else None
        self.write = Written(self.sql, groups, self.parameters, only, self._refuse)
        self.pattern = query.pattern

    def clause(self) -> str:
        self._check_clauses()
        first = self._first(self.pattern, {END: frozenset()})
        self._check_apart(first)
        if first.get(END) is not None or any(first.values()):
            self._refuse("an absence at the start has no counterpart", self.query, "begin with an event that occurs")
        self.conjuncts, self.keys = self._split()
        pattern = self._pattern(self.pattern, {END: frozenset()})
        order = f"ORDER BY {self.sql.quoted(self.time)}"
        partition = "" if self._across or not self.keys else f"PARTITION BY {self._list(self.keys)}\n  "
        measures = ",\n    ".join(self._measures())
        definitions = ",\n    ".join(self._definitions(first))
        within = f" {self._within_clause()}" if self.sql.window and self.query.within is not None else ""
        return (
            f"MATCH_RECOGNIZE (\n  {partition}{order}\n  MEASURES\n    {measures}\n  ONE ROW PER MATCH\n"
            f"  AFTER MATCH SKIP TO NEXT ROW\n  PATTERN ({pattern}){within}\n  DEFINE\n    {definitions}\n)"
        )

    # --- what has no counterpart ------------------------------------------------------------------------------------

    def _refuse(self, message: str, node: s.Node, hint: str) -> NoReturn:
        start, end = node.span
        place = {"text": self.text, "start": start, "end": end} if self.text is not None and end > start else {}
        raise QueryError(f"no MATCH_RECOGNIZE clause has these matches: {message}", hint=hint, code=CODE, **place)  # type: ignore[arg-type]

    def _check_clauses(self) -> None:
        query = self.query
        if self.strategy is s.Strategy.SKIP_TILL_ANY:
            message = "skip_till_any_match reports every combination of events, a clause one match for each first row"
            self._refuse(message, query.selection or query, "write WHERE skip_till_next_match { ... }")
        for name, node in {
            "THRESHOLD": query.threshold,
            "CONFIDENCE": query.confidence,
            "FORECAST": query.forecast,
            "SUMMARISE": query.summary,
            "FROM": query.sources or None,
            "DEFINE": query.definitions or None,
            "a strategy for single steps": query.step_selections or None,
            f"OUTPUT {query.output.mode.value}": None if query.output.mode is s.OutputMode.ALL else query.output,
        }.items():
            if node is not None:
                at = node if isinstance(node, s.Node) else node[0] if isinstance(node, tuple) else query
                self._refuse(f"{name} has no counterpart", at if isinstance(at, s.Node) else query, "leave it out")
        for each in query.components:
            for name, clause in (("UNTIL", each.until), ("AFTER ... WITHIN", each.gap)):
                if clause is not None:
                    self._refuse(f"{name} has no counterpart", clause, "leave it out")
        window = query.within
        if window is not None and (window.unit == "events" or not isinstance(window.length, int | float)):
            self._refuse("this window has no counterpart", window, "write WITHIN with a length of time")
        for item in query.returns or ():
            if isinstance(item.expression, s.Reference | s.Star):
                self._refuse("SQL has no values that are whole events", item, "name its attributes, as in RETURN a.x")
        for part in p.walk(self.pattern):
            if isinstance(part, p.AnyOrder) and any(p.may_be_empty(each) for each in part.parts):
                self._refuse("AND with a part that may be absent", query, "leave that part out")
            if isinstance(part, p.Choice | p.AnyOrder) and not self.sql.choices:
                self._refuse(f"{self.sql.name} has no alternatives in patterns", query, "write a query for each")

    def _check_apart(self, follow: Follow) -> None:
        """At each point an event may go on in one way only: otherwise one first row has several matches."""
        labels = [label for label in follow if label != END]
        if END in follow and labels:
            message = f"a match that may end before {labels[0]} is reported with and without it"
            self._refuse(message, self.components[labels[0]], "end with a component that occurs once")
        for one, other in combinations(labels, 2):
            kinds = [self.components[label].types for label in (one, other)]
            if kinds[0] is None or kinds[1] is None or set(kinds[0]) & set(kinds[1]):
                message = f"an event can be {one} as well as {other}, which gives several matches"
                self._refuse(message, self.components[other], "give them different types")

    @property
    def _skips(self) -> bool:
        return self.strategy is s.Strategy.SKIP_TILL_NEXT

    @property
    def _across(self) -> bool:
        """Does the strategy see the events of all keys?"""
        return self.strategy is s.Strategy.STRICT_CONTIGUITY

    # --- the pattern ------------------------------------------------------------------------------------------------

    def _first(self, node: p.Pattern, follow: Follow) -> Follow:
        """What may come first, `follow` being what comes behind the node."""
        match node:
            case p.Single(label=label) if label in self.negatives:
                return {name: absent | {label} for name, absent in follow.items()}
            case p.Single(label=label):
                return {label: frozenset()}
            case p.Sequence(parts=parts):
                for part in reversed(parts):
                    follow = self._first(part, follow)
                return follow
            case p.Choice(parts=parts) | p.AnyOrder(parts=parts):
                found: Follow = {}
                for part in parts:
                    found |= self._first(part, follow)
                return found
            case p.Repeat(part=part, least=least):
                inside = self._first(part, follow)
                return inside if least else {**follow, **inside}
        raise TypeError(node)

    def _pattern(self, node: p.Pattern, follow: Follow) -> str:
        match node:
            case p.Single(label=label) if label in self.negatives:
                return ""
            case p.Single(label=label):
                return self._step(label, follow)
            case p.Sequence(parts=parts):
                texts = []
                for part in reversed(parts):
                    texts.append(self._pattern(part, follow))
                    follow = self._first(part, follow)
                return " ".join(text for text in reversed(texts) if text)
            case p.Choice(parts=parts):
                return f"({' | '.join(self._pattern(part, follow) for part in parts)})"
            case p.AnyOrder(parts=parts):
                return f"({' | '.join(self._orders(parts, follow))})"
            case p.Repeat(part=part, least=0, most=1):
                return f"({self._pattern(part, follow)})?"
            case p.Repeat():
                return self._repeated(node, follow)
        raise TypeError(node)

    def _orders(self, parts: Sequence[p.Pattern], follow: Follow) -> Iterable[str]:
        for place, part in enumerate(parts):
            rest = (*parts[:place], *parts[place + 1 :])
            if not rest:
                yield self._pattern(part, follow)
                continue
            others: p.Pattern = p.AnyOrder(rest) if len(rest) > 1 else rest[0]
            yield self._pattern(p.Sequence((part, others)), follow)

    def _repeated(self, node: p.Repeat, follow: Follow) -> str:
        if node.least == node.most and node.least <= _MOST_ROUNDS:
            return self._pattern(p.Sequence((node.part,) * node.least), follow)
        if self._skips:
            message = "a group that may go on is reported each time it closes under skip_till_next_match"
            hint = "give its number, as in B{3} b[], or use partition_contiguity"
            self._refuse(message, self.query.selection or self.query, hint)
        again = {**follow, **self._first(node.part, follow)}
        most = "" if node.most is None else node.most
        quantifier = f"{{{node.least},{most}}}" if node.most is not None or node.least > 1 else "*+"[node.least]
        inside = self._pattern(node.part, again)
        return f"{inside}{quantifier}" if isinstance(node.part, p.Single) else f"({inside}){quantifier}"

    def _step(self, label: str, follow: Follow) -> str:
        """A variable, and the variable for what may be passed over behind it."""
        self._check_apart(follow)
        self._check_end(follow)
        if not self._skips or END in follow:
            return self.sql.quoted(label)
        absent = set(follow.values())
        if len(absent) > 1:
            self._refuse("an absence before only some of what may come next", self.query, "make no part of it optional")
        taken = [self._condition(name, passing=True) for name in follow]
        killing = [self._absence(name) for name in sorted(absent.pop())]
        passed = " AND ".join(f"NOT COALESCE({each}, FALSE)" for each in (*taken, *killing))
        name = free_name(f"skip{len(self.skips) + 1}", [*self.components, *self.skips])
        self.skips[name] = passed
        return f"{self.sql.quoted(label)} {self.sql.quoted(name)}*"

    def _check_end(self, follow: Follow) -> None:
        if follow.get(END):
            (name, *_) = sorted(follow[END])
            self._refuse(f"the absence of {name} at the end", self.components[name], "end with an event that occurs")

    # --- conditions -------------------------------------------------------------------------------------------------

    def _split(self) -> tuple[list[s.Expression], list[str]]:
        """WHERE in parts: conditions, and the attributes of equivalence tests."""
        pending, found, keys = [self.query.where] if self.query.where is not None else [], [], list[str]()
        while pending:
            each = pending.pop(0)
            if isinstance(each, s.And):
                pending[:0] = each.operands
            elif isinstance(each, s.Equivalence):
                keys += [name for name, _ in each.tests]
                self.fixed |= {name: value for name, value in each.tests if value is not None}
            elif any(isinstance(part, s.Equivalence) for part in s.walk(each)):
                self._refuse("an equivalence test inside a condition", each, "make it a part of WHERE by itself")
            else:
                found.append(each)
        for each in found:
            self._check_condition(each)
        return found, list(dict.fromkeys(keys))

    def _check_condition(self, condition: s.Expression) -> None:
        mentioned = s.variables_of(condition)
        for name in mentioned:
            if self.components[name].any:
                message = f"{name} is declared with ANY, where a comparison with NULL counts as true"
                self._refuse(message, condition, "write a component for each type")
        for name in mentioned & self.negatives:
            if any(isinstance(part, s.Or) for part in s.walk(condition)):
                self._refuse(f"OR about {name}, which must not occur", condition, "write a query for each part")
        odd = any(isinstance(part, s.IsNull | s.Call | s.Length) for part in s.walk(condition))
        for name in sorted(mentioned - self.negatives - self._always):
            if len(mentioned) > 1 or odd:
                message = f"'{expression_text(condition)}' has another meaning in SQL where {name} does not occur"
                self._refuse(message, condition, f"compare {name} with constants only")

    @property
    def _always(self) -> frozenset[str]:
        """The variables that are in every match."""

        def inside(node: p.Pattern) -> frozenset[str]:
            match node:
                case p.Single(label=label):
                    return frozenset({label})
                case p.Sequence(parts=parts) | p.AnyOrder(parts=parts):
                    return frozenset().union(*map(inside, parts))
                case p.Repeat(part=part, least=least):
                    return inside(part) if least else frozenset()
            return frozenset()

        return inside(self.pattern)

    def _place(self, condition: s.Expression) -> str | None:
        """The variable at which a condition can be judged: the last that it mentions. Orders may differ in AND."""
        mentioned = s.variables_of(condition)
        order = [name for name in p.labels_of(self.pattern) if name in mentioned]
        for node in p.walk(self.pattern):
            if isinstance(node, p.AnyOrder) and len(mentioned & set(p.labels_of(node))) > 1:
                self._refuse(f"'{expression_text(condition)}' is about events in any order", condition, "leave it out")
        return order[-1] if order else self.write.only

    def _condition(self, label: str, passing: bool = False) -> str:
        """What an event must pass to be taken as a variable; `passing`: it is not yet taken."""
        parts = self._type_test(label)
        for each in self.conjuncts:
            place = self._place(each)
            if place is None or s.variables_of(each) & self.negatives:
                if place is None:
                    self._refuse(f"'{expression_text(each)}' is about no event", each, "leave it out")
                continue
            if place == label:
                parts.append(f"({self._judged(each, label, passing)})")
        if self._across:
            parts += [f"{self.sql.quoted(key)} = FIRST({self.sql.quoted(key)})" for key in self.keys]
        return f"({' AND '.join(parts) or 'TRUE'})"

    def _judged(self, condition: s.Expression, label: str, passing: bool) -> str:
        text = replace(self.write, passing=passing)(condition, label)
        if label not in self.write.groups:
            return text
        references = [part for part in s.walk(condition) if isinstance(part, s.Reference) and part.variable == label]
        if any(each.element is s.Element.PREVIOUS for each in references):
            return f"COUNT({self.sql.quoted(label)}.*) = {0 if passing else 1} OR ({text})"
        return text

    def _absence(self, label: str) -> str:
        """What an event passes that must not occur."""
        parts = self._type_test(label)
        place = list(p.labels_of(self.pattern)).index(label)
        later = set(p.labels_of(self.pattern)[place + 1 :])
        for each in self.conjuncts:
            mentioned = s.variables_of(each)
            if label in mentioned:
                if mentioned & later or len(mentioned & self.negatives) > 1:
                    message = f"'{expression_text(each)}' compares {label} with what comes after it"
                    self._refuse(message, each, "compare it with earlier events")
                parts.append(f"({self.write(each, label)})")
        return f"({' AND '.join(parts) or 'TRUE'})"

    def _type_test(self, label: str) -> list[str]:
        types = self.components[label].types
        if types is None or self.type is None:
            return []
        column = self.sql.quoted(self.type)
        values = ", ".join("'" + each.replace("'", "''") + "'" for each in types)
        return [f"{column} = {values}" if len(types) == 1 else f"{column} IN ({values})"]

    def _definitions(self, first: Follow) -> Iterable[str]:
        last = self._last(self.pattern)
        for label in p.labels_of(self.pattern):
            if label in self.negatives:
                continue
            text = self._condition(label)
            if label in first:
                tests = [f"{self.sql.quoted(key)} IS NOT NULL" for key in self.keys if key not in self.fixed]
                tests += [f"{self.sql.quoted(key)} = {self.write(value)}" for key, value in self.fixed.items()]
                text = " AND ".join([text, *tests])
            if label in last and self.query.within is not None and not self.sql.window:
                time = self.sql.quoted(self.time)
                text = f"{text} AND {time} - FIRST({time}) < {self._window()}"
            yield f"{self.sql.quoted(label)} AS {text}"
        for name, passed in self.skips.items():
            yield f"{self.sql.quoted(name)} AS {passed}"

    def _last(self, node: p.Pattern) -> frozenset[str]:
        """The variables that a match may end with."""
        match node:
            case p.Single(label=label):
                return frozenset() if label in self.negatives else frozenset({label})
            case p.Choice(parts=parts) | p.AnyOrder(parts=parts):
                return frozenset().union(*map(self._last, parts))
            case p.Repeat(part=part):
                return self._last(part)
            case p.Sequence(parts=parts):
                found: frozenset[str] = frozenset()
                for part in reversed(parts):
                    found |= self._last(part)
                    if not p.may_be_empty(part) and self._last(part):
                        break
                return found
        return frozenset()

    def _window(self) -> str:
        window = self.query.within
        assert window is not None
        assert not isinstance(window.length, s.Name)
        return repr(window.length) if window.unit is None else self.sql.interval(window.length, window.unit)

    def _within_clause(self) -> str:
        window = self.query.within
        assert window is not None
        if window.unit is None:
            self._refuse(f"{self.sql.name} counts windows in units of time", window, "give WITHIN a unit")
        return f"WITHIN {self._window()}"

    # --- what comes out ---------------------------------------------------------------------------------------------

    def _measures(self) -> Iterable[str]:
        time, quoted = self.sql.quoted(self.time), self.sql.quoted
        yield f"FIRST({time}) AS {quoted('match_start')}"
        yield f"LAST({time}) AS {quoted('match_end')}"
        if self.query.returns is not None:
            for item in self.query.returns:
                yield f"{self.write(item.expression)} AS {quoted(returned_name(item))}"
            return
        for name, component in self.components.items():
            if component.negative:
                continue
            if name in self.write.groups:
                for edge in ("first", "last"):
                    yield f"{edge.upper()}({quoted(name)}.{time}) AS {quoted(f'{name}_{edge}')}"
            else:
                yield f"{quoted(name)}.{time} AS {quoted(f'{name}_{self.time}')}"

    def _list(self, names: Iterable[str]) -> str:
        return ", ".join(self.sql.quoted(name) for name in names)
