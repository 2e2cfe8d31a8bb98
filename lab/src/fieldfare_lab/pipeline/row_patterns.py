"""Row patterns on Spark beside the best formulations in window functions of Spark SQL, on the same files.

`falls`: a price falls and then rises, for each key: `PATTERN (start down+ up+)`, and the next search begins at the last
row of the rise. Only this choice, SKIP TO LAST, has a formulation in windows: with the default a match depends on where
the match before has ended.

`sessions`: rows with at most 30 minutes between neighbours, for each key.

Each answer is reduced to a few sums in Spark, so that the whole work is done and the sums can be compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fieldfare.patterns.row_patterns import compile_clause, kernels
from fieldfare.pipeline import match_recognize
from fieldfare_lab.pipeline.bars import Line, at_least, figures
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.spark_sessions import started

FILES: Final = 8
LEAST: Final = 5.0
"""times as fast as the best formulation in window functions"""

FALLS: Final = """
    PARTITION BY key ORDER BY at
    MEASURES FIRST(at) AS since, LAST(at) AS until, start.price AS high, LAST(down.price) AS low, count(*) AS many
    AFTER MATCH SKIP TO LAST up
    PATTERN (start down+ up+)
    DEFINE down AS price < PREV(price), up AS price > PREV(price)
"""
SESSIONS: Final = """
    PARTITION BY key ORDER BY at
    MEASURES FIRST(at) AS since, LAST(at) AS until, max(price) AS high, min(price) AS low, count(*) AS many
    PATTERN (begin more*)
    DEFINE more AS at - PREV(at) <= 1800
"""
# One pass over the neighbours leaves the turning points: rows where the direction in and out differ. The rest looks at
# turning points only. The rise after a low ends at the next turning point, the fall began at the one before.
_TURNS: Final = """
    WITH steps AS (
        SELECT key, at, price, row_number() OVER w AS place,
               sign(price - lag(price) OVER w) AS before, sign((lead(price) OVER w) - price) AS after
        FROM rows WINDOW w AS (PARTITION BY key ORDER BY at)
    ), turns AS (
        SELECT key, at, price, place, before, after,
               lag(at) OVER w AS since, lag(price) OVER w AS high, lag(place) OVER w AS first,
               lead(at) OVER w AS until, lead(place) OVER w AS last
        FROM steps WHERE before IS DISTINCT FROM after WINDOW w AS (PARTITION BY key ORDER BY at)
    )
    SELECT key, since, until, high, price AS low, last - first + 1 AS many FROM turns WHERE before = -1 AND after = 1
"""
# The other formulation that is often given: runs of a direction, numbered by a running sum, grouped, and joined to
# their neighbours.
_RUNS: Final = """
    WITH steps AS (
        SELECT key, at, price, sign(price - lag(price) OVER w) AS way, lag(at) OVER w AS at_before,
               lag(price) OVER w AS price_before
        FROM rows WINDOW w AS (PARTITION BY key ORDER BY at)
    ), changes AS (
        SELECT *, CASE WHEN way IS DISTINCT FROM lag(way) OVER w THEN 1 ELSE 0 END AS new
        FROM steps WINDOW w AS (PARTITION BY key ORDER BY at)
    ), numbered AS (
        SELECT *, sum(new) OVER (PARTITION BY key ORDER BY at) AS run FROM changes
    ), runs AS (
        SELECT key, run, first(way) AS way, min(at_before) AS since, max(at) AS until, count(*) AS many,
               max_by(price, at) AS last_price, min_by(price_before, at) AS high
        FROM numbered GROUP BY key, run
    ), pairs AS (
        SELECT *, lead(way) OVER w AS next_way, lead(until) OVER w AS next_until, lead(many) OVER w AS next_many
        FROM runs WINDOW w AS (PARTITION BY key ORDER BY run)
    )
    SELECT key, since, next_until AS until, high, last_price AS low, many + next_many + 1 AS many
    FROM pairs WHERE way = -1 AND next_way = 1
"""
_GROUPED: Final = """
    WITH steps AS (
        SELECT key, at, price,
               CASE WHEN at - lag(at) OVER (PARTITION BY key ORDER BY at) <= 1800 THEN 0 ELSE 1 END AS new
        FROM rows
    ), numbered AS (SELECT *, sum(new) OVER (PARTITION BY key ORDER BY at) AS session FROM steps)
    SELECT key, min(at) AS since, max(at) AS until, max(price) AS high, min(price) AS low, count(*) AS many
    FROM numbered GROUP BY key, session
