import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from fieldfare.cli import app
from fieldfare.cli.formats.dialects import Dialect
from fieldfare.cli.formats.event_files import BadEvent, EventsFormat, read_events
from fieldfare.cli.formats.filter_files import Named, read_filters
from fieldfare.cli.formats.inputs import sample, source_of
from fieldfare.events import Event, arrow, format_timestamp
from fieldfare.events.cloudevents import decode_any


def matches_of(filters: Sequence[Named], event: Event) -> list[str]:
    return [name for name, wanted in filters if wanted.matches(event)]


FILTERS = """\
# a comment

cheap\tprice < 20
tech\tsector = 'tech' AND EXISTS change
price > 20
late\ttime >= TIMESTAMP '2026-11-16T18:00:00Z'
abroad\tvenue.country = 'DE'
"""


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["match", *map(str, arguments)], input=stdin)


def ok(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def matched(*arguments: str | Path, stdin: str | bytes | None = None) -> list[list[str]]:
    lines = ok(*arguments, "-o", "jsonl", stdin=stdin).stdout.splitlines()
    return [json.loads(line)["matches"] for line in lines]


def flat_events() -> list[Event]:
    """Events of the sample that CSV and Parquet can hold: a kind per column, no lists."""
    trees = []
    for event in read_events(sample("events.jsonl"), EventsFormat.JSONL):
        assert isinstance(event, Event)
        tree = {name: value for name, value in event.tree.items() if name in WANTED}
        if type(tree.get("price")) is float and type(tree.get("volume")) is int:
            trees.append(tree)
    return [Event(tree) for tree in trees[:200]]


WANTED = {"id", "type", "symbol", "sector", "price", "change", "volume", "time", "venue"}


def write_csv(events: Sequence[Event], file: Path) -> None:
    header = ["id", "type", "symbol", "sector", "price", "change", "volume", "time", "venue.id", "venue.country"]
    text = io.StringIO()
    rows = csv.DictWriter(text, header, extrasaction="ignore")
    rows.writeheader()
    for event in events:
        assert event.time is not None
        rows.writerow({**event.fields, "time": format_timestamp(event.time)})
    file.write_text(text.getvalue(), encoding="utf-8")


@pytest.fixture
def filters(tmp_path: Path) -> Path:
    file = tmp_path / "filters.txt"
    file.write_text(FILTERS, encoding="utf-8")
    return file


def test_the_sample_is_what_it_promises() -> None:
    events = list(read_events(sample("events.jsonl"), EventsFormat.JSONL))
    wanted = read_filters(sample("filters.txt"), Dialect.NATIVE)
    good = [event for event in events if isinstance(event, Event)]
    assert (len(events), len(good), len(wanted)) == (1000, 1000, 300)
    found = [matches_of(wanted, event) for event in good]
    assert 2 < sum(map(len, found)) / len(found) < 8
    assert [] in found
    rich = [name for name, _ in wanted[:30]]
    assert {name for names in found for name in names} >= set(rich)


def test_the_sample_is_made_by_its_tool(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    script = tmp_path / "tools" / "make_market_sample.py"
    script.parent.mkdir()
    script.write_bytes((root / "tools" / script.name).read_bytes())
    subprocess.run([sys.executable, str(script)], check=True)
    for name in ("events.jsonl", "filters.txt"):
        path = Path("src", "fieldfare", "data", "market", name)
        assert (tmp_path / path).read_bytes() == (root / path).read_bytes()


def test_without_arguments_the_sample_is_used_and_named() -> None:
    result = ok()
    assert "Using the events and filters of the bundled market data sample." in result.stderr
    for text in ("events           1,000", "filters          300", "matched by", "and 980 more events", "CPU time"):
        assert text in result.stdout


def test_all_formats_of_events_give_the_same_matches(tmp_path: Path, filters: Path) -> None:
    events = flat_events()
    lines = "".join(json.dumps(_jsonable(event)) + "\n" for event in events)
    jsonl, table, columns = tmp_path / "e.jsonl", tmp_path / "e.csv", tmp_path / "e.parquet"
    jsonl.write_text(lines, encoding="utf-8")
    write_csv(events, table)
    parquet.write_table(pa.Table.from_batches([arrow.to_batch(events)]), columns)
    expected = [matches_of(read_filters(source_of(str(filters)), Dialect.NATIVE), event) for event in events]
    assert any(expected)
    assert matched(jsonl, filters) == expected
    assert matched(table, filters) == expected
    assert matched(columns, filters) == expected
    assert matched("-", filters, stdin=lines) == expected
    assert matched("-", filters, "--events-format", "csv", stdin=table.read_text(encoding="utf-8")) == expected
    assert matched("-", filters, "--events-format", "parquet", stdin=columns.read_bytes()) == expected


def _jsonable(event: Event) -> dict[str, object]:
    assert event.time is not None
    return {**event.tree, "time": format_timestamp(event.time)}


def test_all_formats_of_filters_give_the_same_matches(tmp_path: Path, filters: Path) -> None:
    entries = [(name, str(wanted)) for name, wanted in read_filters(source_of(str(filters)), Dialect.NATIVE)]
    jsonl, table, columns = tmp_path / "f.jsonl", tmp_path / "f.csv", tmp_path / "f.parquet"
    jsonl.write_text("".join(json.dumps({"id": name, "filter": text}) + "\n" for name, text in entries))
    with table.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("id", "filter"), *entries])
    names, texts = map(list, zip(*entries, strict=True))
    parquet.write_table(pa.table({"id": names, "filter": texts}), columns)
    events = tmp_path / "e.jsonl"
    events.write_text("".join(json.dumps(_jsonable(event)) + "\n" for event in flat_events()))
    expected = matched(events, filters)
    assert ["cheap"] in expected
    assert any("5" in names for names in expected)  # a filter without a name has the number of its line
    for file in (jsonl, table, columns):
        assert matched(events, file) == expected


