"""Complex event processing for Apache Spark, for streams that miss events and clocks that disagree.

query = cepheid.query("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 12 hours")
matches = query.match(events)        # a pyarrow, pandas, polars or PySpark table, and the same kind back
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

from cepheid.errors import (
    CepheidError,
    DataError,
    EngineError,
    LimitError,
    ModelError,
    ModelWarning,
    QueryError,
    TiesWarning,
    TimeoutReached,
)

if TYPE_CHECKING:
    from cepheid import build as build
    from cepheid import examples as examples
    from cepheid import flink as flink
    from cepheid import metrics as metrics
    from cepheid import plot as plot
    from cepheid import sql as sql
    from cepheid.api import Query, fit, forecast, live, match, query, why
    from cepheid.files.read import read
    from cepheid.funnels import funnel
    from cepheid.language.build import any_of, event, seq
    from cepheid.language.expressions import attr, call, equivalent, var
    from cepheid.language.functions import function
    from cepheid.model import (
        ByAttribute,
        ByHour,
        Empirical,
        Exponential,
        Gamma,
        LogNormal,
        Model,
        Uniform,
        Weibull,
        load_model,
        register_distribution,
    )
    from cepheid.paths import next_events, retention
    from cepheid.pattern_query import FlinkQuery, RowQuery
    from cepheid.report.show import show
    from cepheid.runners.live_face import LiveFace as Live
    from cepheid.runners.spark.moving import read_checkpoint
    from cepheid.runners.spark.session import start_session

__version__ = "0.1.0"
__all__ = [
    "ByAttribute",
    "ByHour",
    "CepheidError",
    "DataError",
    "Empirical",
    "EngineError",
    "Exponential",
    "FlinkQuery",
    "Gamma",
    "LimitError",
    "Live",
    "LogNormal",
    "Model",
    "ModelError",
    "ModelWarning",
    "Query",
    "QueryError",
    "RowQuery",
    "TiesWarning",
    "TimeoutReached",
    "Uniform",
    "Weibull",
    "any_of",
    "attr",
    "call",
    "equivalent",
    "event",
    "fit",
    "forecast",
    "function",
    "funnel",
    "live",
    "load_model",
    "match",
    "next_events",
    "query",
    "read",
    "read_checkpoint",
    "register_distribution",
    "retention",
    "seq",
    "show",
    "start_session",
    "var",
    "why",
]

# Loaded on first use: a precise query needs neither the model's mathematics nor the builder, and of the processes that
# Spark starts for a stream only one needs a query.
_LATER = dict.fromkeys(("Query", "fit", "forecast", "live", "match", "query", "why"), "cepheid.api")
_LATER |= dict.fromkeys(("FlinkQuery", "RowQuery"), "cepheid.pattern_query")
_LATER["function"] = "cepheid.language.functions"
_LATER |= dict.fromkeys(("any_of", "attr", "call", "equivalent", "event", "seq", "var"), "cepheid.build")
_LATER |= dict.fromkeys(
    (
        "ByAttribute",
        "ByHour",
        "Empirical",
        "Exponential",
        "Gamma",
        "LogNormal",
        "Model",
        "Uniform",
        "Weibull",
        "load_model",
        "register_distribution",
    ),
    "cepheid.model",
)
_LATER["start_session"] = "cepheid.runners.spark.session"
_LATER["read_checkpoint"] = "cepheid.runners.spark.moving"
_LATER |= dict.fromkeys(("next_events", "retention"), "cepheid.paths")
_LATER["read"] = "cepheid.files.read"
_LATER["funnel"] = "cepheid.funnels"
_LATER["show"] = "cepheid.report.show"
_LATER["Live"] = "cepheid.runners.live_face"
_RENAMED = {"Live": "LiveFace"}
_SUBMODULES = frozenset({"api", "build", "examples", "flink", "metrics", "model", "plot", "sql"})

# A library says nothing by itself: who wants to hear what runs adds a handler to the logger `cepheid`.
logging.getLogger("cepheid").addHandler(logging.NullHandler())


if not TYPE_CHECKING:  # a type checker sees the names above, and that there are no others

    def __getattr__(name: str) -> object:
        if name in _LATER:
            return getattr(importlib.import_module(_LATER[name]), _RENAMED.get(name, name))
        if name in _SUBMODULES:
            return importlib.import_module(f"cepheid.{name}")
        raise AttributeError(f"module 'cepheid' has no attribute '{name}'")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext cepheid`: cells that begin with `%%cepheid` are queries."""
    importlib.import_module("cepheid.notebook").register(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER, *_SUBMODULES])
