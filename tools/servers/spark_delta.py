"""A lake as Spark reads and changes it with Delta's own jar; prints what it has found as JSON.

Runs in a process of its own with the version of Spark that the jar is for, which need not be that of Fieldfare:

    PYTHONPATH=.../spark-4.2.0 python tools/servers/spark_delta.py LAKE CLEANED JAR,JAR

CLEANED is another lake, of which only the last version is left. The last steps change LAKE: they write a batch that the
table has, then a new one, and delete a row.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def session(jars: str) -> SparkSession:
    """Start Spark with Delta, in as few threads and with as little output as can be."""
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def rows(found: DataFrame) -> list[Any]:
    columns = found.selectExpr("id", "kind", "day", "fields.symbol AS symbol", "fields.price AS price", "at")
    return sorted([*row[:5], row["at"].isoformat()] for row in columns.collect())


def main(lake: str, cleaned: str, jars: str) -> None:
    spark = session(jars)

    def table() -> DataFrame:
        return spark.read.format("delta").load(lake)

    def write(number: int) -> None:
        new = table().limit(1).selectExpr("* EXCEPT (id)", f"'spark/{number}' AS id")
        options = {"txnAppId": "example", "txnVersion": str(number)}
        new.write.format("delta").mode("append").options(**options).save(lake)

    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake}`").orderBy("version").collect()
    found: dict[str, Any] = {
        "spark": spark.version,
        "rows": rows(table()),
        "cleaned": rows(spark.read.format("delta").load(cleaned)),
        "first": rows(spark.read.format("delta").option("versionAsOf", 1).load(lake)),
        "day": table().where("day = '2026-11-16'").count(),
        "opened": len(table().where("day = '2026-11-16'").inputFiles()),
        "operations": [row["operation"] for row in history],
        "columns": table().columns,
    }
    write(2)
    found["a batch that comes again"] = table().where("id LIKE 'spark/%'").count()
    write(3)
    found["a new batch"] = table().where("id LIKE 'spark/%'").count()
    spark.sql(f"DELETE FROM delta.`{lake}` WHERE id = '0/0'")
    found["left"] = table().count()
    sys.stdout.write(f"{json.dumps(found)}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
