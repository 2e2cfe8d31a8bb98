"""Experiments as Spark jobs, one cell a task, so that a cluster runs the whole lab.

    sweep_lab(spark, cells(["E1", "R4"], Settings(replications=3)), "results").where("error IS NULL")

A cell is a function's arguments. Its rows are a Parquet file of its own, which appears when the cell is done. So a cell
that fails loses no other one: its error is a row. And whoever does a sweep again does only what is missing: cells that
failed, or that were never done because the driver was stopped. The folder must be one that all machines see.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fieldfare_lab.results import Result, Settings
from fieldfare_lab.routing.experiments import EXPERIMENTS as ROUTING
from fieldfare_lab.tables.experiments import EXPERIMENTS as TABLES

Cell = Mapping[str, Any]
"""arguments by name, such as JSON has them"""
Rows = Iterable[Mapping[str, Any]]
_ABOUT: Final = {"cell": pa.string(), "seconds": pa.float64(), "error": pa.string()}
"""columns of every sweep: the arguments as JSON, how long it took, and why it failed"""
_FAILED: Final = ".failed.parquet"

EXPERIMENTS: Final[Mapping[str, Callable[[Settings], Result]]] = {**TABLES, **ROUTING}
FIGURES: Final = pa.schema(
    {
        "experiment": pa.string(), "seed": pa.int64(),
        "figure": pa.string(), "x": pa.string(), "at": pa.float64(), "line": pa.string(), "value": pa.float64(),
        "claim": pa.string(), "holds": pa.bool_(), "measured": pa.string(),
    }
)  # fmt: skip
"""the rows of an experiment: the points of its curves, and its claims"""


def sweep(
    spark: SparkSession,
    cells: Sequence[Cell],
    function: Callable[..., Rows],
    schema: pa.Schema,
    folder: str | Path,
) -> DataFrame:
    """Call a function for every cell that has no result in the folder yet, each in a task of its own.

    Args:
        spark: where to.
        cells: the arguments.
        function: gives the rows of a cell; one that a worker can import.
        schema: of these rows.
        folder: for the results.

    Returns:
        The rows of all these cells, with `cell`, `seconds` and `error`; a cell that failed has one row.
    """
    target = Path(folder).absolute()
    target.mkdir(parents=True, exist_ok=True)
    columns = pa.schema({**_ABOUT, **{field.name: field.type for field in schema}})
    missing = [cell for cell in cells if not _file(target, cell).exists()]
    if missing:
        tasks = spark.range(0, len(missing), 1, len(missing))
        tasks.mapInArrow(_running(missing, function, columns, target), "id long").count()
    done = [file for cell in cells for file in (_file(target, cell), _file(target, cell, _FAILED)) if file.exists()]
    nothing = spark.createDataFrame(columns.empty_table())
    return spark.read.schema(nothing.schema).parquet(*map(str, done)) if done else nothing


def sweep_lab(spark: SparkSession, cells: Sequence[Cell], folder: str | Path) -> DataFrame:
    """Run experiments of the lab: what they found, in `FIGURES`."""
    return sweep(spark, cells, run_experiment, FIGURES, folder)


def cells(experiments: Iterable[str] | None = None, settings: Settings | None = None) -> list[Cell]:
    """A cell for each experiment, all if none are named, and each replication of it."""
    wanted, given = list(EXPERIMENTS if experiments is None else experiments), settings or Settings()
    for name in wanted:
        if name not in EXPERIMENTS:
            raise ValueError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    seeds = range(given.seed, given.seed + given.replications)
    return [{"experiment": name, "seed": seed, "scale": given.scale} for name in wanted for seed in seeds]


def run_experiment(experiment: str, seed: int, scale: float) -> list[dict[str, Any]]:
    """One replication of an experiment."""
    result = EXPERIMENTS[experiment](Settings(1, seed, scale, time.process_time))
    return [{"experiment": experiment, "seed": seed, **row} for row in figures(result)]


def figures(result: Result) -> Iterator[dict[str, Any]]:
    """A result as rows: a row for each point of each line, and one for each claim."""
    for curves in result.curves:
        for line, values in curves.lines.items():
            for at, value in zip(curves.at, values, strict=True):
                yield {"figure": curves.title, "x": curves.x, "at": at, "line": line, "value": value}
    for claim in result.claims:
        yield {"claim": claim.text, "holds": claim.holds, "measured": claim.measured}


def _running(
    missing: Sequence[Cell], function: Callable[..., Rows], columns: pa.Schema, target: Path
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that workers run: numbers of cells to files."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                _run(missing[number], function, columns, target)
            yield batch

    return run


def _run(cell: Cell, function: Callable[..., Rows], columns: pa.Schema, target: Path) -> None:
    """Do a cell, and put its file in place of one that says it has failed."""
    start, error = time.perf_counter(), None
    rows: list[Mapping[str, Any]] = [{}]
    try:
        rows = list(function(**cell))
    except Exception:  # noqa: BLE001 - whatever it is, the other cells shall go on
        error = traceback.format_exc()
    about = {"cell": _text(cell), "seconds": time.perf_counter() - start, "error": error}
    file, failed = _file(target, cell), _file(target, cell, _FAILED)
    draft = file.with_name(f".{file.name}")
    pq.write_table(pa.Table.from_pylist([{**about, **row} for row in rows], columns), draft)
    draft.rename(file if error is None else failed)
    if error is None:
        failed.unlink(missing_ok=True)


def _file(target: Path, cell: Cell, suffix: str = ".parquet") -> Path:
    return target / f"{hashlib.sha256(_text(cell).encode()).hexdigest()[:32]}{suffix}"


def _text(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)
