"""A clause and the columns of a table: names resolved, every reference to rows made explicit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language import pattern as p
from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.library.scalars import KNOWN_TYPES, type_parts
from cepheid.language.match_recognize import bound as b
from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.check import label_argument, labels_used
from cepheid.language.match_recognize.dialects import DIALECTS, name_in_other_dialects
from cepheid.language.match_recognize.functions import (
    CLOCKS,
    FUNCTIONS,
    MATCH_FUNCTIONS,
    NAVIGATIONS,
    is_built_in,
    written_for,
)
from cepheid.language.zones import IN_UTC, zone_info


@dataclass(frozen=True)
class Columns:
    """The columns of a table: their names, and which of them hold times."""

    names: tuple[str, ...]
    times: frozenset[str] = frozenset()
    zone: str | None = None  # the query's, if some of them hold instants


def bind_keys(clause: m.Clause, columns: Columns) -> tuple[b.ComputedKey, ...]:
    """The keys of PARTITION BY and ORDER BY that the table has no column for."""
    binder = _Binder(clause, columns)
    missing = [key for key in clause.keys if key.name not in columns.names]
    return tuple(b.ComputedKey(key.name, binder.at_row(key.expression), key.shown) for key in missing)


def bind_clause(clause: m.Clause, columns: Columns, keys: tuple[b.ComputedKey, ...] = ()) -> b.BoundClause:
    """The clause over a table with these columns, some of them computed; a QueryError points at what does not fit."""
    binder = _Binder(clause, columns)
    partition_by = tuple(dict.fromkeys(binder.column(name) for name in clause.partition_by))
    order_by = tuple(
        b.SortKey(binder.column(key.column), key.descending, binder.nulls_first(key.descending, key.nulls_first))
        for key in clause.order_by
    )
    bound = b.BoundClause(
        pattern=clause.pattern,
        labels=p.labels_of(clause.pattern),
        conditions={definition.label.canonical: binder.bind(definition.condition) for definition in clause.definitions},
        columns=columns.names,
        partition_by=partition_by,
        order_by=order_by,
        measures=tuple(binder.measures()),
        rows=clause.rows,
        skip=clause.skip.to,
        skip_labels=binder.labels(clause.skip.label) if clause.skip.label is not None else None,
        within=binder.within(order_by),
        text=clause.text,
        skip_span=clause.skip.span,
        dialect=clause.dialect,
        longest=clause.longest,
        zone=columns.zone,
        partial=clause.partial,
        keys=keys,
    )
    binder.check_names(bound)
    return bound


class _Binder:
    """Resolves the names of one clause."""

    def __init__(self, clause: m.Clause, columns: Columns) -> None:
        self.clause = clause
        self.dialect = DIALECTS[clause.dialect]
        self.columns = columns
        self.subsets: Mapping[str, frozenset[str]] = {
            subset.name.canonical: frozenset(label.canonical for label in subset.labels) for subset in clause.subsets
        }
        self.now = datetime.now(UTC)
        self.earlier: dict[str, s.Expression] = {}  # measures that later ones may name

    def fail(self, message: str, span: p.Span, code: str, hint: str | None = None) -> NoReturn:
        raise QueryError(message, text=self.clause.text, start=span[0], end=span[1], hint=hint, code=code)

    def nulls_first(self, descending: bool, written: bool | None) -> bool:
        if written is not None:
            return written
        if self.dialect.nulls == "last":
            return False
        return descending if self.dialect.nulls == "large" else not descending

    def labels(self, label: m.Identifier | None) -> b.Labels:
        if label is None:
            return None
        return self.subsets.get(label.canonical, frozenset({label.canonical}))

    def column(self, name: m.Identifier, *, before_a_dot: bool = False) -> str:
        """The table's name of a column: exactly as written if there is one, else whatever the case."""
        if name.name in self.columns.names:
            return name.name
        near = [known for known in self.columns.names if known.lower() == name.name.lower()]
        if len(near) == 1:
            return near[0]
        if near:
            self.fail(f"'{name}' may be {' or '.join(near)}", name.span, "ambiguous-column")
        if before_a_dot:  # neither a label nor a struct, more likely meant as a label
            known = [*p.labels_of(self.clause.pattern), *self.subsets]
            guess = closest(name.canonical, known)
            hint = f"did you mean {guess}?" if guess else f"the labels are {', '.join(known)}"
            self.fail(f"no label '{name}'", name.span, "unknown-label", hint)
        guess = closest(name.name, self.columns.names)
        hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(self.columns.names[:12])}"
        self.fail(f"no column '{name}'", name.span, "unknown-column", hint)

    def within(self, order_by: tuple[b.SortKey, ...]) -> int | None:
        expression = self.clause.within
        if expression is None:
            return None
        if not order_by:
            self.fail("WITHIN without ORDER BY", expression.span, "within", "add the time: ORDER BY ts")
        if order_by[0].descending:
            self.fail("WITHIN needs an ascending time", expression.span, "within", "order by it ascending")
        if isinstance(expression, m.Literal) and isinstance(expression.value, m.Months):
            self.fail("months and years have no fixed length", expression.span, "interval", "write it in days")
        if not isinstance(expression, m.Literal) or not isinstance(expression.value, int | timedelta):
            self.fail("WITHIN needs an interval", expression.span, "within", "write WITHIN INTERVAL '1' HOUR")
        is_time = order_by[0].column in self.columns.times
        if isinstance(expression.value, timedelta):
            if not is_time:
                hint = "write WITHIN and a number"
                self.fail(f"'{order_by[0].column}' is not a time", expression.span, "within", hint)
            length = expression.value // timedelta(microseconds=1)
        else:
            if is_time:
                self.fail("WITHIN needs a unit", expression.span, "within", "write WITHIN INTERVAL '1' HOUR")
            length = int(expression.value)
        if length <= 0:
            self.fail("WITHIN needs a length above zero", expression.span, "within")
        return length

    def check_names(self, bound: b.BoundClause) -> None:
        """No two columns of the result have one name."""
        others = {name.lower() for name in (bound.partition_by if bound.rows is m.Rows.ONE else bound.columns)}
        for measure in self.clause.measures:
            if measure.name.name.lower() in others:
                hint = "give the measure another name"
                self.fail(f"'{measure.name}' is a column of the table", measure.name.span, "duplicate-column", hint)

    def measures(self) -> Iterator[tuple[str, s.Expression]]:
        """The measures with their names; one may name an earlier one, if no column has that name."""
        for measure in self.clause.measures:
            value = self.bind(measure.expression)
            yield measure.name.name, value
            self.earlier[measure.name.canonical] = value

    # expressions

    def constant(self, literal: m.Literal) -> s.Literal:
        """A literal; a time without an offset is one of the query's zone."""
        value = literal.value
        if isinstance(value, datetime) and self.columns.zone is not None:
            zone = zone_info(self.columns.zone)
            known = value if value.tzinfo is not None else value.replace(tzinfo=zone)
            value = known.astimezone(UTC).astimezone(zone)
        return s.Literal(value, span=literal.span)  # type: ignore[arg-type]

    def clock(self, name: str) -> s.Literal:
        """The time at which a query begins."""
        now = self.now.astimezone(zone_info(self.columns.zone or IN_UTC))
        return s.Literal(now.date() if name == "current_date" else now)

    def applied(
        self, function: str, arguments: tuple[s.Expression, ...], target: str | None, span: p.Span
    ) -> s.Expression:
        """A function of values; a CAST to a timestamp reads and gives times of the query's zone."""
        stamp = function == "cast" and type_parts(target or "")[0] in ("timestamp", "datetime")
        if stamp and self.columns.zone is not None:
            return b.applied("in zone", arguments, self.columns.zone, span)
        found = b.applied(function, arguments, target, span)
        if isinstance(found, s.Call):
            self.check_constants(found)
        return found

    def read(self, reference: m.Reference) -> s.Expression:
        """A column of a row, or a field of a struct in it."""
        value: s.Expression = b.Column(self.column(reference.column, before_a_dot=bool(reference.fields)))
        for name in reference.fields:
            value = b.applied("struct field", (value,), name.name, reference.span)
        return value

    def is_earlier(self, name: m.Identifier) -> bool:
        """Is it the name of an earlier measure, and of no column?"""
        columns = {column.lower() for column in self.columns.names}
        return name.canonical in self.earlier and name.name.lower() not in columns

    def bind(self, expression: m.Expression) -> s.Expression:
        """An expression outside of navigation and aggregates."""
        match expression:
            case m.Literal():
                return self.constant(expression)
            case m.Reference(label=None, column=column, fields=()) if self.is_earlier(column):
                return self.earlier[column.canonical]
            case m.Reference(label=label):
                return b.Navigate(self.read(expression), self.labels(label))
            case m.Operation(operator="lambda"):
                self.fail("only functions of Spark take a lambda", expression.span, "lambda")
            case m.Operation(operator=operator, operands=operands, target=target):
                self.check_cast(expression)
                return self.applied(operator, tuple(map(self.bind, operands)), target, expression.span)
            case m.Call(name=name) if name in NAVIGATIONS:
                return self.navigate(expression, shift=0)
            case m.Call(name=name) if name in AGGREGATES:
                return self.aggregate(expression)
            case m.Call(name=name) if name in MATCH_FUNCTIONS:
                return self.of_the_match(expression)
            case m.Call(name=name, arguments=()) if name in CLOCKS:
                return self.clock(name)
            case m.Call(arguments=arguments):
                return self.called(expression, tuple(map(self.bind, arguments)))
        raise TypeError(f"no expression: {expression}")

    def of_the_match(self, call: m.Call) -> s.Expression:
        match call.name:
            case "match_number":
                return b.MatchNumber()
            case "match_sequence_number" | "match_row_number":
                return b.SequenceNumber()
            case "match_rowtime":
                if call.arguments and isinstance(call.arguments[0], m.Reference):
                    return b.Navigate(self.read(call.arguments[0]), final=True)
                if not self.clause.order_by:
                    self.fail("MATCH_ROWTIME without ORDER BY", call.span, "within", "add the time: ORDER BY ts")
                return b.Navigate(b.Column(self.column(self.clause.order_by[0].column)), final=True)
        label = label_argument(call.arguments[0]) if call.arguments else None
        return b.Navigate(b.RowLabel(), self.labels(label))

    def navigate(self, call: m.Call, shift: int) -> b.Navigate:
        written = call.arguments[1] if len(call.arguments) == 2 else None
        offset = written.value if isinstance(written, m.Literal) and isinstance(written.value, int) else None
        if call.name in ("prev", "lag", "next", "lead"):
            steps = 1 if offset is None else offset
            shift = -steps if call.name in ("prev", "lag") else steps
            inner = call.arguments[0]
            if isinstance(inner, m.Call) and inner.name in ("first", "last"):
                return self.navigate(inner, shift)
            return b.Navigate(self.at_row(inner), self.labels(self.label_in(call)), shift=shift)
        return b.Navigate(
            self.at_row(call.arguments[0]),
            self.labels(self.label_in(call)),
            call.name == "first",
            offset or 0,
            shift,
            call.mode is m.Mode.FINAL,
        )

    def label_in(self, call: m.Call) -> m.Identifier | None:
        """The one label that the columns of a call are of."""
        return next((label for part in call.arguments for label in labels_used(part) if label is not None), None)

    def aggregate(self, call: m.Call) -> s.Expression:
        labels = self.labels(self.label_in(call))
        rows = not call.arguments or isinstance(call.arguments[0], m.Star)
        arguments = () if rows else tuple(self.at_row(argument) for argument in call.arguments)
        order = tuple((key.descending, self.nulls_first(key.descending, key.nulls_first)) for key in call.order)

        def over(function: str) -> b.Aggregated:
            final = call.mode is m.Mode.FINAL
            return b.Aggregated(function, arguments, labels, final, call.distinct, order, call.filtered, span=call.span)

        if call.name == "array_agg" and not self.dialect.nulls_in_arrays:
            return over("collect_list")
        if call.name == "avg" and self.dialect.whole_average:
            return b.applied("whole /", (over("sum"), over("count")), None, call.span)
        return over(call.name)

    def at_row(self, expression: m.Expression) -> s.Expression:
        """An expression inside of a navigation or aggregate: its columns are those of the row at hand."""
        match expression:
            case m.Literal():
                return self.constant(expression)
            case m.Reference():
                return self.read(expression)
            case m.Operation(operator="lambda"):
                self.fail("only functions of Spark take a lambda", expression.span, "lambda")
            case m.Operation(operator=operator, operands=operands, target=target):
                self.check_cast(expression)
                return self.applied(operator, tuple(map(self.at_row, operands)), target, expression.span)
            case m.Call(name="classifier"):
                return b.RowLabel()
            case m.Call(name="match_number"):
                return b.MatchNumber()
            case m.Call(name=name, arguments=()) if name in CLOCKS:
                return self.clock(name)
            case m.Call(name=name) if name in MATCH_FUNCTIONS:
                self.fail(f"unexpected {name.upper()}", expression.span, "navigation-argument")
            case m.Call(arguments=arguments):
                return self.called(expression, tuple(map(self.at_row, arguments)))
        raise TypeError(f"no expression: {expression}")

    def called(self, call: m.Call, arguments: tuple[s.Expression, ...]) -> s.Expression:
        self.check_function(call)
        if is_built_in(call.name):
            if call.name in ("if", "iff") and len(arguments) == 2:
                arguments = (*arguments, s.Literal(None))
            name, target = written_for(call.name, len(arguments))
            return self.applied(name, arguments, target, call.span)
        return self.applied(call.name, arguments, None, call.span)

    def check_constants(self, call: s.Call) -> None:
        """A pattern, a unit or another argument that is a constant, and that the function cannot take."""
        function = find_function(call.function)
        places = function.constants if function is not None and function.wrong is not None else ()
        given = [call.arguments[place] for place in places if place < len(call.arguments)]
        known = [each.value for each in given if isinstance(each, s.Literal)]
        if function is None or function.wrong is None or not known or len(known) < len(given) or None in known:
            return
        wrong = function.wrong(known)
        if wrong is not None:
            self.fail(wrong, given[0].span, "bad-argument", f"it is written {function.shown}")

    def check_function(self, call: m.Call) -> None:
        if is_built_in(call.name):
            return
        own = find_function(call.name)
        if own is None or not own.user:
            hint = name_in_other_dialects(call.name)
            if hint is None:
                guess = closest(call.name, [*FUNCTIONS, *AGGREGATES, *NAVIGATIONS, *MATCH_FUNCTIONS])
                hint = f"did you mean {guess}?" if guess else "register one with cepheid.function"
            self.fail(f"no function '{call.name}'", call.name_span, "unknown-function", hint)
        if not own.least <= len(call.arguments) <= own.most:
            self.fail(f"{call.name} takes {own.least} to {own.most} arguments", call.span, "arguments")

    def check_cast(self, operation: m.Operation) -> None:
        if operation.target is not None and type_parts(operation.target)[0] not in KNOWN_TYPES:
            guess = closest(type_parts(operation.target)[0], KNOWN_TYPES)
            hint = f"did you mean {guess}?" if guess else None
            self.fail(f"no type '{operation.target}'", operation.span, "unknown-type", hint)
