"""Filters and events as tables for Spark SQL, and the queries that join them; see `sql_plans` for the plans."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fieldfare_lab.bench import joins
from fieldfare_lab.bench.rules import Event, Rule
from fieldfare_lab.pipeline import mixed_filters
from fieldfare_lab.pipeline.data import Data

PRICE: Final = 50
"""width of a bucket of prices of `stock`"""
VALUES: Final = 50
"""width of a bucket of the values of `begen`"""
_DIMENSIONS: Final = 400
_HINT: Final = "/*+ BROADCAST(f) */"


def views(spark: SparkSession, data: Data) -> dict[str, str]:
    """Make the tables of a workload known to a session, and return the query of each plan."""
    if data.workload == "begen":
        return {"arrays": _arrays(spark, data)}
    spark.read.parquet(str(data.events)).createOrReplaceTempView(joins.EVENTS)
    if data.workload == "mixed":
        return {"each with each": _each(spark, data)}
    plan = joins.plan(data.made)
    for name, table in plan.filters.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    plans = {"hash": _united(plan.queries)}
    return plans | ({"bucketed": _bucketed(spark, plan)} if data.workload == "stock" else {})


def _united(queries: Sequence[str]) -> str:
    return " UNION ALL ".join(f"({query.replace('SELECT', f'SELECT {_HINT}', 1)})" for query in queries)


def _bucketed(spark: SparkSession, plan: joins.Plan) -> str:
    """Return the hash join with a bucket of prices in the key; a filter is there once for each of its buckets."""
    queries = []
    for (name, table), query in zip(plan.filters.items(), plan.queries, strict=True):
        conditions = plan.conditions[name]
        low, high = (next(c.column for c in conditions if (c.field, c.op) == ("price", op)) for op in (">=", "<="))
        rows = [
            (row, bucket)
            for row, (least, most) in enumerate(zip(table[low].to_pylist(), table[high].to_pylist(), strict=True))
            for bucket in range(math.floor(max(least, 0) / PRICE), math.floor(min(most, 1e6) / PRICE) + 1)
        ]
        cut = table.take(pa.array([row for row, _ in rows]))
        cut = cut.append_column("bucket", pa.array([bucket for _, bucket in rows], pa.int64()))
        spark.createDataFrame(cut).createOrReplaceTempView(f"{name}_cut")
        queries.append(
            query.replace(f"JOIN {name} f ON", f"JOIN {name}_cut f ON floor(e.price / {PRICE}) = f.bucket AND")
        )
    return _united(queries)


# begen: 15 of 400 dimensions in an event, about five predicates in a filter


def _arrays(spark: SparkSession, data: Data) -> str:
    """Return a join on a dimension and a value, or a bucket of values, whatever the filter has; the rest by place."""
    place = data.made_once("arrays", lambda folder: pq.write_table(_as_arrays(data.made.events), folder / "0.parquet"))
    spark.read.parquet(str(place)).repartition(8).createOrReplaceTempView("sparse")
    exact, ranged = _cut(data.made.rules or [])
    spark.createDataFrame(exact).createOrReplaceTempView("exact")
    spark.createDataFrame(ranged).createOrReplaceTempView("ranged")
    more = [name for name in exact.column_names if name.startswith("p")]
    rest = " AND ".join(
        f"(f.{name} IS NULL OR (e.v[f.{name}] >= f.low{name[1:]} AND e.v[f.{name}] <= f.high{name[1:]}))"
        for name in more
    )
    exploded = "(SELECT event, v, d, v[d] AS x FROM (SELECT event, v, explode(dims) AS d FROM sparse))"
    tables = {"exact": "e.x = f.key", "ranged": f"e.x div {VALUES} = f.key AND e.x >= f.low AND e.x <= f.high"}
    return _united(
        [
            f"SELECT e.event, f.id FROM {exploded} e JOIN {name} f ON e.d = f.d AND {key} AND {rest}"  # noqa: S608
            for name, key in tables.items()
        ]
    )


def _as_arrays(events: Sequence[Event]) -> pa.Table:
    values = [[event.get(f"d{d}") for d in range(_DIMENSIONS)] for event in events]
    dims = [sorted(int(name[1:]) for name in event) for event in events]
    kinds = (pa.int64(), pa.list_(pa.int32()), pa.list_(pa.int32()))
    columns = [pa.array(column, kind) for column, kind in zip((range(len(events)), values, dims), kinds, strict=True)]
    return pa.table(columns, names=["event", "v", "dims"])


def _cut(rules: Sequence[Rule]) -> tuple[pa.Table, pa.Table]:
    """Return filters with an equality, by its dimension and value; and the others, by the buckets of a range.

    The rarest dimension is the key: the highest, since dimensions follow Zipf's law.
    """
    exact: dict[str, list[Any]] = defaultdict(list)
    ranged: dict[str, list[Any]] = defaultdict(list)
    most = max(map(len, rules))
    for id, rule in enumerate(rules):
        named = [(int(field[1:]), operands[0], operands[-1], op) for field, op, operands in rule]
        equal = [one for one in named if one[3] == "="]
        first = max(equal or named)
        others = [one for one in named if one is not first]
        for key in [first[1]] if equal else range(first[1] // VALUES, first[2] // VALUES + 1):
            for name, value in _row(id, key, first, others, most):
                (exact if equal else ranged)[name].append(value)
    first, second = (pa.table({n: pa.array(c, pa.int32()) for n, c in some.items()}) for some in (exact, ranged))
    return first, second


def _row(id: int, key: int, first: Any, others: Sequence[Any], most: int) -> Iterator[tuple[str, int | None]]:
    yield from (("id", id), ("d", first[0]), ("key", key), ("low", first[1]), ("high", first[2]))
    for number in range(most - 1):
        dimension, low, high, _ = others[number] if number < len(others) else (None, None, None, "")
        yield from ((f"p{number}", dimension), (f"low{number}", low), (f"high{number}", high))


# Mixed filters


def _each(spark: SparkSession, data: Data) -> str:
    queries = []
    for name, (table, condition) in mixed_filters.tables(data.filters).items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
        queries.append(f"SELECT e.event, f.id FROM {joins.EVENTS} e JOIN {name} f ON {condition}")  # noqa: S608
    return _united(queries)
