"""onlinegp on Apache Spark 4: a model per key of a data frame or stream, or one model for a large data frame.

Only this package imports pyspark. It needs ``pip install 'onlinegp[spark]'``, and Java 17 or later.
"""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"onlinegp.spark needs pyspark, and Java 17 or later: pip install 'onlinegp[spark]' ({error})."
    ) from error

from onlinegp.spark.additive import fit
from onlinegp.spark.by_key import learn_keyed, run_keyed
from onlinegp.spark.states import models

__all__ = ["fit", "learn_keyed", "models", "run_keyed"]
