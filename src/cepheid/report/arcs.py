"""The ways past unseen events, as the automaton draws them: which components they skip, at what score at most."""

from __future__ import annotations

from cepheid.plan.drawing import Arc
from cepheid.plan.physical import Plan


def arcs_of(plan: Plan) -> list[Arc]:
    """The arcs of a plan for missing events; none for any other."""
    if plan.engine != "queues":
        return []
    from cepheid.engine.scoring.edges import build_edges

    found = []
    for edge in build_edges(plan).edges:
        if any(not component.negative for component in edge.skipped):
            assert edge.table is not None
            names = ", ".join(component.variable for component in edge.skipped if not component.negative)
            score = f"at most {edge.table.highest:.2g}" if edge.kept else "never reaches the threshold"
            found.append(Arc(edge.source, edge.target, f"{names} unseen: {score}", dropped=not edge.kept))
    return found
