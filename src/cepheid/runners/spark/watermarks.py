"""Watermarks of the user's around a match: the one before it gives the delay, and then is taken out of the plan.

A match has a clock of its own and needs no watermark of Spark. Spark refuses a second watermark further on in the same
plan, as `matches.withWatermark(...).groupBy(window(...))` has it, when the second micro-batch is planned. So the one
before the match goes, unless an operator in front of the match needs it.
"""

from __future__ import annotations

import copy
from typing import Any

from cepheid.errors import CepheidError
from cepheid.runners.spark.session import DataFrame

# Operators without state: a watermark in front of them serves nobody but what comes after them.
_STATELESS = frozenset(
    {"Project", "Filter", "SubqueryAlias", "Generate", "CollectMetrics", "ResolvedHint", "MapInArrow"}
)
_STATELESS |= {
    "MapInPandas",
    "PythonMapInArrow",
    "Repartition",
    "RepartitionByExpression",
    "WithColumns",
    "Drop",
    "ToDF",
}
_STATELESS |= {"WithColumnsRenamed", "ColumnsRenamed", "DropColumns", "Union", "SetOperation", "Hint"}
_WATERMARKS = frozenset({"EventTimeWatermark", "WithWatermark"})


def without_watermark(df: DataFrame) -> DataFrame:
    """The same stream without the watermarks that only its reader would use."""
    session = df.sparkSession
    if not hasattr(df, "_jdf"):
        plan = _connect_plan(df._plan, df)
        return df if plan is df._plan else type(df)(plan, session)
    before = df._jdf.queryExecution().analyzed()
    if "EventTimeWatermark" not in before.toString():
        return df
    after = _plan(before, session._jvm)
    made = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, after)
    return type(df)(made, session)


def _plan(node: Any, jvm: Any) -> Any:
    """A plan of Spark's without these watermarks."""
    name = node.nodeName()
    if name in _WATERMARKS:
        return _plan(node.child(), jvm)
    if name not in _STATELESS:
        return node
    children = _children(node)
    changed = [_plan(child, jvm) for child in children]
    if all(new.equals(old) for new, old in zip(changed, children, strict=True)):
        return node
    return node.withNewChildren(jvm.PythonUtils.toSeq(changed))


def _connect_plan(node: Any, df: DataFrame) -> Any:
    """The same for a plan of Spark Connect's client."""
    child = getattr(node, "_child", None)
    name = type(node).__name__
    if child is None or name not in _STATELESS | _WATERMARKS:
        return node
    changed = _connect_plan(child, df)
    if name in _WATERMARKS:
        plain = type(df)(changed, df.sparkSession).select("*")._plan
        plain._root_plan_id = node._root_plan_id  # by which columns of the user's may name it
        return plain
    if changed is child:
        return node
    found = copy.copy(node)
    found._child = changed
    return found


def check_watermarks(plan: Any) -> None:
    """An error if there are watermarks both in front of a match and after it, which Spark would refuse later on."""
    if plan.toString().count("EventTimeWatermark") > 1 and _watermarks_below(plan)[1]:
        raise CepheidError(
            "the stream has a watermark in front of the match, which another operator there uses, and one after it: "
            "Spark allows one of them",
            hint="write the matches to a table, and read them from there with the second watermark",
        )


def _watermarks_below(node: Any) -> tuple[bool, bool]:
    """Is there a watermark in a plan, and one above another?"""
    below = [_watermarks_below(child) for child in _children(node)]
    some, twice = any(found for found, _ in below), any(found for _, found in below)
    name = node.nodeName()
    if name.startswith("TransformWithState") and node.timeMode().toString() == "ProcessingTime":
        return False, twice  # no time of events comes out of it
    return (True, twice or some) if name in _WATERMARKS else (some, twice)


def _children(node: Any) -> list[object]:
    children = node.children()
    return [children.apply(number) for number in range(children.length())]
