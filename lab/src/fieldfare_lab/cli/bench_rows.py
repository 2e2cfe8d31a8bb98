"""`fieldfare bench rows`: row patterns on Spark beside window functions of Spark SQL."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fieldfare.cli.errors import InputError, reported


@reported()
def command(
    *,
    rows: Annotated[
        int, typer.Option(min=1000, metavar="N", help="Number of rows; a thousand for each key.")
    ] = 10_000_000,
    cores: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of cores to use. [default: all]", show_default=False)
    ] = os.cpu_count() or 1,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 3,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure the row patterns of MATCH_RECOGNIZE on Spark beside window functions.

    Two patterns over the same Parquet files, for each key: a price that falls and then rises, and sessions. The answers
    are compared first: if answers differ, nothing is timed. CPU time is the time of all processes, Java and workers
    included. Rows are made once, in the temporary directory.

    Examples:
        fieldfare bench rows --rows 1000000
        fieldfare bench rows --json rows.json
    """
    if find_spec("pyspark") is None:
        raise InputError("", "this needs Spark: pip install 'fieldfare[spark]'")
    from msgspec import json
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare_lab.pipeline import row_patterns
    from fieldfare_lab.pipeline.bars import table

    contenders = sum(map(len, row_patterns.CONTENDERS.values()))
    with steps(contenders * (rounds + 1)) as step:
        lines = row_patterns.measure(rows, cores, rounds, row_patterns.LEAST, step)
    Console(width=None if sys.stdout.isatty() else 200).print(table(lines))
    if to_json is not None:
        to_json.write_bytes(json.format(json.encode(lines)))
    if any(line.bar == "answers" for line in lines):
        raise typer.Exit(1)
