"""`python -m tools.pipeline.scale`: a match job on a cluster, by workers, events, filters and matches, in CPU seconds.

    python -m tools.pipeline.scale --workers 1,2,4 --filters 10000,100000 --events 50000,200000

Every worker is a process of a standalone cluster on this machine, with one core. The job counts the matches of each
subscription of the workload `stock`. The answers of all clusters must agree. CPU time is that of all processes, Java
among them; time on the clock says little on a machine that does other work.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline import match_events, spark_session
from fieldfare_lab.pipeline.clock import best, timed
from fieldfare_lab.pipeline.data import Data, cache


@contextmanager
def cluster(workers: int) -> Iterator[SparkSession]:
    """Start a cluster of workers of one core, with a memory of 512 MB for Java each."""
    spark = spark_session(
        f"local-cluster[{workers},1,512]",
        {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": str(workers), "spark.ui.enabled": "false"},
    )
    try:
        yield spark
    finally:
        spark.stop()


def counts(events: DataFrame, subscriptions: str) -> tuple[int, int]:
    """Return the number of matches, and the number of matches of the busiest subscription."""
    rows = match_events(events, subscriptions).groupBy("subscription").count()
    (row,) = rows.agg(F.sum("count"), F.max("count")).collect()
    return int(row[0] or 0), int(row[1] or 0)


def rows(workers: list[int], filters: list[int], events: list[int], rounds: int) -> Iterator[str]:
    known: dict[tuple[int, int], tuple[int, int]] = {}
    for count in workers:
        with cluster(count) as spark:
            for size in filters:
                for number in events:
                    data = Data(cache() / f"scale-{size}", size, number)
                    read = spark.read.parquet(str(data.events)).repartition(4 * count).cache()
                    read.count()
                    work = partial(counts, read, str(data.subscriptions))
                    found, _ = timed(work)  # the first round warms
                    least = best([timed(work)[1] for _ in range(rounds)])
                    read.unpersist()
                    assert known.setdefault((size, number), found) == found
                    yield f"| {count} | {size:,} | {number:,} | {found[0]:,} | {least.cpu:.1f} | {least.wall:.1f} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workers", default="1,2")
    options.add_argument("--filters", default="10000,100000")
    options.add_argument("--events", default="50000,200000")
    options.add_argument("--rounds", type=int, default=2)
    given = options.parse_args()
    workers, filters, events = (
        [int(one) for one in text.split(",")] for text in (given.workers, given.filters, given.events)
    )
    print("| workers | filters | events | matches | CPU s | s |\n|---|---|---|---|---|---|")
    for row in rows(workers, filters, events, given.rounds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
