"""The benchmark of the pipeline: it measures what it says, and a wrong answer is found out before anything is timed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from tools.waiting import PATIENCE
from typer.testing import CliRunner

from fieldfare import parse
from fieldfare.matching import BruteForce
from fieldfare.pipeline.match import catalogue
from fieldfare_lab.bench.workloads import generate
from fieldfare_lab.cli import bench_pipeline
from fieldfare_lab.pipeline import bare_engine, mixed_filters, scale, stream
from fieldfare_lab.pipeline.bars import Line, at_least, at_most, table
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.data import Data, data

FILTERS, EVENTS = 200, 400
# In a process of its own: it ends its Spark sessions, and other tests have one that goes on.
IN_SPARK = """
import sys
from pathlib import Path
import msgspec
from fieldfare_lab.pipeline import data, operator, output, sql_plans

def sql(workload):
    made = data.data(200, 400, Path(sys.argv[1]), workload=workload)
    return lambda small, *more: sql_plans.measure(made, 2, *more)

if __name__ == "__main__":
    small = data.data(200, 400, Path(sys.argv[1]))
    measures = {"operator": operator.measure, "output": output.measure}
    measures |= {workload: sql(workload) for workload in ("stock", "eq", "begen", "mixed")}
    found = {name: measures[name](small, 2, 1, lambda _: None) for name in sys.argv[2:]}
    sys.stdout.buffer.write(msgspec.json.encode(found))
"""


def in_spark(folder: Path, *bars: str) -> dict[str, list[dict[str, object]]]:
    program = folder / "measured.py"
    program.write_text(IN_SPARK)
    command = [sys.executable, str(program), str(folder), *bars]
    found: dict[str, list[dict[str, object]]] = json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=4 * PATIENCE).stdout
    )
    return found


def small(folder: Path) -> Data:
    return data(FILTERS, EVENTS, folder)


def total() -> int:
    made = generate("stock", FILTERS, EVENTS)
    oracle: BruteForce[int] = BruteForce()
    oracle.add_many(enumerate(made.parsed))
    return sum(map(oracle.count, made.events))


@pytest.mark.long
def test_all_jobs_and_all_plans_find_what_brute_force_finds(tmp_path: Path) -> None:
    found = in_spark(tmp_path, "operator", "output", "stock", "eq", "begen", "mixed")
    operator, output, stock = found["operator"], found["output"], found["stock"]
    assert f"{total():,} matches" in str(operator[0]["measured"])
    assert operator[0]["wanted"] == "≤ 1.3"
    figures = operator[0]["figures"]
    assert isinstance(figures, dict)
    assert min(figures.values()) > 0
    assert [line["met"] for line in operator[1:]] == [None] * 3
    assert [line["wanted"] for line in output] == ["≤ 1.5", "≤ 1.5", "≤ 3", "≤ 6"]
    assert all(f"{total():,} matches" in str(line["measured"]) for line in (*output, *stock))
    assert [line["wanted"] for name in ("stock", "eq", "begen") for line in found[name]] == ["≥ 2"] * 6
    assert len(found["mixed"]) == 1


@pytest.mark.long
def test_a_catalogue_that_lacks_a_filter_is_found_out_and_nothing_is_timed(tmp_path: Path) -> None:
    made = small(tmp_path)
    matched = pq.read_table(made.events).slice(0, 50).to_pylist()
    wanted = generate("stock", FILTERS, EVENTS).parsed
    gone = next(number for number, one in enumerate(wanted) if any(map(one.matches, matched)))
    catalogue.amend(made.subscriptions, remove=[gone])
    (line,) = in_spark(tmp_path, "stock")["stock"]
    assert (line["bar"], line["met"], line["value"]) == ("answers", False, None)


def test_mixed_filters_mean_the_same_in_both_languages() -> None:
    """The rows of operands are those of the texts."""
    texts = mixed_filters.texts(12)
    for number, (rows, _) in enumerate(mixed_filters.tables(12).values()):
        for row in rows.to_pylist():
            assert texts[row["id"]] == mixed_filters.FORMS[number].text.format(**row)
    assert len({str(parse(text)) for text in texts}) == 12


def test_data_is_made_once(tmp_path: Path) -> None:
    first = small(tmp_path)
    events = pq.read_table(first.events)
    assert events["event"].to_pylist() == [*range(EVENTS)]
    assert events.drop_columns("event").to_pylist() == generate("stock", FILTERS, EVENTS).events
    kept = {path: path.stat().st_mtime_ns for part in (first.events, first.joins) for path in part.iterdir()}
    again = small(tmp_path)
    assert {path: path.stat().st_mtime_ns for part in (again.events, again.joins) for path in part.iterdir()} == kept


@pytest.mark.usefixtures("swift")
def test_the_bare_engine_matches_everything_in_as_many_processes_as_it_is_told(tmp_path: Path) -> None:
    made = small(tmp_path)
    with bare_engine.engine(made.events, made.subscriptions, processes=2, rows=16) as once:
        for _ in range(2):
            matches, spent = once()
            assert matches == total()
            assert spent.wall > 0


@pytest.mark.usefixtures("swift")
def test_opening_is_timed_in_a_fresh_process(tmp_path: Path) -> None:
    (line,) = scale.opening(small(tmp_path), 1, lambda _: None)
    assert line.value == round(line.figures["opened"], 3)
    assert min(line.figures.values()) > 0


def test_a_row_of_a_stream_s_table_is_there_since_its_micro_batch_was_noted(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for number, positions in enumerate(([1, 2], [3])):
        file = tmp_path / f"part {number}.parquet"
        pq.write_table(
            pa.table({"position": positions, "time": pa.array([0] * len(positions), pa.timestamp("us"))}), file
        )
        (log / str(number)).write_text(f'v1\n{{"path": "{file.as_uri()}", "size": 1}}\n')
    summed = log / "2.compact"
    summed.write_text("v1\n" + "".join((log / str(number)).read_text().partition("\n")[2] for number in range(2)))
    rows, there = stream._arrivals(tmp_path)
    assert rows["position"].tolist() == [1, 2, 3]
    noted = [(log / str(number)).stat().st_mtime for number in range(2)]
    np.testing.assert_array_equal(there, [noted[0], noted[0], noted[1]])


def test_cpu_time_is_that_of_children_too() -> None:
    burn = "import sys, time\nwhile time.process_time() < 0.4: pass\nprint(flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        _, spent = timed(child.stdout.readline)
        child.stdin.close()
    assert spent.cpu >= 0.3
    assert best([Spent(2, 1), Spent(1, 3)]) == Spent(1, 1)


def test_the_table_says_which_bars_are_met() -> None:
    lines = [at_most("a", "", 1.3, 1.3), at_most("b", "", 1.31, 1.3), at_least("c", "", 1.6, 1.7), Line("d", "beside")]
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table(lines))
    assert [line.met for line in lines] == [True, False, False, None]
    assert (captured.get().count("yes"), captured.get().count("NO")) == (1, 2)


def test_a_bar_that_is_not_there_is_refused() -> None:
    app = typer.Typer()
    app.command()(bench_pipeline.command)
    result = CliRunner().invoke(app, ["--only", "operator,speed"])
    assert result.exit_code == 2
    assert "there is no bar 'speed'" in result.output
