"""A sweep on Spark gives what the experiments give, loses no cell to another, and does nothing twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fieldfare_lab.results import Settings
from fieldfare_lab.sweeps import EXPERIMENTS, cells, figures, sweep, sweep_lab


def divided(a: int, b: int, calls: str) -> list[dict[str, Any]]:
    with Path(calls).open("a") as file:
        file.write(f"{a}/{b}\n")
    return [{"quotient": a / b, "rest": a % b}] if b else _none(Path(calls).with_suffix(".zero"))


def _none(allowed: Path) -> list[dict[str, Any]]:
    if not allowed.exists():
        raise ZeroDivisionError("by zero")
    return []


def test_a_failed_cell_loses_no_other_and_is_done_again(spark: SparkSession, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    every = [{"a": a, "b": b, "calls": str(calls)} for a in (1, 7) for b in (0, 2)]
    schema = pa.schema({"quotient": pa.float64(), "rest": pa.int64()})
    first = sweep(spark, every[:3], divided, schema, tmp_path / "out").collect()
    assert Counter((row.quotient, row.rest) for row in first) == Counter({(0.5, 1): 1, (None, None): 2})
    assert [row.error for row in first if row.error is None or "ZeroDivisionError: by zero" not in row.error] == [None]
    second = sweep(spark, every, divided, schema, tmp_path / "out").collect()
    assert len(second) == 4
    assert Counter(calls.read_text().split()) == Counter({"1/0": 2, "7/0": 2, "1/2": 1, "7/2": 1})
    calls.with_suffix(".zero").touch()
    assert {row.cell for row in second if row.error} == {f'{{"a": {a}, "b": 0, "calls": "{calls}"}}' for a in (1, 7)}
    third = sweep(spark, every, divided, schema, tmp_path / "out")
    assert Counter(row.quotient for row in third.collect()) == Counter([0.5, 3.5])  # nothing to say is no failure
    assert third.where("error IS NOT NULL").count() == 0
    assert sweep(spark, [], divided, schema, tmp_path / "out").count() == 0


def test_experiments_on_spark_are_the_experiments(spark: SparkSession, tmp_path: Path) -> None:
    names, tiny = ["E20", "R4"], Settings(2, 1, 0.05)
    rows = sweep_lab(spark, cells(names, tiny), tmp_path).drop("cell", "seconds", "error").collect()
    local = [
        {"experiment": name, "seed": seed, **row}
        for name in names
        for seed in (1, 2)
        for row in figures(EXPERIMENTS[name](Settings(1, seed, 0.05)))
    ]
    found = Counter(tuple(row.asDict().values()) for row in rows)
    assert found == Counter(tuple(row.get(name) for name in rows[0].asDict()) for row in local)
    assert {row.experiment for row in rows if row.claim} == set(names)


def test_an_unknown_experiment_is_named() -> None:
    with pytest.raises(ValueError, match="there is no experiment 'E99'; there are E1, E2"):
        cells(["E99"])
    assert len(cells()) == 3 * len(EXPERIMENTS)
