"""Programs and servers that some tests need: `@pytest.mark.needs("curl")`.

A test whose need is absent is not collected; `conftest.py` says so in one line at the end, instead of many skips.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
"""where servers lie that not everybody may start"""


def program(name: str) -> str | None:
    """Return the path of a program, if it is installed."""
    return shutil.which(name, path=_PATH)


def _curl() -> bool:
    """Tell whether there is a curl with the option `--json` (7.82)."""
    found = program("curl")
    if found is None:
        return False
    return "--json" in subprocess.run([found, "--help", "all"], capture_output=True, text=True, check=False).stdout


def _namespaces() -> bool:
    from tools.nodes.namespaces import way  # noqa: PLC0415

    return bool(way()[0])


def _kafka() -> bool:
    from tools.servers import cache  # noqa: PLC0415

    return program("java") is not None and bool(cache.kafka_jars())


def _spark_jars() -> bool:
    from tools.servers import cache  # noqa: PLC0415

    return bool(cache.spark_jars())


def _hadoop_jars() -> bool:
    from tools.servers import cache  # noqa: PLC0415

    return bool(cache.hadoop_jars())


def _spark_with_delta() -> bool:
    from tools.servers import cache  # noqa: PLC0415

    return bool(cache.delta_jars()) and cache.spark_of_delta().exists()


def _nats() -> bool:
    from tools.servers import cache  # noqa: PLC0415

    return cache.nats_server() is not None


def _versitygw() -> bool:
    from tools.servers import cache  # noqa: PLC0415

    return cache.versitygw() is not None


def _rabbitmq() -> bool:
    from fieldfare_lab.node import rabbitmq  # noqa: PLC0415

    return rabbitmq.missing() is None


NEEDS: Final[Mapping[str, Callable[[], bool]]] = {
    "Airflow": lambda: importlib.util.find_spec("airflow") is not None,
    "a C compiler": lambda: (program("gcc") or program("cc")) is not None,
    "chromium": lambda: program("chromium") is not None,
    "curl": _curl,
    "file modes": lambda: sys.platform != "win32",
    "Kafka": _kafka,
    "matplotlib": lambda: importlib.util.find_spec("matplotlib") is not None,
    "mosquitto": lambda: None not in (program("mosquitto"), program("mosquitto_passwd")),
    "nats-server": _nats,
    "nats-server on PATH": lambda: program("nats-server") is not None,
    "network namespaces": _namespaces,
    "Node.js": lambda: program("node") is not None,
    "openssl": lambda: program("openssl") is not None,
    "RabbitMQ": _rabbitmq,
    "polars": lambda: importlib.util.find_spec("polars") is not None,
    "dbt": lambda: None not in (importlib.util.find_spec("dbt"), importlib.util.find_spec("duckdb")),
    "DuckDB's Delta": lambda: importlib.util.find_spec("duckdb_extension_delta") is not None,
    "duckdb": lambda: importlib.util.find_spec("duckdb") is not None,
    "versitygw": _versitygw,
    "Spark Connect": lambda: importlib.util.find_spec("grpc") is not None,
    "Spark's jars": _spark_jars,
    "Spark with Delta": _spark_with_delta,
    "jars of Hadoop's": _hadoop_jars,
}


@cache
def absent(need: str) -> bool:
    """Tell whether a need is not met on this machine."""
    return not NEEDS[need]()
