"""Row patterns on Spark: the rows of a partition go to one task, which runs the engine on all it was given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cepheid.engine.search.row_pattern.run import needed_columns
from cepheid.errors import CepheidError, QueryError
from cepheid.language.free_names import free_name
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.keys import with_columns
from cepheid.language.match_recognize.syntax import Clause
from cepheid.language.match_recognize.tokens import tokens
from cepheid.language.match_recognize.zone_use import zone_matters
from cepheid.language.zones import zone_called
from cepheid.runners.options import RowOptions
from cepheid.runners.rows import RowLanguage, RowSearch, bound_to
from cepheid.runners.spark.row_conditions import with_flags
from cepheid.runners.spark.row_expressions import ColumnWriter
from cepheid.runners.spark.row_functions import SparkParts, refused, with_spark_functions
from cepheid.runners.spark.searches import Above, match_search
from cepheid.runners.spark.session import ZONE, DataFrame, arrow_schema, session_zone
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.unpack import LATE_EVENT
from cepheid.runners.spark.workers import with_workers


@with_workers
def match_spark_rows(df: DataFrame, clause: Clause, options: RowOptions, above: Above | None = None) -> DataFrame:
    """The rows that a clause makes of a Spark table; with queries `above` it, their common result."""
    clause = with_columns(clause, df.columns)
    parts = with_spark_functions(df, clause, unsafe=options.unsafe_functions)
    try:
        return _match(parts, options, df.columns, above)
    except QueryError as error:
        if error.code != "types" or parts.around or above is not None:
            raise
        return _match_with_all_by_spark(df, clause, options, error)


def _match_with_all_by_spark(df: DataFrame, clause: Clause, options: RowOptions, error: QueryError) -> DataFrame:
    """The same with Spark's own operators in the measures, where ours know no such types."""
    try:
        parts = with_spark_functions(df, clause, everything=True, unsafe=options.unsafe_functions)
        return _match(parts, options, df.columns)
    except CepheidError:
        raise error from None


def _match(parts: SparkParts, options: RowOptions, own: list[str], above: Above | None = None) -> DataFrame:
    """The rows of a clause over a table; `own` are the columns that the table had before Spark computed others."""
    df, clause = with_flags(parts.df, parts.clause)
    zone = clause_zone(parts, options.tz)
    columns = needed_columns(bound_to(clause, arrow_schema(df), zone))
    rows = df.select(*[quoted(name) for name in columns])
    search = RowLanguage(clause).bind(arrow_schema(rows), replace(options, tz=zone))
    if above is not None and (parts.around or parts.hidden):
        reader = next(iter(above.readers))
        message = f"query '{reader}' reads '{above.name}', of which Spark computes measures or keys after the search"
        raise CepheidError(message, hint="on a stream, compute them before: select(..., expr('...').alias('name'))")
    found = match_search(rows, search, options, lambda: row_aspects(search, clause), own, above)
    if above is not None:
        return found
    return finished(found, parts, search.clause)


def row_aspects(search: RowSearch, clause: Clause) -> dict[str, Any]:
    """What decides the result of a clause over a stream, under the names a user knows."""
    aspects: dict[str, object] = {
        "text": [token.text for token in tokens(clause.text)],
        "dialect": clause.dialect,
        "columns": [(field.name, str(field.type)) for field in search.columns],
    }
    if zone_matters(search.clause, [field.name for field in search.columns if getattr(field.type, "tz", None)]):
        aspects["time zone"] = search.clause.zone
    return aspects


def clause_zone(parts: SparkParts, tz: str | None) -> str:
    """The zone of a clause: the session's, in which Spark computes its part, unless another was passed."""
    zone = session_zone(parts.df.sparkSession)
    if tz is None or zone_called(tz) == zone:
        return zone
    if parts.around or parts.hidden:
        message = f"Spark computes some functions of this clause, in the session's time zone {zone} and not in {tz}"
        raise CepheidError(message, hint=f"set {ZONE} to {tz}, and leave tz out")
    return zone_called(tz)


def finished(matched: DataFrame, parts: SparkParts, bound: BoundClause) -> DataFrame:
    """The result's columns with their names; the measures that Spark computes are computed.

    Late rows of a stream come in a column of their own, and have no measures.
    """
    from pyspark.sql import functions as F

    names = bound.output_columns
    late = [LATE_EVENT] if len(matched.columns) > len(names) else []
    if not parts.around:
        shown = [number for number, name in enumerate(names) if name not in parts.hidden]
        found = matched.select(*[f"_{number}" for number in shown], *late)
        return found.toDF(*[names[number] for number in shown], *late)
    given = {name for name, _ in bound.measures}
    own = free_name("_", given)
    renamed = matched.toDF(*[name if name in given else f"{own}{number}" for number, name in enumerate(names)], *late)
    first = next(number for number, name in enumerate(names) if name in given) if given else len(bound.partition_by)
    before = [F.col(f"{own}{at}") for at, name in enumerate(names[:first]) if name not in parts.hidden]
    after = [at for at in range(first, len(names)) if names[at] not in given and names[at] not in parts.hidden]
    measured = []
    for measure in parts.measures:
        around = parts.around.get(measure.name.name)
        try:
            if around is None:
                measured.append(F.col(quoted(measure.name.name)))
                continue
            made = ColumnWriter(renamed, around.text, unsafe=parts.unsafe).column(around.expression)
            if parts.matched is not None:
                made = F.when(F.col(quoted(parts.matched)).isNotNull(), made)
            measured.append(F.when(F.col(LATE_EVENT).isNull(), made) if late else made)
            renamed.select(measured[-1]).schema  # noqa: B018 - asks Spark whether it can be computed
        except Exception as error:
            raise refused(parts.clause.text, measure.span, error) from None
    named = [*(name for name in names[:first] if name not in parts.hidden), *(m.name.name for m in parts.measures)]
    found = renamed.select(*before, *measured, *[F.col(f"{own}{at}") for at in after], *late)
    return found.toDF(*named, *[names[at] for at in after], *late)
