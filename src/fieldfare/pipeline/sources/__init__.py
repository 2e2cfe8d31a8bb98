"""Sources of events for Spark: nodes, their logs, files and MQTT; `register` also registers the formats of sinks.

>>> [source.name() for source in SOURCES]
['fieldfare_log', 'fieldfare_node', 'fieldfare_mqtt', 'fieldfare_webhooks']
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from fieldfare.pipeline.sinks.formats.webhooks import WebhooksFormat
from fieldfare.pipeline.sources.log import LogSource
from fieldfare.pipeline.sources.mqtt import MqttSource
from fieldfare.pipeline.sources.node import NodeSource
from fieldfare.pipeline.workers import check_workers

SOURCES: Final[tuple[type[DataSource], ...]] = (LogSource, NodeSource, MqttSource, WebhooksFormat)


def register(spark: SparkSession) -> None:
    """Register all formats at a Spark session, as for `spark.read.format("fieldfare_log")`."""
    check_workers(spark)
    for source in SOURCES:
        spark.dataSource.register(source)