def test_cloudevents_are_told_by_specversion() -> None:
    cloud = (
        '{"specversion":"1.0","id":"7","source":"/till","type":"sale","time":"2026-11-15T09:30:00Z","data":{"sum":5}}'
    )
    plain = '{"id":"8","data":{"sum":5,"specversion":"1.0"}}'
    result = ok(
        "-", "-f", "data.sum = 5 AND EXISTS time", "-f", "data.sum = 5", "-o", "jsonl", stdin=f"{cloud}\n{plain}\n"
    )
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"event": 1, "id": "7", "matches": ["data.sum = 5 AND EXISTS time", "data.sum = 5"]},
        {"event": 2, "id": "8", "matches": ["data.sum = 5"]},
    ]
    assert "2 events, 2 filters, 3 matches" in result.stderr
    with pytest.raises(ValueError, match="source"):
        decode_any('{"specversion":"1.0","id":"7","type":"sale"}')


def test_intervals_overlap_or_are_covered() -> None:
    event = '{"price": {"$interval": [5, 15]}}'
    assert matched("-", "-f", "price < 10", stdin=event) == [["price < 10"]]
    assert matched("-", "-f", "price < 10", "--mode", "covers", stdin=event) == [[]]


def test_parquet_output(tmp_path: Path) -> None:
    file = tmp_path / "matches.parquet"
    result = ok("-o", "parquet", "--to", file)
    table = parquet.read_table(file)
    assert table.schema == pa.schema([("event", pa.int64()), ("filter", pa.string())])
    lines = [json.loads(line) for line in ok("-o", "jsonl").stdout.splitlines()]
    expected = [{"event": line["event"], "filter": name} for line in lines for name in line["matches"]]
    assert table.to_pylist() == expected
    assert f"{len(expected):,} matches" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["matches.parquet"]


def test_jsonl_output_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "matches.jsonl"
    assert ok("-", "-f", "a = 1", "-o", "jsonl", "--to", file, stdin='{"a": 1}').stdout == ""
    assert json.loads(file.read_text()) == {"event": 1, "id": None, "matches": ["a = 1"]}


def test_a_bad_event_stops_with_file_line_and_field(tmp_path: Path) -> None:
    events, target = tmp_path / "e.jsonl", tmp_path / "m.parquet"
    events.write_text('{"a": 1}\n\n{"a": {"b": NaN}}\n{"a": 2}\n')
    result = run(events, "-f", "a < 5", "-o", "parquet", "--to", target)
    assert result.exit_code == 2
    assert f"error: {events}:3: field 'a.b': NaN is not JSON" in result.stderr
    assert list(tmp_path.iterdir()) == [events]


def test_bad_events_are_skipped_and_counted(tmp_path: Path) -> None:
    events = tmp_path / "e.jsonl"
    events.write_text('{"a": 1}\nnonsense\n[]\n{"a": 2}\n')
    result = ok(events, "-f", "a = 2", "--errors", "skip")
    assert "skipped          2 bad events" in result.stdout
    lines = ok(events, "-f", "a = 2", "--errors", "skip", "-o", "jsonl")
    assert [json.loads(line)["event"] for line in lines.stdout.splitlines()] == [1, 4]
    assert "2 bad events skipped" in lines.stderr


