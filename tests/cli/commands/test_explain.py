import json
import subprocess
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.examples import few
from tests.filters.strategies import value_sets
from typer.testing import CliRunner, Result

from fieldfare.cli import app
from fieldfare.cli.formats.relations import covering, relate, relation
from fieldfare.cli.formats.value_lines import Row, draw, pieces
from fieldfare.filters import ValueSet, parse
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Intervals, interval


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def explained(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


def drawn(text: str, width: int = 60) -> list[Row]:
    [branch] = parse(text)
    [wanted] = branch.values()
    return draw(wanted, width)


@pytest.mark.parametrize(
    ("text", "line", "labels"),
    [
        ("x > 100 AND x <= 120.5", "──────○━━━━━━●──────", "     100   120.5"),
        ("x < 5", "◀━━━━━○──────", "      5"),
        ("x >= 5", "──────●━━━━━▶", "      5"),
        ("x IN (1, 2)", "──────●──────●──────", "      1      2"),
        ("x BETWEEN 1 AND 3 OR x > 9", "──────●━━━━━━●──────○━━━━━▶", "      1      3      9"),
        ("x STARTS WITH 'A'", "──────●━━━━━━○──────", "     'A'    'B'"),
        ("x >= 'a' AND x <= 'b'", "──────●━━━━━━●──────", "     'a'    'b'"),
        ("x > 'a'", "──────○━━━━━▶", "     'a'"),
        ("x = X'01'", "──────●──────", "    X'01'"),
        (
            "x > TIMESTAMP '2026-11-15T09:30:00Z'",
            "──────────○━━━━━▶",
            "2026-11-15T09:30:00Z",
        ),
        ("x BETWEEN -1000000 AND -999999", "──────●━━━━━━━━●──────", "  -1000000  -999999"),
    ],
)
def test_a_set_is_a_line_with_marks(text: str, line: str, labels: str) -> None:
    [row] = drawn(text)
    assert row.lines == (line, labels)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x != 5", [("number", "◀━━━━━○━━━━━▶"), ("also", "anything else")]),
        ("NOT x > 5", [("number", "◀━━━━━●──────"), ("also", "anything else, and missing")]),
        ("x IS MISSING OR x IN (TRUE, NULL)", [("is", "missing, null, true")]),
        ("x IS NUMBER", [("is", "NaN, any number")]),
        ("x LIKE '%a%b'", [("string", "by pattern")]),
        ("x IN (1, 'a')", [("number", "──────●──────"), ("string", "──────●──────")]),
        ("ANY x = 'a'", [("some string", "──────●──────")]),
        ("ALL x > 3", [("every number", "──────○━━━━━▶")]),
        (
            "EXISTS x",
            [("is", "null, false, true, NaN, any list, any object, any number, any string, any timestamp, any bytes")],
        ),
        ("ANY x != 'a'", [("some string", "◀━━━━━○━━━━━▶"), ("some also", "anything else")]),
    ],
)
def test_what_is_no_line_is_said_in_words(text: str, rows: list[tuple[str, str]]) -> None:
    assert [(row.label, row.lines[0]) for row in drawn(text)] == rows


def test_a_long_line_is_cut_short() -> None:
    [row] = drawn(f"x IN ({', '.join(map(str, range(50)))})", width=40)
    assert row.lines[0] == "──────●──────●──────●────── … 47 more"
    assert len(row.lines[0]) <= 40


def test_a_long_value_is_cut_short() -> None:
    [row] = drawn(f"x = '{'a' * 100}'")
    assert "…" in row.lines[1]
    assert len(row.lines[1]) < 30


@few(30)
@given(value_sets())
def test_pieces_are_the_whole_set_and_any_set_can_be_drawn(values: ValueSet) -> None:
    for kind, part in values.kinds():
        if isinstance(part, Intervals) and not part.is_full:
            parts = [interval(piece.low, piece.high, piece.closed) for piece in pieces(part)]
            assert reduce(Intervals.__or__, parts) == part, kind
    for row in draw(Constraint(values), 60):
        assert all(len(line) <= 60 or "also" in row.label or "is" in row.label for line in row.lines)


