"""The examples of README.md and docs/ do what they say.

Per file, in order and in one namespace: ```python blocks are executed, or checked by doctest if they contain `>>>`.
In ```console and ```sh blocks the lines `$ fieldfare ...` are run in one empty directory; output lines that follow must
match, `...` standing for anything. A command must exit with 0, or with N if it ends in `# exit N`.
`<!-- no-test: reason -->` above a block skips it.
"""

import doctest
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"(?P<skip><!-- no-test: \S[^\n]*? -->\s*)?"
    r"^(?P<indent> *)(?P<fence>`{3,}) *(?P<lang>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n?(?P<output>(?:(?!\$ )[^\n]*\n?)*)", re.MULTILINE)
EXIT = re.compile(r"# exit (\d+)\s*$")


class Block(NamedTuple):
    lang: str
    body: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        if not match["skip"]:
            yield Block(match["lang"], textwrap.dedent(match["body"]), text.count("\n", 0, match.start("body")))


def run_python(block: Block, name: str, namespace: dict[str, Any]) -> None:
    if ">>>" not in block.body:
        exec(compile("\n" * block.line + block.body, name, "exec", dont_inherit=True), namespace)
        return
    test = doctest.DocTestParser().get_doctest(block.body, {}, name, name, block.line)
    test.globs = namespace
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = runner.run(test, out=report.append, clear_globs=False).failed
    assert not failed, "".join(report)


def run_console(block: Block, name: str, directory: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}
    for match in COMMAND.finditer(block.body):
        command, want = match["command"], match["output"].strip("\n")
        if not re.match(r"fieldfare\b", command):
            continue
        place = f"{name}:{block.line + block.body.count(chr(10), 0, match.start()) + 1}: {command}"
        done = subprocess.run(
            command,
            shell=True,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        status = EXIT.search(command)
        assert done.returncode == (int(status[1]) if status else 0), f"{place}\n{done.stdout}"
        got = "\n".join(line.rstrip() for line in done.stdout.strip("\n").split("\n"))
        same = not want or doctest.OutputChecker().check_output(want + "\n", got + "\n", doctest.ELLIPSIS)
        assert same, f"{place}\nexpected:\n{want}\ngot:\n{got}"


def run_examples(text: str, name: str, directory: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(text):
        if block.lang in {"python", "pycon"}:
            run_python(block, name, namespace)
        elif block.lang in {"console", "sh"}:
            run_console(block, name, directory)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_examples(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(file.read_text(encoding="utf-8"), str(file.relative_to(ROOT)), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```\n\n```python\n>>> x\n2\n```\n",
        "- item\n\n    ```python\n    assert False\n    ```\n",
        "```console\n$ fieldfare --no-such-option\n```\n",
        "```sh\n$ echo 1\n1\n$ fieldfare --help\nnot the help\n```\n",
    ],
    ids=["doctest", "indented", "exit", "output"],
)
def test_a_wrong_example_is_noticed(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_examples(text, "wrong.md", tmp_path)


def test_a_marked_block_is_skipped(tmp_path: Path) -> None:
    run_examples("<!-- no-test: shows an error -->\n```python\nassert False\n```\n", "skipped.md", tmp_path)