def test_bad_rows_of_csv_and_parquet_are_named(tmp_path: Path) -> None:
    table, columns = tmp_path / "e.csv", tmp_path / "e.parquet"
    table.write_text("a,b\n1,x\n1,2,3\n99999999999999999999,y\n4,\n")
    found = list(read_events(source_of(str(table)), EventsFormat.CSV))
    assert [str(one) if isinstance(one, BadEvent) else dict(one) for one in found] == [
        {"a": 1, "b": "x"},
        f"{table}:3: 3 cells, but the header names 2",
        f"{table}:4: field 'a': the integer 99999999999999999999 does not fit in 64 bits",
        {"a": 4},
    ]
    parquet.write_table(pa.table({"a": pa.array([1, 2**63, 3], pa.uint64())}), columns)
    rows = list(read_events(source_of(str(columns)), EventsFormat.PARQUET))
    assert [type(row) for row in rows] == [Event, BadEvent, Event]
    assert str(rows[1]).startswith(f"{columns}:row 2: field 'a': ")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("f.txt", "price < 5\n\nx\tprice < < 5\n", "f.txt:3: column 9: expected"),
        ("f.txt", "a\tx = 1\na\tx = 2\n", "f.txt:2: the name 'a' is taken already, at"),
        ("f.jsonl", '{"filter": "x = 1"}\n{"id": 1}\n', "f.jsonl:2: a line of filters is an object such as"),
        ("f.jsonl", '{"filter": "x = 1"\n', "f.jsonl:1: not JSON: "),
        ("f.jsonl", '{"filter": {"x": [1]}}\n', "f.jsonl:1: a filter in the dialect native is a text"),
        ("f.jsonl", '{"filter": "x = 1", "dialect": "sql"}\n', "f.jsonl:1: the dialect is none of native, "),
        ("f.csv", "name,text\na,b\n", "f.csv: there is no column 'filter', only 'name', 'text'"),
        ("f.csv", "id,filter\na,x = \n", "f.csv:2: column 4: expected"),
        ("f.parquet", "no Parquet", "f.parquet: not a Parquet file: "),
    ],
)
def test_a_bad_filter_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    result = run("-", tmp_path / name, stdin="{}")
    assert result.exit_code == 2
    assert f"error: {tmp_path}/{problem}" in result.stderr


def test_files_that_are_no_events(tmp_path: Path) -> None:
    (tmp_path / "e.parquet").write_text("no Parquet")
    assert "e.parquet: not a Parquet file: " in run(tmp_path / "e.parquet", "-f", "x = 1").stderr
    (tmp_path / "e.csv").write_text("a,a\n1,2\n")
    assert "e.csv:1: two columns have the same name" in run(tmp_path / "e.csv", "-f", "x = 1").stderr
    (tmp_path / "e.csv").write_bytes(b"a\n\xff\n")
    result = run(tmp_path / "e.csv", "-f", "x = 1")
    assert (result.exit_code, "e.csv:2: field 'a': " in result.stderr) == (2, True)


def test_a_caret_shows_where_a_filter_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("x\tprice < < 5\n")
    assert "\n  price < < 5\n          ^\n" in run("-", tmp_path / "f.txt", stdin="{}").stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["no-such-file.jsonl", "-f", "x = 1"], "no-such-file.jsonl: No such file or directory"),
        (["-", "-"], "events and filters cannot both come from standard input"),
        (["-o", "parquet"], "--output parquet needs --to FILE"),
        (["--to", "x"], "--to is for --output jsonl or parquet"),
        (["-", "f.txt", "-f", "x = 1"], "filters come from a file or from --filter, not from both"),
        (["-f", "x <"], "--filter: column 4: expected"),
        (["--dialect", "cobol"], "cobol"),
        (["--limit", "-1"], "--limit"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], problem: str) -> None:
    result = run(*arguments, stdin="{}")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert "Traceback" not in result.stderr


def test_control_characters_do_not_reach_the_terminal() -> None:
    result = ok("-", "-f", "TRUE", stdin='{"a": "\\u001b[2J"}')
    assert "\x1b" not in result.stdout
    assert "a=·[2J" in result.stdout


def test_a_stream_is_answered_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIELDFARE_KERNELS", "numpy")  # the program starts in half the time
    command = [sys.executable, "-m", "fieldfare", "match", "-", "-f", "price < 5", "-o", "jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for price, matches in ((3, ["price < 5"]), (7, [])):
            process.stdin.write(b'{"price": %d}\n' % price)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["matches"] == matches
        process.stdin.close()
        assert process.wait(30) == 0


def test_exit_codes_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIELDFARE_KERNELS", "numpy")  # the program starts in half the time
    (tmp_path / "e.jsonl").write_text("{}\n")
    command = [sys.executable, "-m", "fieldfare", "match", "e.jsonl", "-f"]
    good = subprocess.run([*command, "x IS MISSING"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (good.returncode, "x IS MISSING" in good.stdout) == (0, True)
    bad = subprocess.run([*command, "x IS"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr
