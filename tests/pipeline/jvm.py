"""`Jvm`: the Java machine that all Spark tests share, started anew when it is broken.

An exception in the middle of a call to Java (a signal, say) leaves the answer in the socket: from then on each call reads
the answer to an earlier one, and every later test fails. A killed machine answers nothing. Both are noticed before a test
begins, and the next test has a fresh machine.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.pipeline.cheap import CHEAP_JAVA, CHEAP_SQL

from fieldfare.pipeline.spark import spark_session

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.defaultJavaOptions": CHEAP_JAVA,
    **CHEAP_SQL,
}
BROKEN = (Py4JError, OSError, LookupError, TypeError, ValueError, AttributeError, AssertionError)
"""what calls of Java raise when the answers are not theirs, or there are none"""


class Jvm:
    """A Spark session that works whenever a test asks for it."""

    def __init__(self, home: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make no machine yet; it will be started in the folder `home`, where Java looks for relative paths."""
        self.home = home
        self._settings = {**SETTINGS, **settings}
        self._session: SparkSession | None = None
        self.suspect = False
        """whether a test has failed since the last look: then a job must work, too"""

    def session(self) -> SparkSession:
        """The session of the tests before, if it still works; else another one."""
        if self._session is not None and not answers():
            self.destroy()
        if self._session is not None and is_stopped(self._session):
            self._session = None  # the machine works: the next session is cheap
        if self._session is not None and self.suspect and not works(self._session):
            self.destroy()
        if self._session is None:
            with contextlib.chdir(self.home):
                self._session = spark_session("local[2]", self._settings)
        self.suspect = False
        return self._session

    def empty_home(self) -> Path:
        """The folder in which Java was started, without what the test before has left there."""
        for left in self.home.iterdir():  # the folder itself must stay: Java has it as its directory
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        return self.home

    @contextlib.contextmanager
    def lend(self) -> Iterator[dict[str, str]]:
        """Variables with which programs make their Spark session in this machine, one after the other.

        A Java of their own would cost a program ten seconds of CPU time. The machine calls back the program that came last.
        """
        self.session()
        self.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        given = gateway.gateway_parameters
        try:
            yield {"PYSPARK_GATEWAY_PORT": str(given.port), "PYSPARK_GATEWAY_SECRET": str(given.auth_token)}
        finally:
            ours = gateway.__dict__.get("_callback_server")
            if ours is not None:
                server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
                server.resetCallbackClient(server.getCallbackClient().getAddress(), ours.port)

    def stop(self) -> None:
        """The end of a session that works."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def destroy(self) -> None:
        """The end of a machine that may not answer: kill it, and let PySpark forget that there was one."""
        self._session = None
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        if gateway is None:
            return
        process = getattr(gateway, "proc", None)  # PySpark puts it there
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
        with contextlib.suppress(*BROKEN):
            gateway.shutdown()


def answers() -> bool:
    """Whether Java answers what it is asked: a number that nobody else has asked for comes back."""
    number = random.randrange(1, 1 << 30)
    try:
        jvm = SparkContext._jvm
        assert jvm is not None
        return all(jvm.java.lang.Integer.parseInt(str(number)) == number for _ in range(3))
    except BROKEN:
        return False


def is_stopped(spark: SparkSession) -> bool:
    """Whether a test has stopped the session."""
    return SparkContext._active_spark_context is None or spark.sparkContext._jsc.sc().isStopped() is not False


def works(spark: SparkSession) -> bool:
    """Whether a small job comes to its end."""
    try:
        return spark.range(3).count() == 3
    except BROKEN:
        return False
