"""Subscriptions from Spark: a DataFrame or a file with columns `id`, `filter`, perhaps `owner`, `dialect`."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.filters.dialects import Dialect
from fieldfare.matching.index import Index
from fieldfare.objects import absolute
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription, SubscriptionError
from fieldfare.pipeline.workers import check_workers

_WHOLE = ("byte", "short", "integer", "long")


class Place(NamedTuple):
    """The place where workers find a catalogue: a path that all machines see, or a name beside the worker."""

    path: str
    shipped: str | None = None


def publish_subscriptions(subscriptions: DataFrame, path: str | Path, *, dialect: str = "native", keep: int = 8) -> int:
    """Write a new version of a catalogue from a DataFrame of subscriptions; running streams use it at once.

    A bad filter is an error with its id and row, and then the catalogue stays unchanged.
    """
    return catalogue.write_version(path, subscriptions_in(subscriptions, dialect), keep=keep)


def placed(spark: SparkSession, subscriptions: DataFrame | str | Path) -> Place:
    """Return the place of the subscriptions' catalogue, made for this Spark session and sent to a cluster if needed."""
    check_workers(spark)
    if not isinstance(subscriptions, DataFrame):
        if catalogue.is_catalogue(subscriptions):
            return Place(absolute(subscriptions))
        if Path(subscriptions).suffix == ".ff":
            index: Index[str | int] = Index.open(subscriptions)
            wanted = [Subscription(id, index.filter(id)) for id in index]
            return _made(spark, lambda path: catalogue.write_version(path, wanted))
        subscriptions = read_subscriptions(spark, subscriptions)
    return _made(spark, lambda path: publish_subscriptions(subscriptions, path))


def _made(spark: SparkSession, fill: Callable[[str], object]) -> Place:
    """Make a catalogue for this Spark session where all machines find it."""
    path = tempfile.mkdtemp(prefix="fieldfare-subscriptions-")
    fill(path)
    master = spark.conf.get("spark.master", "local") or "local"
    return Place(path) if master.partition("[")[0] == "local" else Place(path, _shipped(spark, Path(path)))


def read_subscriptions(spark: SparkSession, path: str | Path) -> DataFrame:
    """Read the subscriptions in a Parquet, ORC, CSV or JSON lines file, or in a folder of such files."""
    given = str(path)
    match Path(given).suffix.lower():
        case ".csv":
            return spark.read.csv(given, header=True, quote='"', escape='"', multiLine=True)
        case ".json" | ".jsonl" | ".ndjson":
            return spark.read.json(given)
        case ".orc":
            return spark.read.orc(given)
        case ".parquet" | ".pq" | "":
            return spark.read.parquet(given)
        case suffix:
            raise SubscriptionError(
                f"{given}: subscriptions are read from .parquet, .orc, .csv or .jsonl, not {suffix}"
            )


def subscriptions_in(rows: DataFrame, dialect: str = "native") -> Iterator[Subscription]:
    """Yield the subscriptions in the rows of a DataFrame."""
    for needed in ("id", "filter"):
        if needed not in rows.columns:
            raise SubscriptionError(
                f"subscriptions need the columns id and filter; there is no {needed!r} among {', '.join(rows.columns)}"
            )
    whole = rows.schema["id"].dataType.typeName() in _WHOLE
    found = rows.select(
        F.col("id").cast("bigint" if whole else "string"),
        F.col("filter").cast("string"),
        (F.col("owner").cast("string") if "owner" in rows.columns else F.lit(None).cast("string")).alias("owner"),
        F.coalesce(F.col("dialect") if "dialect" in rows.columns else F.lit(None), F.lit(dialect)).alias("dialect"),
    ).toArrow()
    known = {str(one): one for one in Dialect}
    for row, (id, filter, owner, language) in enumerate(zip(*map(_listed, found.columns), strict=True), 1):
        if language not in known:
            raise SubscriptionError(f"subscription {id!r} (row {row}): the dialect is none of {', '.join(known)}")
        if filter is None:
            raise SubscriptionError(f"subscription {id!r} (row {row}): there is no filter")
        yield Subscription(id, filter, owner, known[language])


def _listed(column: object) -> list[object]:
    return column.to_pylist()  # type: ignore[attr-defined, no-any-return]  # Arrow has no types


def _shipped(spark: SparkSession, path: Path) -> str:
    """Send a catalogue to every machine of a cluster; Spark unpacks it once for all workers of an executor."""
    archive = shutil.make_archive(str(path), "zip", path)
    named = f"{archive}#{path.name}"
    if hasattr(spark, "addArtifacts") and not hasattr(spark, "_jsparkSession"):
        spark.addArtifacts(named, archive=True)
    else:
        spark.sparkContext.addArchive(named)
    with contextlib.suppress(OSError):
        Path(archive).chmod(0o644)
    return path.name
