"""The diagnosis: counts what survives each step, and what would without each condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.diagnose import relax
from cepheid.diagnose.closest import closest_to_a_match
from cepheid.diagnose.diagnosis import ComponentCount, ConditionCount, Count, Diagnosis, Hint, Without
from cepheid.diagnose.hints import Findings, find_hints
from cepheid.diagnose.stages import about_negation, count, find_stages
from cepheid.diagnose.window import needed_window
from cepheid.engine.choose import make_plan
from cepheid.engine.data.arrays import Bools
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.engine.values.columnwise import condition
from cepheid.engine.values.plain import columns_of, value_column
from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.checked import CheckedQuery
from cepheid.language.printing import component_text, expression_text, to_text
from cepheid.language.schema import ROW, Schema
from cepheid.plan.options import PlanOptions
from cepheid.runners.options import Options
from cepheid.runners.records import read_records
from cepheid.runners.tables import in_memory
from cepheid.runners.ties import in_row_order, with_rows
from cepheid.runners.whole_window import whole_window

MOST_EVENTS = 2_000_000
MOST_TRIED = 1e7  # combinations of a longer window that is tried: some tenths of a second
RUN_MEETS_EVENT = 5.0  # combinations that it is worth
_MOST_TYPES = 12  # shown of the types that occur


def diagnose(events: object, query: CheckedQuery, most_events: int, keywords: Mapping[str, object]) -> Diagnosis:
    """Why a query finds nothing or too little in a table; see `cepheid.why`."""
    given = Options.from_keywords(keywords)
    records = read_records(query, in_memory(events), given)
    given, columns = in_row_order(given, records.table.schema)
    arrow = with_rows(records.table, given, records.kept)
    schema = Schema.from_arrow(columns, **given.roles())
    whole = whole_window(query, arrow, given)
    bound = query.bind(schema, whole)
    if bound.summary is not None:  # what is lost are matches, whatever is made of them
        bound = CheckedQuery(replace(query.syntax, summary=None), None, query.parameters).bind(schema, whole)
    if not bound.is_linear:
        return _of_expression(query, bound, arrow, most_events, given)
    return _of_sequence(to_text(query.syntax), bound, arrow, most_events, given)


def _of_expression(
    query: CheckedQuery, bound: BoundQuery, arrow: pa.Table, most_events: int, given: Options
) -> Diagnosis:
    """Of the sequences that a pattern stands for, the one that came furthest; together they say if it matched."""
    queries = relax.linear_sequences(bound)
    if not queries:
        raise CepheidError("the conditions of this pattern cannot hold, whatever is chosen")
    options = replace(given, model=None) if given.model is not None else given
    reported = [_of_sequence("", sequence, arrow, most_events, options) for sequence in queries]
    furthest = max(range(len(reported)), key=lambda number: _how_far(reported[number]))
    subject = relax.Subject(bound, ordered(arrow, bound.schema), given.model, given.scoring)
    chosen = to_text(queries[furthest].syntax).splitlines()[0].removeprefix("PATTERN ")
    hint = Hint("one-of-several", f"the pattern expands to several sequences; this diagnosis covers {chosen}")
    return replace(
        reported[furthest],
        query=to_text(query.syntax),
        matches=count(_original(subject)),
        hints=(hint, *reported[furthest].hints),
    )


def _how_far(diagnosis: Diagnosis) -> tuple[bool, int, float]:
    """Did it match, how many components have no event at all, and what share of its steps had something left?"""
    empty = sum(component.passed == 0 for component in diagnosis.components if not component.negative)
    survived = sum(step.count.number > 0 for step in diagnosis.steps)
    return diagnosis.matches.number > 0, -empty, survived / max(2 * len(diagnosis.components), 1)


def _of_sequence(text: str, bound: BoundQuery, arrow: pa.Table, most_events: int, given: Options) -> Diagnosis:
    """The diagnosis of a plain sequence."""
    keys = () if bound.strict else bound.equivalence
    table, sample = relax.thinned(arrow, keys, most_events)
    subject = relax.Subject(bound, ordered(table, bound.schema), given.model, given.scoring)
    components = tuple(_component_count(subject, component) for component in bound.components)
    smaller = _small_enough(subject, components)
    if smaller is not subject:
        chosen = sample or f"{len(subject.events):,} events"
        sample = f"the first {len(smaller.events):,} of {chosen}: there are too many combinations to examine all"
        subject = smaller
        components = tuple(_component_count(subject, component) for component in bound.components)

    def cost(relaxed: BoundQuery) -> float:
        return 0.0 if relaxed.has_kleene else _combinations(relaxed, subject, components) / relax.MOST_COMBINATIONS

    def affordable(relaxed: BoundQuery) -> bool:
        return _work(relaxed, subject, components) <= MOST_TRIED

    matches = count(_original(subject))
    stages = find_stages(subject, components)
    impossible = any(component.passed == 0 for component in components if not component.negative)
    without = _without(subject, cost) if matches.number < relax.MOST_MATCHES else ()
    window = None if impossible else needed_window(subject, affordable, matches)
    closest = closest_to_a_match(subject, stages, affordable) if matches.number == 0 else None
    types = _types(table, bound.schema.type)
    hints = find_hints(Findings(subject, components, tuple(stages), without, window, types, matches))
    return Diagnosis(
        text,
        arrow.num_rows,
        sample,
        types[:_MOST_TYPES],
        matches,
        components,
        tuple(stage.step for stage in stages),
        without,
        window,
        closest,
        hints,
    )


def _original(subject: relax.Subject) -> Matches:
    plan, _ = make_plan(
        subject.bound,
        options=PlanOptions(
            model=subject.model,
            scoring=subject.scoring,
            max_matches=relax.MOST_MATCHES,
            max_partial_matches=20 * relax.MOST_MATCHES,
            truncate=True,
        ),
    )
    return find(plan, subject.events)


def _small_enough(subject: relax.Subject, components: tuple[ComponentCount, ...]) -> relax.Subject:
    """Fewer events where the query itself would have to look at too many combinations."""
    estimate = _combinations(subject.bound, subject, components)
    if estimate <= relax.MOST_COMBINATIONS or subject.bound.has_kleene:
        return subject
    return subject.first(relax.MOST_COMBINATIONS / estimate)


def _combinations(bound: BoundQuery, subject: relax.Subject, components: tuple[ComponentCount, ...]) -> float:
    counts = {}
    for component in components:
        kept = sum(c.own and c.variables == {component.variable} for c in bound.conjuncts)
        asked = sum(c.own and c.variables == {component.variable} for c in subject.bound.conjuncts)
        counts[component.variable] = component.of_type if kept < asked else component.passed
    keys = 1
    if bound.equivalence:
        column = subject.events.table.column(bound.equivalence[0])
        keys = 1 if pa.types.is_nested(column.type) else int(pc.count_distinct(column).as_py())
    return relax.combinations(bound, [counts[p.variable] for p in bound.positives], keys, subject.span)


def _work(bound: BoundQuery, subject: relax.Subject, components: tuple[ComponentCount, ...]) -> float:
    """About how much work a query is: its combinations; with groups, each run meets the events of its window."""
    if not bound.has_kleene:
        return _combinations(bound, subject, components)
    passed = {component.variable: component.passed for component in components}
    first, *others = (passed[component.variable] for component in bound.positives)
    return RUN_MEETS_EVENT * relax.combinations(bound, [first, sum(others)], 1, subject.span)


# --- events per component ---------------------------------------------------------------------------------------


def _component_count(subject: relax.Subject, component: s.Component) -> ComponentCount:
    """How many events have the component's type, pass each of its own conditions, and have a key."""
    table, schema = subject.events.table, subject.bound.schema
    size = len(subject.events)
    of_type = np.ones(size, bool)
    if component.types is not None and schema.type is not None:
        column = value_column(table.column(schema.type))
        of_type = _bools(pc.is_in(column, value_set=pa.array(list(component.types), column.type)), size)
    resolve = columns_of(table)
    unkeyed = np.zeros(size, bool)
    for name in subject.bound.equivalence:
        if not component.any:
            unkeyed |= _bools(pc.is_null(value_column(table.column(name))), size)
    passed = of_type & ~unkeyed
    conditions = []
    for part in subject.parts:
        expression = _about(part, component)
        if expression is not None:
            holds = _bools(condition(expression, resolve, component.any), size)
            conditions.append(ConditionCount(part.text, int((of_type & holds).sum())))
            passed &= holds
    return ComponentCount(
        component.variable,
        component_text(component, {component.variable}),
        component.negative,
        int(of_type.sum()),
        tuple(conditions),
        int((of_type & unkeyed).sum()),
        int(passed.sum()),
    )


