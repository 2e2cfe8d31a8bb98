from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from fieldfare.pipeline.sources.files import FilesError, read_files
from fieldfare.pipeline.table.normalisation import normalise

FIELDS = "symbol string, price double"


def taken(frame: DataFrame, place: Path) -> list[Any]:
    """All rows of a stream."""
    query = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "state"))
    query.trigger(availableNow=True).start(str(place / "out")).awaitTermination()
    return frame.sparkSession.read.schema(frame.schema).parquet(str(place / "out")).collect()


def test_lines_come_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"symbol": "A", "price": 1}\r\n \r\n{"symbol": "\xff"}\n{"symbol"\n')
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b'{"symbol": "B"}'))
    lines = read_files(spark, tmp_path / "in")
    table = normalise(lines, FIELDS)
    assert sorted(row.fields.symbol for row in table.events.collect()) == ["A", "B"]
    assert sorted((row.record, row.file[-7:]) for row in table.quarantine.collect()) == [
        ('{"symbol"', "a.jsonl"),
        ('{"symbol": "\ufffd"}', "a.jsonl"),
    ]
    stream = read_files(spark, tmp_path / "in", stream=True, max_files=1)
    assert sorted(row.event for row in taken(stream, tmp_path)) == sorted(row.event for row in lines.collect())


def test_csv_has_types_and_bad_rows_survive(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'price,symbol\n1.5,007\n2,"a\nb"\n1,2,3\n,\xff\n')
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"symbol,price\n12,3\n"))
    (tmp_path / "c.csv.gz").write_bytes(b"not gzip")
    rows = read_files(spark, tmp_path, "csv", fields=FIELDS)
    table = normalise(rows, FIELDS)
    assert sorted(table.events.select("fields.symbol", "fields.price").collect()) == [
        ("007", 1.5),
        ("12", 3.0),
        ("a\nb", 2.0),
    ]
    assert table.events.select("id").distinct().count() == 3
    assert {(Path(row.file).name, row.position, row.reason) for row in table.quarantine.collect()} == {
        ("a.csv", 5, "3 cells, but the header names 2"),
        ("a.csv", 6, "not UTF-8"),
        ("c.csv.gz", 0, "not gzip: Not a gzipped file (b'no')"),
    }
    stream = read_files(spark, tmp_path / "*.csv", stream=True)
    assert len(taken(stream, tmp_path / "state")) == 4


@pytest.mark.parametrize("format", ["parquet", pytest.param("orc", marks=pytest.mark.long)])
def test_columns_are_fields(spark: SparkSession, tmp_path: Path, format: str) -> None:  # noqa: A002
    rows = [("A", 1.5), ("B", None)]
    spark.createDataFrame(rows, FIELDS).write.format(format).save(str(tmp_path / "in"))
    for frame in (read_files(spark, tmp_path / "in"), read_files(spark, tmp_path / "in", stream=True)):
        events = normalise(frame, event=None).events.select("fields.*")
        assert sorted(taken(events, tmp_path) if events.isStreaming else events.collect()) == rows


def test_an_error_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(FilesError, match=r"Avro needs a jar .* org\.apache\.spark:spark-avro_2\.13:4"):
        read_files(spark, tmp_path, "avro")
    with pytest.raises(FilesError, match="'xml' is no format, but jsonl, csv, parquet, orc, avro are"):
        read_files(spark, tmp_path, "xml")
    with pytest.raises(FilesError, match=r"nothing in .* has a name that tells its format"):
        read_files(spark, tmp_path)
    with pytest.raises(FilesError, match=r"gone\.jsonl cannot be read as jsonl: .*does not exist"):
        read_files(spark, tmp_path / "gone.jsonl")
