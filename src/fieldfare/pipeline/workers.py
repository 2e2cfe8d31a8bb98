"""Python workers of a Spark session that can import Fieldfare, or an error that names the missing setting.

A session made with `SparkSession.builder.getOrCreate()` starts workers with the first `python3` on the PATH, and has
no part in a virtual environment before its activation. On one machine the workers take the Python of the driver
instead; on a cluster only the user knows the place of a fitting Python.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any, Final
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fieldfare.pipeline.spark import is_remote

_CHECKED: Final[WeakSet[Any]] = WeakSet()
_SETTING: Final = "PYSPARK_PYTHON"


class WorkersError(RuntimeError):
    """The Python workers of a session cannot import Fieldfare."""


def check_workers(spark: SparkSession) -> None:
    """Choose the Python of workers where the user did not, or raise WorkersError; once for each session.

    A session of Spark Connect is left alone: the server alone knows its Python.
    """
    if is_remote(spark):
        return
    context: Any = spark.sparkContext
    if context in _CHECKED:
        return
    if os.environ.get(_SETTING, sys.executable) == sys.executable and context.master.startswith("local"):
        context.pythonExec = sys.executable
    elif not _importable(context):
        raise WorkersError(
            f"the Python of Spark's workers, {context.pythonExec}, has no fieldfare: set the variable"
            f" {_SETTING} to a Python that has it, on all machines, before Spark starts"
        )
    _CHECKED.add(context)


def _importable(context: Any) -> bool:
    """Ask a worker, by functions that any Python has; a version that does not fit is an error of Spark's."""
    try:
        return bool(context.parallelize(["fieldfare"], 1).map(importlib.util.find_spec).map(bool).first())
    except PySparkException as error:
        raise WorkersError(str(error).splitlines()[0]) from None
