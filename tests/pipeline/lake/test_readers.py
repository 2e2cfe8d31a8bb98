"""Other tools read a lake: what the page `read-a-lake` shows."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import from_arrow_schema

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.delta import commit
from fieldfare.pipeline.lake.files import write_file


@pytest.fixture
def lake(tmp_path: Path) -> str:
    place = str(tmp_path / "lake")
    for number, symbols in enumerate((["IBM", "SAP"], ["IBM"])):
        rows = pa.RecordBatch.from_pylist(
            [{"id": f"{number}/{n}", "fields": {"symbol": symbol}} for n, symbol in enumerate(symbols)]
        )
        file = write_file(place, {"kind": "trade", "day": f"2026-11-{15 + number}"}, [rows])
        assert file is not None
        assert commit(place, [file], from_arrow_schema(rows.schema), Batch("w", number))
    return place


@pytest.mark.needs("duckdb")
def test_duckdb(lake: str) -> None:
    duckdb: Any = importlib.import_module("duckdb")
    table = DeltaTable(lake).to_pyarrow_dataset()
    found = duckdb.from_arrow(table).query("lake", "SELECT fields.symbol, count(*) FROM lake GROUP BY ALL").fetchall()
    assert Counter(dict(found)) == {"IBM": 2, "SAP": 1}
    later = duckdb.from_arrow(table).query("lake", "SELECT id FROM lake WHERE day >= '2026-11-16'").fetchall()
    assert later == [("1/0",)]


@pytest.mark.needs("DuckDB's Delta")
def test_duckdb_by_an_extension_of_its_own(lake: str, tmp_path: Path) -> None:
    connection: Any = importlib.import_module("duckdb").connect()
    connection.execute(f"SET extension_directory = '{tmp_path}/extensions'")
    importlib.import_module("duckdb_extensions").import_extension("delta", con=connection)
    connection.execute("LOAD delta")

    def asked(question: str) -> list[Any]:
        return list(connection.sql(question).fetchall())

    assert asked(f"SELECT fields.symbol, count(*) FROM delta_scan('{lake}') GROUP BY ALL ORDER BY ALL") == [
        ("IBM", 2),
        ("SAP", 1),
    ]
    assert asked(f"SELECT id, kind FROM delta_scan('{lake}') WHERE day >= '2026-11-16'") == [("1/0", "trade")]
    assert asked(f"SELECT count(*) FROM delta_scan('{lake}', version = 0)") == [(2,)]


@pytest.mark.needs("polars")
def test_polars(lake: str) -> None:
    pl: Any = importlib.import_module("polars")
    found = pl.scan_delta(lake).filter(pl.col("day") >= "2026-11-16").select("id", "kind").collect()
    assert found.rows() == [("1/0", "trade")]
    assert pl.read_delta(lake, version=0).height == 2
