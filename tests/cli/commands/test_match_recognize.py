import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner, Result

from fieldfare.cli import app

ROWS = pa.table({"day": [1, 2, 3, 4], "price": [90, 80, 70, 80]})
CLAUSE = (
    "ORDER BY day MEASURES FIRST(day) AS since, LAST(price) AS low PATTERN (a down+) DEFINE down AS price < PREV(price)"
)
FOUND = {"since": 1, "low": 70}


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["match-recognize", *map(str, arguments)], input=stdin)


def test_every_format_is_read_and_written(tmp_path: Path) -> None:
    csv.write_csv(ROWS, tmp_path / "rows.csv")
    parquet.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()))
    (tmp_path / "clause.sql").write_text(f"MATCH_RECOGNIZE ({CLAUSE}); -- as in SQL")
    for name in ("rows.csv", "rows.parquet", "rows.jsonl"):
        assert json.loads(run(tmp_path / name, f"@{tmp_path / 'clause.sql'}").stdout) == FOUND
    assert json.loads(run("-", CLAUSE, stdin=(tmp_path / "rows.csv").read_text()).stdout) == FOUND
    for name, read in (("to.csv", csv.read_csv), ("to.parquet", parquet.read_table), ("to.jsonl", None)):
        result = run(tmp_path / "rows.csv", CLAUSE, "--to", tmp_path / name)
        assert (result.exit_code, result.stdout) == (0, "")
        found = read(tmp_path / name).to_pylist() if read else [json.loads((tmp_path / name).read_text())]
        assert found == [FOUND]


def test_a_column_of_several_types_is_read_as_texts() -> None:
    rows = '{"x": 1, "y": 1}\n\n{"x": "a", "y": 2.5}\n{"x": null, "z": [1]}\n'
    clause = "MEASURES x AS a, y AS b ALL ROWS PER MATCH PATTERN (a)"
    found = [json.loads(line) for line in run("-", clause, "--format", "jsonl", stdin=rows).stdout.splitlines()]
    assert [(row["a"], row["b"]) for row in found] == [("1", 1.0), ("a", 2.5), (None, None)]
    assert "no rows of jsonl" in run("-", clause, "--format", "jsonl", stdin="{").stderr


@pytest.mark.parametrize(
    ("clause", "to", "problem"),
    [
        ("PATTERN (a", "x.csv", "error: CLAUSE: line 1, column 11: expected ), found the end"),
        (CLAUSE, "x.txt", "the name must end in .csv, .parquet, .jsonl, .ndjson"),
        (CLAUSE.replace("PATTERN", "AFTER MATCH SKIP TO a PATTERN"), "x.csv", "SKIP TO LAST A failed"),
        ("@nothing.sql", "x.csv", "nothing.sql: No such file or directory"),
    ],
)
def test_mistakes_end_in_a_sentence(tmp_path: Path, clause: str, to: str, problem: str) -> None:
    csv.write_csv(ROWS, tmp_path / "rows.csv")
    result = run(tmp_path / "rows.csv", clause, "--to", tmp_path / to)
    assert result.exit_code == 2
    assert problem in result.stderr
