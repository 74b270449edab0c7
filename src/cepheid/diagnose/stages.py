"""The way from events to matches, stage by stage: what is asked in addition, and how many survive it."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.diagnose.diagnosis import ComponentCount, Count, StepCount
from cepheid.diagnose.relax import Part, Subject
from cepheid.engine.data.matches import Matches
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Negation
from cepheid.language.printing import component_text, window_text


@dataclass(frozen=True)
class Stage:
    """A step, and the relaxed query that it counted."""

    step: StepCount
    place: int  # of the last component that takes part
    query: BoundQuery | None = None  # None: events of one component were counted
    pending: tuple[Part, ...] = ()  # conditions that are not asked yet
    part: Part | None = None  # the condition that this stage adds
    negation: s.Component | None = None  # the negated component that this stage adds


def count(matches: Matches) -> Count:
    """How many matches, and whether counting was cut short."""
    return Count(len(matches), matches.truncated)


def find_stages(subject: Subject, components: tuple[ComponentCount, ...]) -> list[Stage]:
    """Component by component, each condition and negation as soon as it can be judged.

    Ends with the first stage that nothing survives.
    """
    by_name = {component.variable: component for component in components}
    stages: list[Stage] = []
    for stage in _asked_in_turn(subject):
        if stage.query is None:
            survive = Count(by_name[subject.positives[stage.place].variable].passed)
        else:
            survive = count(subject.matches(stage.query))
        step = StepCount(stage.step.kind, stage.step.text, survive)
        stages.append(Stage(step, stage.place, stage.query, stage.pending, stage.part, stage.negation))
        if survive.number == 0:
            break
    return stages


def _asked_in_turn(subject: Subject) -> list[Stage]:
    stages: list[Stage] = []
    pending = [p for p in subject.parts if not p.is_equivalence and p.own is None and not about_negation(subject, p)]
    negations = list(subject.bound.negations)
    asked: list[s.Component] = []  # negated components that are asked for so far

    def add(kind: str, text: str, place: int, part: Part | None = None, negation: s.Component | None = None) -> None:
        chosen = subject.positives[: place + 1]
        kept = [c for c in subject.bound.components if c in chosen or c in asked]
        query = subject.relaxed(components=kept, without=pending) if kind != "events" else None
        stages.append(Stage(StepCount(kind, text, Count(0)), place, query, tuple(pending), part, negation))

    for place, component in enumerate(subject.positives):
        add("events", component_text(component, {component.variable}), place)
        if place > 0:
            add("join", _join_text(subject, place), place)
        variables = {c.variable for c in subject.positives[: place + 1]}
        for part in [p for p in pending if p.variables <= variables]:
            pending.remove(part)
            add("condition", part.text, place, part=part)
        last = place == len(subject.positives) - 1
        for negation in [n for n in negations if last or _inside(n, place)]:
            negations.remove(negation)
            asked.append(negation.component)
            add("negation", _negation_text(subject, negation.component), place, negation=negation.component)
    return stages


def _inside(negation: Negation, place: int) -> bool:
    """Can it be judged once the component at `place` is there? At the edges of the window only at the end."""
    return negation.after is not None and negation.before is not None and negation.before <= place


def about_negation(subject: Subject, part: Part) -> bool:
    """Does the condition mention a negated component?"""
    negated = {negation.component.variable for negation in subject.bound.negations}
    return not part.is_equivalence and bool(part.variables & negated)


def _join_text(subject: Subject, place: int) -> str:
    bound = subject.bound
    before, after = subject.positives[place - 1].variable, subject.positives[place].variable
    text = f"{after} {'right ' if bound.reached_by(after, False) in s.CONTIGUOUS else ''}after {before}"
    if bound.equivalence:
        text += f", same {', '.join(bound.equivalence)}"
    if bound.within is not None:
        text += f", within {window_text(bound.within)}"
    return text


def _negation_text(subject: Subject, component: s.Component) -> str:
    conditions = [p.text for p in subject.parts if not p.is_equivalence and component.variable in p.variables]
    text = component_text(component, {component.variable})
    return f"{text} with {' AND '.join(conditions)}" if conditions else text
