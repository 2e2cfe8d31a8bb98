"""One Spark session for all tests of a run: they are kept together on one worker of pytest-xdist."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fieldfare.pipeline.starting import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session("local[2]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
    yield started
    started.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
