"""`cepheid demo`: a small store, its shoplifters, and what the query finds."""

from __future__ import annotations

from typing import Annotated

import typer

import cepheid
from cepheid.cli.match_table import match_table
from cepheid.cli.messages import explaining_delay, out
from cepheid.cli.stages import Stages
from cepheid.simulate import retail_visits

_Tags = Annotated[int, typer.Option(metavar="N", help="How many articles are picked from the shelves.", min=1)]
_Seed = Annotated[int, typer.Option(metavar="N", help="Another seed gives another day.")]


def demo(tags: _Tags = 300, seed: _Seed = 7) -> None:
    """Simulate a store and find who left without paying.

    Example:

        cepheid demo --tags 1000
    """
    stages = Stages()
    with stages.timed("simulate"):
        day = retail_visits(tags, loss=0.0, theft=0.02, timestamps=True, seed=seed)
    query = cepheid.query(day.query)
    out.print(f"{day.events.num_rows} readings of {tags} articles in a store. Which left it without being paid for?\n")
    out.print(str(query), style="cyan", end="\n\n")
    with stages.timed("match"), explaining_delay():
        found = cepheid.match(day.events, query)
    out.print(match_table(found))
    assert day.truth is not None
    stolen = {row["tag_id"] for row in day.truth.to_pylist() if row["stolen"]}
    caught = {row["x"]["tag_id"] for row in found.to_pylist()}
    out.print(
        f"\nReally stolen: {len(stolen)}; found: {len(caught & stolen)}; wrongly accused: {len(caught - stolen)}."
    )
    stages.print_summary(events=day.events.num_rows, matches=found.num_rows)
