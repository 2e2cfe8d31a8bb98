"""Spark with the connector of Kafka and with Avro, in a Java machine of its own, and a Kafka: `make test-servers`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tools.servers import cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.pipeline.jvm import Jvm
    from tools.servers.kafka import Kafka


@pytest.fixture(scope="package")
def jvm_with_jars(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """Jars are chosen when Java starts, so the machine of the other tests has to go."""
    from tests.pipeline.jvm import Jvm  # noqa: PLC0415

    jvm.destroy()
    own = Jvm(tmp_path_factory.mktemp("jars"), {"spark.jars": ",".join(map(str, cache.spark_jars()))})
    yield own
    own.destroy()


@pytest.fixture
def spark(jvm_with_jars: Jvm) -> SparkSession:
    return jvm_with_jars.session()


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    from tools.servers.kafka import Kafka  # noqa: PLC0415

    made = Kafka(tmp_path_factory.mktemp("kafka"))
    made.start()
    yield made
    made.kill()
