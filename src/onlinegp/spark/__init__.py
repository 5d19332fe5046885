"""onlinegp on Apache Spark 4: one model per key of a data frame or a stream, or one model of a large data frame.

pyspark is imported with this module, and only with it: ``pip install 'onlinegp[spark]'``, and Java 17 or later.
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
