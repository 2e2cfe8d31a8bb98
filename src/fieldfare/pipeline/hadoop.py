"""Places in a bucket as Spark itself reads and writes them: through Hadoop's client of S3, whose jar the user names.

Python workers reach a bucket without a jar; only what Spark does itself needs one: checkpoints, and files as a source.
Server and credentials are those of the environment, as everywhere: `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ALLOW_HTTP`;
settings of Hadoop's own, `spark.hadoop.fs.s3a.…`, count more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fieldfare.pipeline.spark import is_remote

VERSION: Final = "3.5.0"
"""the version of Hadoop in Spark 4.3"""
_CLIENT: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


class HadoopError(ValueError):
    """Spark cannot reach a bucket, with advice."""


def hadoop_path(spark: SparkSession, place: str) -> str:
    """Return a place as Spark takes places; at `s3://` the session gets the settings of the environment."""
    if not place.startswith(("s3://", "s3a://")):
        return place
    if not is_remote(spark):
        _check(spark)
        for key, value in settings(os.environ).items():
            if spark.conf.get(f"spark.hadoop.{key}", None) is None:
                spark.conf.set(key, value)
    return f"s3a://{place.partition('://')[2]}"


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Hadoop's client that the variables of the AWS tools stand for.

    >>> for setting in settings({"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_REGION": "us-east-1"}).items():
    ...     print(*setting)
    fs.s3a.endpoint http://127.0.0.1:9000
    fs.s3a.path.style.access true
    fs.s3a.connection.ssl.enabled false
    fs.s3a.endpoint.region us-east-1
    """
    found = {}
    if server := environment.get("AWS_ENDPOINT_URL"):
        found["fs.s3a.endpoint"] = server
        found["fs.s3a.path.style.access"] = "true"
        found["fs.s3a.connection.ssl.enabled"] = "false" if server.startswith("http://") else "true"
    if region := environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"):
        found["fs.s3a.endpoint.region"] = region
    return found


def _check(spark: SparkSession) -> None:
    """Raise HadoopError if Java does not find the client."""
    java: Any = spark.sparkContext._jvm
    try:
        java.java.lang.Class.forName(_CLIENT, False, java.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JJavaError:
        raise HadoopError(
            "s3:// needs a jar that Spark does not bring: set spark.jars.packages to"
            f" org.apache.hadoop:hadoop-aws:{VERSION}, or spark.jars to the files, when Spark starts"
        ) from None
