import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fieldfare.cli import app
from fieldfare.cli.formats.dialects import Dialect
from fieldfare.cli.formats.dialects import parse as parse_in
from fieldfare.filters import parse
from fieldfare.filters.languages import sigma
from fieldfare.node.config import load
from fieldfare.patterns import parse_pattern


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["convert", *map(str, arguments)], input=stdin)


def converted(*arguments: str | Path, stdin: str | None = None) -> list[str]:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_native_to_native_is_the_normal_form() -> None:
    assert converted("(5 > price) AND price < 7") == ["price < 5"]


def test_files_keep_names_and_lose_comments(tmp_path: Path) -> None:
    file = tmp_path / "filters.txt"
    file.write_text("# whose\nana\t5 > price\n\n(symbol = 'A')\n")
    assert converted("--file", file) == ["ana\tprice < 5", "symbol = 'A'"]
    assert converted("-", stdin=file.read_text()) == ["ana\tprice < 5", "symbol = 'A'"]


@pytest.mark.parametrize("text", ["ANY symbol = 'ACME' AND ANY price < 20", "ANY symbol STARTS WITH 'A'"])
def test_ruler_there_and_back(text: str) -> None:
    [pattern] = converted(text, "--to", "ruler")
    assert isinstance(json.loads(pattern), dict)
    [back] = converted(pattern, "--from", "ruler")
    assert parse(back) == parse(text) == parse_in(pattern, Dialect.RULER)


@pytest.mark.parametrize("text", ["type = 'sale'", "type = 'sale' AND subject STARTS WITH 'a'", "NOT type = 'sale'"])
def test_cloudevents_there_and_back(text: str) -> None:
    [document] = converted(text, "--to", "cloudevents")
    json.loads(document)
    [back] = converted(document, "--from", "cloudevents")
    assert parse(back) == parse_in(document, Dialect.CLOUDEVENTS)


def test_cesql_is_read() -> None:
    [native] = converted("type LIKE 'com.acme.%'", "--from", "cesql")
    assert parse(native) == parse_in("type LIKE 'com.acme.%'", Dialect.CESQL)
    assert parse(native).matches({"type": "com.acme.sale", "specversion": "1.0"})
    assert run("type = 'a'", "--to", "cesql").exit_code == 2


def test_a_file_of_documents(tmp_path: Path) -> None:
    file = tmp_path / "patterns.txt"
    file.write_text('{"symbol":\t["ACME"]}\nana\t{"price": [{"numeric": [">", 10]}]}\n')
    assert converted("--file", file, "--from", "ruler") == ["ANY symbol = 'ACME'", "ana\tANY price > 10"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("price * volume > 5", "--to", "ruler"), "error: FILTER: no pattern can express price * volume > 5"),
        (
            ("price * volume > 5", "--to", "cloudevents"),
            "error: FILTER: cannot be expressed in the CloudEvents dialects: price * volume > 5",
        ),
        (("price <",), "error: FILTER: column 8: expected"),
        (
            ('{"a": ["b"]', "--from", "ruler"),
            "error: FILTER: at /: not JSON: Expecting ',' delimiter (column 12)\n",
        ),
        (
            ('{"a": [\n"b"', "--from", "ruler"),
            "error: FILTER: at /: not JSON: Expecting ',' delimiter (line 2, column 4)\n",
        ),
        (("price < 5", "--from", "ruler"), "error: FILTER: at /: not JSON: Expecting value (column 1)\n"),
        (
            ("{", "--from", "cloudevents"),
            "error: FILTER: not JSON: Expecting property name enclosed in double quotes (column 2)\n",
        ),
        (("type = ", "--from", "cesql"), "error: FILTER: column "),
        ((), "give a filter or --file FILE, and not both"),
        (("x = 1", "--file", "y"), "give a filter or --file FILE, and not both"),
        (("--file", "no-such-file"), "no-such-file: No such file"),
    ],
)
def test_what_cannot_be_converted_is_said(arguments: tuple[str, ...], problem: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_text("x = 1\ny =\n")
    assert f"error: {file}:2: column 4: expected" in run("--file", file).stderr


BAD: dict[str, tuple[bytes, list[str]]] = {
    "f.txt": (b"x = 1\nana\ty =\n# none\n\xff\nben\t5 > z\n", ["2: column 4: expected", "4: not UTF-8"]),
    "f.jsonl": (
        b'{"filter": "x = 1"}\n{"filter": "y ="}\n{\n[]\n{"filter": "x", "dialect": "no"}\n{"id": "ben", "filter": "5 > z"}\n',
        ["2: column 4: expected", "3: not JSON", "4: a line of filters is", "5: the dialect is none of"],
    ),
    "f.csv": (b"id,filter\n,x = 1\nana,y =\nben,5 > z\n", ["3: column 4: expected"]),
}
"""files with two good filters, and what is wrong with the others"""


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_skipped_said_and_counted(name: str, tmp_path: Path) -> None:
    text, problems = BAD[name]
    file = tmp_path / name
    file.write_bytes(text)
    result = run("--file", file, "--errors", "skip")
    assert result.exit_code == 0
    assert result.stdout == "x = 1\nben\tz < 5\n"
    said = [line for line in result.stderr.splitlines() if line.startswith("skipped: ")]
    assert len(said) == len(problems)
    for line, problem in zip(said, problems, strict=True):
        assert line.startswith(f"skipped: {file}:{problem}")
    assert result.stderr.endswith(f"\n{len(problems)} of {len(problems) + 2} filters skipped\n")


@pytest.mark.parametrize("name", BAD)
def test_without_skipping_the_first_bad_line_is_the_end(name: str, tmp_path: Path) -> None:
    text, problems = BAD[name]
    file = tmp_path / name
    file.write_bytes(text)
    for arguments in ((), ("--errors", "stop")):
        result = run("--file", file, *arguments)
        assert (result.exit_code, result.stdout) == (2, "x = 1\n")
        assert result.stderr.startswith(f"error: {file}:{problems[0]}")
        assert "skipped" not in result.stderr


def test_what_another_language_cannot_say_is_skipped_too() -> None:
    result = run("-", "--to", "ruler", "--errors", "skip", stdin="ANY a = 1\na + b = 3\n")
    assert (result.exit_code, result.stdout) == (0, '{"a": [1]}\n')
    said, count = result.stderr.splitlines()
    assert said.startswith("skipped: <stdin>:2: no pattern can express a + b = 3")
    assert count == "1 of 2 filters skipped"


def test_nothing_skipped_is_nothing_said() -> None:
    result = run("-", "--errors", "skip", stdin="x = 1\n")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "x = 1\n", "")