def _about(part: relax.Part, component: s.Component) -> s.Expression | None:
    """What a condition asks of an event of the component alone, if anything."""
    if isinstance(part.expression, s.Equivalence):
        ((name, value),) = part.expression.tests
        attribute = s.Attribute(s.Reference(component.variable), name)
        return None if value is None else s.Comparison("=", attribute, value)
    return part.expression if part.own == component.variable else None


def _bools(column: object, size: int) -> Bools:
    if isinstance(column, pa.Scalar):
        return np.full(size, bool(column.as_py()))
    found: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(bool)
    return found


def _types(table: pa.Table, name: str | None) -> tuple[tuple[str, int], ...]:
    if name is None or table.num_rows == 0:
        return ()
    counted = value_column(table.column(name)).value_counts().to_pylist()
    found = [(str(item["values"]), int(item["counts"])) for item in counted]
    return tuple(sorted(found, key=lambda item: (-item[1], item[0])))


# --- without one thing ------------------------------------------------------------------------------------------


def _without(subject: relax.Subject, cost: Callable[[BoundQuery], float]) -> tuple[Without, ...]:
    """How many matches there would be without each condition, key, negation, and the strategy."""
    found: list[Without] = []

    def counted(kind: str, text: str, query: BoundQuery, among: relax.Subject = subject) -> None:
        if cost(query) <= 1.0:
            found.append(Without(kind, text, count(among.matches(query))))
        else:  # a lower bound, from fewer events
            some = len(among.first(1.0 / cost(query)).matches(query))
            found.append(Without(kind, text, Count(some, at_least=True) if some else None))

    for part in subject.parts:
        if not about_negation(subject, part):
            counted("key" if part.is_equivalence else "condition", part.text, subject.relaxed(without=[part]))
    for variable, ends in subject.bound.untils:
        endless = [replace(c, until=None) if c.variable == variable else c for c in subject.bound.components]
        counted("until", f"UNTIL {expression_text(ends)}", subject.relaxed(components=endless))
    for negation in subject.bound.negations:
        kept = [c for c in subject.bound.components if c is not negation.component]
        counted("negation", component_text(negation.component), subject.relaxed(components=kept))
    if subject.bound.strategies != {s.Strategy.SKIP_TILL_ANY}:
        counted("strategy", subject.bound.strategy_text, subject.relaxed(any_strategy=True))
    output = subject.bound.output
    if output.mode is not s.OutputMode.ALL:
        counted("output", f"OUTPUT {output.mode.value}", subject.relaxed())
    if subject.ties is not None:
        counted("ties", f"ties: with tiebreak='{ROW}'", subject.relaxed(), subject.in_row_order())
    return tuple(found)
