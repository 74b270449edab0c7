"""Drawn loss and gap models for the variables of drawn queries."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from cepheid.model import Exponential, Gamma, Model, Uniform
from cepheid.model.gap import GapDistribution

# Few distinct parameters: score tables are cached, and each new one costs milliseconds.
GAPS: tuple[GapDistribution, ...] = (
    Exponential(mean=2.0),
    Exponential(mean=4.0, happens=0.7),
    Uniform(0.0, 6.0),
    Uniform(1.0, 3.0, happens=0.9),
    Gamma(shape=2.0, scale=1.0),
)


@st.composite
def models(draw: st.DrawFn, variables: Iterable[str]) -> Model:
    """A loss and a gap for every variable."""
    names = sorted(variables)
    losses = st.sampled_from([0.0, 0.05, 0.2, 0.5])
    loss: float | dict[str, float] = draw(losses)
    if draw(st.booleans()):
        loss = {name: draw(losses) for name in names}
    return Model(loss=loss, gaps={name: draw(st.sampled_from(GAPS)) for name in names})