"""
_ANSWER: Final = (
    "count(*) AS matches", "sum(many) AS many", "sum(since % 1009 * (key % 97)) AS since", "sum(until % 1013) AS until",
    "sum(high) AS high", "sum(low) AS low",
)  # fmt: skip
CONTENDERS: Final[Mapping[str, Mapping[str, str]]] = {
    "falls": {"Fieldfare": FALLS, "turning points": _TURNS, "runs": _RUNS},
    "sessions": {"Fieldfare": SESSIONS, "running sum": _GROUPED},
}
Answer = tuple[int, ...]


def rows_of(count: int) -> Path:
    """Return the folder of Parquet files with so many rows: a thousand for each key, in no order; made once."""
    folder = Path(tempfile.gettempdir()) / f"fieldfare-bench-rows-{count}"
    if not folder.exists():
        chance = np.random.default_rng(20)
        keys = max(1, count // 1000)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".fieldfare-bench-rows-"))
        times = chance.permutation(count).astype(np.int64)
        size = -(-count // FILES)
        for number in range(FILES):
            part = times[number * size : (number + 1) * size]
            many = len(part)
            table = pa.table({
                "key": chance.integers(0, keys, many), "at": part,
                "price": chance.integers(9_000, 11_000, many), "note": pa.array([f"n{n % 97}" for n in range(many)]),
            })  # fmt: skip
            pq.write_table(table, draft / f"{number}.parquet")
        draft.rename(folder)
    return folder


def measure(count: int, cores: int, rounds: int, least: float, step: Callable[[str], None]) -> list[Line]:
    """Compare answers, then costs; an answer that differs ends the comparison of a shape."""
    folder = rows_of(count)
    found = [_alone(shape, folder, rounds) for shape in CONTENDERS]
    with started(cores) as spark:
        spark.read.parquet(str(folder)).createOrReplaceTempView("rows")
        for shape, contenders in CONTENDERS.items():
            answers: dict[str, Answer] = {}
            costs: dict[str, list[Spent]] = {name: [] for name in contenders}
            for at in range(rounds + 1):  # the first round warms up, and its answers are compared
                for name in contenders:
                    step(f"{shape}: {name}")
                    answers[name], spent = timed(partial(_answer, spark, shape, name))
                    if at:
                        costs[name].append(spent)
                if len(set(answers.values())) > 1:
                    found.append(Line("answers", f"{shape}: {answers}", met=False))
                    break
            else:
                found.append(_line(shape, count, answers["Fieldfare"], costs, least))
    return found


def _alone(shape: str, folder: Path, rounds: int) -> Line:
    """Measure the engine without Spark, in one process, on a table in memory."""
    table = pq.read_table(folder)
    compiled = compile_clause(CONTENDERS[shape]["Fieldfare"], table.schema)

    def found() -> int:
        return int(compiled.run(*compiled.in_order(table.select(compiled.columns)), kernels.compiled()).num_rows)

    found()  # compiles the loops, or loads them
    costs = [timed(found) for _ in range(rounds)]
    cost = best([spent for _, spent in costs])
    told = f"{shape}: million rows a CPU second without Spark, {table.num_rows:,} rows, {costs[0][0]:,} matches"
    return Line("engine", told, round(table.num_rows / cost.cpu / 1e6, 2), figures=figures(engine=cost))


def _line(shape: str, count: int, answer: Answer, costs: Mapping[str, list[Spent]], least: float) -> Line:
    of = {name: best(rounds) for name, rounds in costs.items()}
    other = min((name for name in of if name != "Fieldfare"), key=lambda name: of[name].cpu)
    told = f"CPU of the best window functions ({other}) / CPU of match_recognize, {count:,} rows, {answer[0]:,} matches"
    return at_least(shape, told, of[other].cpu / of["Fieldfare"].cpu, least, **figures(**of))


def _answer(spark: SparkSession, shape: str, name: str) -> Answer:
    text = CONTENDERS[shape][name]
    frame: DataFrame = match_recognize(spark.table("rows"), text) if name == "Fieldfare" else spark.sql(text)
    return tuple(int(value or 0) for value in frame.selectExpr(*_ANSWER).first() or ())
