"""Matching as a query: NumPy by hand, and joins of events with filters in DuckDB, Polars and Spark SQL."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fieldfare_lab.bench import joins, vectors
from fieldfare_lab.bench.engines import Contender, Feed, Run
from fieldfare_lab.bench.rules import Event
from fieldfare_lab.bench.workloads import Workload


def _numpy(workload: Workload) -> Feed:
    rules = workload.rules or []

    def feed(events: Sequence[Event]) -> Run:
        columns = vectors.columns(events)
        return lambda: vectors.count(rules, columns, len(events))

    return feed


def _duckdb(workload: Workload) -> Feed:
    connection = importlib.import_module("duckdb").connect(config={"threads": 1})
    plan = joins.plan(workload)
    for name, table in plan.filters.items():
        connection.register("arriving", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arriving")  # noqa: S608 - our own names

    def feed(events: Sequence[Event]) -> Run:
        connection.register(joins.EVENTS, plan.events(events))
        return lambda: sum(connection.sql(query).to_arrow_table().num_rows for query in plan.queries)

    return feed


def _polars(workload: Workload) -> Feed:
    """Prepare Polars with lazy joins; its SQL lacks some kinds of joins."""
    pl: Any = importlib.import_module("polars")
    plan = joins.plan(workload)
    filters = {name: pl.from_arrow(table).lazy() for name, table in plan.filters.items()}

    def feed(events: Sequence[Event]) -> Run:
        given = pl.from_arrow(plan.events(events)).lazy()
        if plan.counting:
            queries = [joins.polars_counting(pl, given, filters["filters"])]
        else:
            queries = [joins.polars_join(pl, given, filters[name], cs) for name, cs in plan.conditions.items()]

        return lambda: sum(int(result.height) for result in pl.collect_all(queries))

    return feed


@cache
def _session() -> Any:
    sql = importlib.import_module("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[1]").appName("fieldfare-bench")
    for key, value in (
        ("ui.enabled", "false"),
        ("sql.shuffle.partitions", "1"),
        ("ui.showConsoleProgress", "false"),
        ("driver.memory", "4g"),
    ):
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _spark_clock() -> float:
    """CPU seconds of Python and of the Java machine; wall-clock seconds on a system without `/proc`."""
    stat = Path(f"/proc/{_session().sparkContext._gateway.proc.pid}/stat")
    if not stat.exists():
        return time.perf_counter()
    user, system = stat.read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    return time.process_time() + (int(user) + int(system)) / 100


def _spark(workload: Workload) -> Feed:
    session = _session()
    plan = joins.plan(workload)
    for name, table in plan.filters.items():
        session.createDataFrame(table).createOrReplaceTempView(name)

    def feed(events: Sequence[Event]) -> Run:
        given = session.createDataFrame(plan.events(events)).cache()
        given.count()
        given.createOrReplaceTempView(joins.EVENTS)
        queries = [query.replace("SELECT", "SELECT /*+ BROADCAST(f) */", 1) for query in plan.queries]
        whole = " UNION ALL ".join(f"({query})" for query in queries)
        return lambda: int(session.sql(whole).toArrow().num_rows)

    return feed


def _join(
    name: str, about: str, prepare: Callable[[Workload], Feed], module: str, *, slow: float, **options: Any
) -> Contender:
    return Contender(
        name, about, prepare, module, module, rules_only=True, operators=joins.OPERATORS, times=False,
        pairs=lambda workload: 2e9 if joins.plan(workload).hashed else slow, **options,
    )  # fmt: skip


CONTENDERS: Final = (
    Contender(
        "numpy-vector", "NumPy: rows by an equality, then mask after mask", _numpy, rules_only=True,
        pairs=lambda _: 2e9,
    ),
    _join("duckdb", "DuckDB, events join filters", _duckdb, "duckdb", slow=1e7),
    _join("polars", "Polars, events join filters", _polars, "polars", slow=2e6),
    _join("spark", "Spark SQL, broadcast join, CPU of its Java machine too", _spark, "pyspark", slow=5e7,
          clock=_spark_clock, patient=True, most_filters=100_000),
)  # fmt: skip
