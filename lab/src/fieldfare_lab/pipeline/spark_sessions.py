"""Spark sessions of the benchmark, on a number of cores of the machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import SparkSession

from fieldfare.pipeline.spark import spark_session


@contextlib.contextmanager
def started(cores: int) -> Iterator[SparkSession]:
    """Start a Spark session that ends with the context; the Java machine goes on, warm for the next session."""
    spark = spark_session(f"local[{cores}]", {"spark.sql.shuffle.partitions": str(cores)})
    try:
        yield spark
    finally:
        spark.stop()
