"""The old name of `cepheid.runners.spark.session`, kept for a version."""

import warnings

from cepheid.runners.spark.session import start_session

__all__ = ["start_session"]

warnings.warn("cepheid.runners.spark_session is now cepheid.runners.spark.session", FutureWarning, stacklevel=2)
