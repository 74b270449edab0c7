"""Complex event processing for Apache Spark, for streams that miss events and clocks that disagree."""

from cepheid.api import Query, match, query
from cepheid.errors import CepheidError, DataError, EngineError, LimitError, ModelError, QueryError
from cepheid.language.functions import function

__version__ = "0.1.0"
__all__ = [
    "CepheidError",
    "DataError",
    "EngineError",
    "LimitError",
    "ModelError",
    "Query",
    "QueryError",
    "function",
    "match",
    "query",
]
