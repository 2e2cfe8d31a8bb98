"""Sessions for measuring: on so many cores of this machine, ended with the context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import SparkSession

from fieldfare.pipeline.spark import spark_session


@contextlib.contextmanager
def started(cores: int) -> Iterator[SparkSession]:
    """A session on so many cores; the Java machine stays, and is warm for the next."""
    spark = spark_session(f"local[{cores}]", {"spark.sql.shuffle.partitions": str(cores)})
    try:
        yield spark
    finally:
        spark.stop()