def test_the_normal_form_and_the_drawing() -> None:
    text = explained("price <= 120.5 AND price > 100 OR (price < 3 AND price > 2)")
    assert text.startswith("(price > 2 AND price < 3) OR (price > 100 AND price <= 120.5)\n")
    assert "──────○━━━━━━○──────○━━━━━━●──────" in text


def test_branches_are_numbered() -> None:
    text = explained("price < 10 OR volume > 3")
    assert "branch 1 of 2" in text
    assert "branch 2 of 2" in text
    assert "every event matches" in explained("TRUE")


def test_the_normal_form_stays_on_one_line() -> None:
    names = " AND ".join(f"field{number} = {number}" for number in range(20))
    assert explained(names).splitlines()[0].count("AND") == 19


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("price < 5", "--covered-by", "price < 10"), 0, "yes: price < 10 covers price < 5"),
        (("price < 10", "--covers", "price < 5"), 0, "yes: price < 10 covers price < 5"),
        (("price < 5", "--covers", "price < 10"), 1, "no: price < 5 does not cover price < 10"),
        (("price < 5", "--covers", "price < 10"), 1, "left over is price >= 5 AND price < 10"),
        (("price < 5", "--covers", "price < 1", "--covered-by", "price < 2"), 1, "yes: price < 5 covers price < 1"),
    ],
)
def test_questions_are_answered_with_an_exit_code(arguments: tuple[str, ...], code: int, text: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (code, "")
    assert text in result.stdout
    assert "━" not in result.stdout


@pytest.mark.parametrize(
    ("mine", "other", "word"),
    [
        ("price < 10", "price < 5", "covers"),
        ("price < 5", "price < 10", "is covered by"),
        ("price < 5", "5 > price", "equals"),
        ("price < 5", "price > 3", "overlaps"),
        ("price < 5", "price > 7", "disjoint"),
    ],
)
def test_relations(mine: str, other: str, word: str) -> None:
    assert relation(parse(mine), parse(other)) == word
    assert f" {word} " in explained(mine, "--other", other)


def test_mergers() -> None:
    cheap = parse("price < 10")
    assert relate(cheap, parse("price BETWEEN 8 AND 20"), "x").merger == "price <= 20"
    imperfect = relate(cheap, parse("symbol = 'A'"), "x")
    assert (imperfect.perfect, imperfect.merger) == (False, "TRUE")
    assert 0 < imperfect.precision < 1


def test_covering_that_cannot_be_proved_says_so() -> None:
    answer = covering(parse("price * 2 > 10"), parse("price > 5"))
    assert not answer.holds
    assert answer.reason


def test_filters_of_a_file_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "filters.txt"
    file.write_text("ana\tprice < 5\n# nobody\nprice > 20\n")
    for option in ("--against", "--with"):
        text = explained("price < 10", option, file)
        assert "ana" in text
        assert "covers" in text
        assert "disjoint" in text


def test_why_an_event_does_not_match() -> None:
    text = explained("price < 10 AND symbol = 'ACME' OR EXISTS volume", "--event", '{"price": 12, "symbol": "ACME"}')
    assert text.splitlines()[-5:] == [
        "the event does not match",
        "  ✗ EXISTS volume",
        "      wanted EXISTS volume, but volume is missing",
        "  ✗ price < 10 AND symbol = 'ACME'",
        "      wanted price < 10, but price is 12",
    ]
    assert "the event matches\n  ✓ price < 10" in explained("price < 10", "--event", '{"price": 5}')
    assert "price is [12, 15]" in explained("price < 10", "--event", '{"price": {"$interval": [12, 15]}}')
    assert 'tags is ["a"]' in explained("ANY tags = 'b'", "--event", '{"tags": ["a"]}')


def test_json_says_everything() -> None:
    result = run(
        *("price > 5 AND ANY tags = 'a'", "--json", "--other", "price > 7", "--covers", "price > 9"),
        *("--event", '{"price": 6, "time": "2026-11-15T09:30:00Z"}'),
    )
    assert result.exit_code == 1
    tree: dict[str, Any] = json.loads(result.stdout)
    assert tree["filter"] == "price > 5 AND ANY tags = 'a'"
    price, tags = tree["branches"][0]["constraints"]
    assert price["values"] == {"whole": [], "number": [{"low": 5, "high": None, "closed": "()"}]}
    assert tags["some"] == [{"whole": [], "string": [{"low": "a", "high": "a", "closed": "[]"}]}]
    assert tree["relations"][0]["relation"] == "overlaps"
    assert tree["coverings"][0]["holds"] is False
    assert tree["event"]["matches"] is False
    assert tree["event"]["branches"][0]["findings"] == [
        {"dimension": "price", "wanted": "price > 5", "ok": True, "actual": 6},
        {"dimension": "tags", "wanted": "ANY tags = 'a'", "ok": False, "missing": True},
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("price <",), "error: FILTER: column 8: expected"),
        (("price < 5", "--other", "price <"), "error: --other: column 8"),
        (("price < 5 AND price > 7",), "nothing can match: price > 7 contradicts price < 5"),
        (("price < 5", "--event", "{"), "error: --event: not JSON"),
        (("price < 5", "--against", "no-such-file"), "error: no-such-file: No such file"),
    ],
)
def test_what_cannot_be_used_is_said(arguments: tuple[str, ...], problem: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert problem in result.stderr


@pytest.mark.parametrize(("narrow", "code"), [("price < 5", 0), ("price < 50", 1), ("price <", 2)])
def test_exit_codes_of_the_program(narrow: str, code: int, programs: str) -> None:
    command = [f"{programs}/fieldfare", "explain", narrow, "--covered-by", "price < 10"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == code


def test_a_text_without_quotes_is_remarked_on() -> None:
    assert "compares two fields, IBM and symbol" in explained('symbol = "IBM"')
    assert "single quotes: 'IBM'" in explained("symbol = IBM")
    assert "two fields" not in explained("symbol = 'IBM' AND price < 5")


PATTERN = "a: [x = 1] b: [x = 2] c: [x < 2] a followed by not c followed by b within 10 s for each card limit 5"
PAIRS = [("00", 1, 7), ("04", 2, 7), ("30", 1, 8), ("44", 2, 8)]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = [json.dumps({"time": f"2026-11-01T10:00:{at}Z", "x": x, "card": card}) for at, x, card in PAIRS]
    (tmp_path / "events.jsonl").write_text("\n".join(lines), "utf-8")
    return tmp_path / "events.jsonl"


def test_a_pattern_is_explained_with_its_near_misses(pairs: Path) -> None:
    told = explained("--pattern", PATTERN, "--events", pairs)
    assert "no event is both a and b" in told
    assert "every a is also c" in told
    assert "4 events: 1 detection, 0 still open" in told
    assert "detected (7)\n  2026-11-01 10:00:00  a " in told
    assert "not detected: the 2nd event, b, came 4s too late: within 10s (8)" in told


def test_a_pattern_is_explained_as_json(pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "pattern.txt").write_text(PATTERN, "utf-8")
    told = json.loads(explained("--pattern", f"@{tmp_path / 'pattern.txt'}", "--events", pairs, "--json"))
    assert told["never_together"] == [["a", "b"], ["b", "c"]]
    assert told["always"] == [["a", "c"]]
    assert [one["key"] for one in told["history"]["detections"]] == [[7]]
    assert [one["event"]["x"] for one in told["history"]["near_misses"][0]["events"]] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--pattern", "a: [x = 1 a"], "--pattern"),
        (["--pattern", "@nosuchfile"], "nosuchfile cannot be read"),
        (["x = 1", "--events", "f"], "--events: events are for --pattern"),
        (["--pattern", PATTERN, "--event", "{}"], "only --events and --json"),
        (["x = 1", "--pattern", PATTERN], "only one of them"),
    ],
)
def test_a_mistake_with_patterns_is_named(arguments: list[str], problem: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
