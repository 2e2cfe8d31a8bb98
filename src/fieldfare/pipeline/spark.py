"""A Spark session: on this machine by default, on a cluster by its address.

    spark = spark_session()                               # all cores of this machine
    spark = spark_session("spark://head:7077")            # a standalone cluster
    spark = spark_session("sc://head:15002")              # Spark Connect

The settings suit a small machine and the engine; settings of the caller count more.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from fieldfare.pipeline import spark_java

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",  # fewer, larger batches: the engine works in chunks itself
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.python.worker.reuse": "true",  # a worker keeps the snapshot it has opened
    # Killed while it writes its very first offsets, Spark leaves a draft and then refuses to start from it.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
ON_ONE_MACHINE: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_QUIET: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class SparkNotStarted(RuntimeError):
    """Spark did not start, with advice."""


def spark_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, log: str | Path | None = None
) -> SparkSession:
    """Return a Spark session with the settings of the pipeline, or the running Spark session.

    Spark's messages on standard error go to the file `log`, if given.
    """
    if master is not None and master.startswith("sc://"):
        try:
            return SparkSession.builder.remote(master).getOrCreate()
        except ImportError:
            raise SparkNotStarted("Spark Connect needs more modules: pip install 'fieldfare[connect]'") from None
    local = master is None or master.startswith("local")
    _prepare()
    builder = SparkSession.builder.appName("fieldfare").master(master or "local[*]")
    chosen = {**SETTINGS, **(_on_one_machine() if local else {}), **(settings or {})}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        with _errors_to(log):
            return builder.getOrCreate()
    except PySparkRuntimeError:
        if packages := chosen.get("spark.jars.packages"):
            more = f". More in {log}" if log else ""
            raise SparkNotStarted(
                f"Spark does not start with spark.jars.packages = {packages}: no repository gives these versions, or"
                f" there is no network; fetch the jars and name the files in spark.jars{more}"
            ) from None
        raise


def is_remote(spark: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect, whose driver is another program."""
    return not hasattr(spark, "_jsparkSession")


@contextmanager
def _errors_to(log: str | Path | None) -> Iterator[None]:
    """Send the standard error of processes that are started now to a file, and restore it afterwards."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    ours = os.dup(2)
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _prepare() -> None:
    """Set the environment for the Java virtual machine and the Python workers."""
    java_home = spark_java.home()
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _on_one_machine() -> dict[str, str]:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch = Path(tempfile.mkdtemp(prefix="fieldfare-spark-"))
    (scratch / "log4j2.properties").write_text(_QUIET)
    return {
        **ON_ONE_MACHINE,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={scratch / 'log4j2.properties'}",
    }