def test_a_file_that_cannot_be_read_is_not_skipped(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("id,other\n1,2\n")
    result = run("--file", file, "--errors", "skip")
    assert result.exit_code == 2
    assert "there is no column 'filter'" in result.stderr


def test_the_program_reads_standard_input(programs: str) -> None:
    command = [f"{programs}/fieldfare", "convert", "-"]
    done = subprocess.run(command, input="5 > price\n", capture_output=True, text=True, check=True)
    assert done.stdout == "price < 5\n"


RULE = """
id: 11-22
logsource: {product: windows}
detection: {s: {Image|endswith: 'cmd.exe'}, condition: s}
"""


def test_a_folder_of_rules(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.yml").write_text(RULE + "---\ntitle: b\ndetection: {s: {x|hour: 1}, condition: s}\n")
    (tmp_path / "deep" / "c.yaml").write_text(RULE.replace("11-22", "33").replace("windows", "linux"))
    (tmp_path / "schema.toml").write_text('[[sources]]\nproduct = "windows"\nfilter = "EventID = 1"\n')
    result = run("--from", "sigma", "--file", tmp_path, "--errors", "skip")
    assert result.stdout.splitlines() == [
        "11-22\tANY Image ILIKE '%cmd.exe' AND logsource.product = 'windows'",
        "33\tANY Image ILIKE '%cmd.exe' AND logsource.product = 'linux'",
    ]
    assert "a.yml:b: at /detection/s/x|hour: the modifier hour is not supported" in result.stderr
    mapped = run("--from", "sigma", "--file", tmp_path, "--schema", tmp_path / "schema.toml", "--errors", "skip")
    assert mapped.stdout.splitlines() == ["11-22\tEventID = 1 AND ANY Image ILIKE '%cmd.exe'"]
    assert "no source for product linux" in mapped.stderr
    assert run("--from", "sigma", "--file", tmp_path / "a.yml", "--schema", tmp_path / "none.toml").exit_code == 2
    assert "dialect sigma" in run("--file", tmp_path / "a.yml").stderr


CORRELATED = """
name: two of them
correlation: {type: event_count, rules: [11-22], group-by: [User], timespan: 5m, condition: {gte: 2}}
---
name: too few
correlation: {type: event_count, rules: [11-22], group-by: [User], timespan: 5m, condition: {lt: 2}}
"""


def test_correlations_become_the_patterns_of_a_node(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(RULE.replace("cmd.exe", "c''m\"d\\b.exe"))
    (tmp_path / "b.yml").write_text(CORRELATED)
    convert = ("--from", "sigma", "--file", tmp_path, "--to", "patterns")
    result = run(*convert, "--errors", "skip")
    settings = tomllib.loads(result.stdout)
    assert list(settings["patterns"]) == ["two of them"]
    found = parse_pattern(settings["patterns"]["two of them"]["text"])
    assert found.filters["rule_1"] == sigma.parse((tmp_path / "a.yml").read_text())
    (tmp_path / "node.toml").write_text(result.stdout)
    assert load(tmp_path / "node.toml", {}, {}).patterns["two of them"].text.strip() == found.text
    assert "b.yml:too few: at /correlation/condition/lt: only the end of a window tells" in result.stderr
    assert result.stderr.splitlines()[-1] == "1 of 2 filters skipped"
    assert run(*convert).exit_code == 2
    assert "only correlations of Sigma become patterns" in run("x = 1", "--to", "patterns").stderr
    alone = run(CORRELATED, "--from", "sigma", "--to", "patterns")
    assert alone.stderr.startswith("error: FILTER: at /correlation/rules/0")
    assert "fieldfare.patterns.sigma" in run("--from", "sigma", "--file", tmp_path / "b.yml").stderr
