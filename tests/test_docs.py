"""The examples of README.md and docs/ do what they say.

Per file, in order and in one namespace: ```python blocks are executed, or checked by doctest if they contain `>>>`.
In ```console and ```sh blocks the lines `$ ...` are run by one shell in one empty directory; output lines that follow must
match, `...` standing for anything. A command must exit with 0, or with N if it ends in `# exit N`. One that ends in `&`
goes on until the end of the file, and so may a node: where a file starts one, the ports 7400 to 7409 stand for free ones.
A block of any kind with `title="NAME"` is a file, and only written. `<!-- no-test: reason -->` above a block skips it.
"""

import doctest
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import pytest
from _pytest.mark import ParameterSet
from tests.pipeline.cheap import CHEAP_JAVA, CHEAP_SQL
from tools.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"(?P<skip><!-- no-test: \S[^\n]*? -->\s*)?"
    r"^(?P<indent> *)(?P<fence>`{3,}) *(?P<lang>\w*)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n?(?P<output>(?:(?!\$ )[^\n]*\n?)*)", re.MULTILINE)
EXIT = re.compile(r"# exit (\d+)\s*$")
TITLE = re.compile(r'title="([^"/]+)"')
STARTS_A_NODE = re.compile(r"^ *\$ (?:\w+=\S+ )*fieldfare up\b[^\n]*&$", re.MULTILINE)
NOTHING: Mapping[str, str] = MappingProxyType({})
PORT = re.compile(r"\b740\d\b")
MAKES_A_SESSION = re.compile(r"= spark_session\(")
RUNS_A_PIPELINE = re.compile(r"^\$ .*\bfieldfare pipeline run .*--once", re.MULTILINE)
CHEAP_SPARK = {
    "SPARK_SUBMIT_OPTS": CHEAP_JAVA,
    "PYSPARK_SUBMIT_ARGS": " ".join(f"--conf {key}={value}" for key, value in CHEAP_SQL.items()) + " pyspark-shell",
}
"""settings of Spark for jobs that take seconds"""


class Block(NamedTuple):
    lang: str
    body: str
    line: int
    title: str = ""


def blocks(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        if not match["skip"]:
            title = TITLE.search(match["info"])
            line = text.count("\n", 0, match.start("body"))
            yield Block(match["lang"], textwrap.dedent(match["body"]), line, title[1] if title else "")


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


class Shell:
    """A terminal: what commands say stands in one file, also what those say that go on."""

    def __init__(self, directory: Path, programs: str, **more: str) -> None:
        path = os.pathsep.join([programs, str(Path(sys.executable).parent), os.environ["PATH"]])
        look = {"PATH": path, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PYTHONUNBUFFERED": "1", **CHEAP_SPARK}
        self._screen = directory / ".screen"
        self.others = False
        """whether a command was started that goes on"""
        self._answers, answers = os.pipe()
        with self._screen.open("ab") as screen:
            self._process = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=directory,
                env={**os.environ, **look, **more},
                stdin=subprocess.PIPE,
                stdout=screen,
                stderr=subprocess.STDOUT,
                pass_fds=[answers],
                start_new_session=True,
            )
        self._say = f"echo $? >&{answers}"
        self._close = f"{answers}>&-"
        os.close(answers)

    def __enter__(self) -> Self:
        return self

    def run(self, command: str) -> tuple[int, int]:
        """Where its output begins on the screen, and its exit status."""
        begins = self._screen.stat().st_size
        self.others |= "&" in command.replace("&&", "")
        assert self._process.stdin is not None
        self._process.stdin.write(f"{{ {command}\n}} </dev/null {self._close}; {self._say}\n".encode())
        self._process.stdin.flush()
        return begins, int(os.read(self._answers, 100) or b"-1")

    def shown(self, begins: int) -> str:
        text = self._screen.read_bytes()[begins:].decode()
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        os.close(self._answers)


def run_console(block: Block, name: str, shell: Shell) -> None:
    for match in COMMAND.finditer(block.body):
        command, want = match["command"], match["output"].strip("\n")
        place = f"{name}:{block.line + block.body.count(chr(10), 0, match.start()) + 1}: {command}"
        begins, code = shell.run(command)
        patience = time.monotonic() + (PATIENCE if shell.others else 0)  # who may have something to say
        while not (same := _same(want, shell.shown(begins))) and time.monotonic() < patience:
            time.sleep(0.05)
        status = EXIT.search(command)
        assert code == (int(status[1]) if status else 0), f"{place}\n{shell.shown(begins)}"
        assert same, f"{place}\nexpected:\n{want}\ngot:\n{shell.shown(begins)}"


def _same(want: str, got: str) -> bool:
    return not want or doctest.OutputChecker().check_output(want + "\n", got + "\n", doctest.ELLIPSIS)


def run_examples(text: str, name: str, directory: Path, programs: str, more: Mapping[str, str] = NOTHING) -> None:
    """Run the blocks of a page; `programs` is a folder that comes first where the shell looks for commands.

    The shell has more variables, if given.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    environment = dict(more)
    if STARTS_A_NODE.search(text):
        ports = free_ports()
        environment |= {"FIELDFARE_PORT": ports["7400"], "FIELDFARE_NODE": f"ws://127.0.0.1:{ports['7400']}"}
        text = PORT.sub(lambda found: ports[found[0]], text)
    with Shell(directory, programs, **environment) as shell:
        for block in blocks(text):
            if block.title:
                (directory / block.title).write_text(block.body, encoding="utf-8")
            elif block.lang in {"python", "pycon"}:
                run_python(block, name, namespace)
            elif block.lang in {"console", "sh"}:
                run_console(block, name, shell)


def free_ports() -> dict[str, str]:
    """A free port for each that documentation speaks of."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(10)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {str(7400 + place): str(one.getsockname()[1]) for place, one in enumerate(sockets)}


def pages() -> Iterator[ParameterSet]:
    """Pages, with the programs that their commands need."""
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        marks = [
            pytest.mark.needs(program)
            for program in ("curl", "openssl")
            if re.search(rf"^ *\$ .*\b{program} ", text, re.MULTILINE)
        ]
        yield pytest.param(file, id=file.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("file", list(pages()))
def test_examples(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: str, request: pytest.FixtureRequest
) -> None:
    text = file.read_text(encoding="utf-8")
    name = str(file.relative_to(ROOT))
    if not any(needs.search(text) for needs in (MAKES_A_SESSION, RUNS_A_PIPELINE)):
        monkeypatch.chdir(tmp_path)
        run_examples(text, name, tmp_path, programs)
        return
    request.getfixturevalue("spark")
    jvm = request.getfixturevalue("jvm")
    folder = jvm.empty_home()  # Java goes by the directory it was started in
    monkeypatch.chdir(folder)
    with jvm.lend() if RUNS_A_PIPELINE.search(text) else nullcontext({}) as machine:
        run_examples(text, name, folder, programs, machine)


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
def test_a_wrong_example_is_noticed(text: str, tmp_path: Path, programs: str) -> None:
    with pytest.raises(AssertionError):
        run_examples(text, "wrong.md", tmp_path, programs)


def test_a_file_is_written_and_a_shell_remembers(tmp_path: Path, programs: str) -> None:
    file = '```toml title="a.toml"\nport = 7400\n```\n'
    run_examples(
        file + "```console\n$ NAME=a.toml; (sleep 0.2; echo late) &\n$ cat $NAME\nport = 7400...late\n```\n",
        "x.md",
        tmp_path,
        programs,
    )


def test_ports_are_free_ones_where_a_node_is_started(tmp_path: Path, programs: str) -> None:
    node = "$ fieldfare up --name oslo &\nnode       oslo (covering)\nclients    ws://127.0.0.1:7400\n...\n"
    text = f"```console\n{node}$ fieldfare pub '{{}}'\n1 event published\n$ echo 7400 7401 > ports\n```\n"
    run_examples(text, "x.md", tmp_path, programs)
    ports = set((tmp_path / "ports").read_text().split())
    assert len(ports - {"7400", "7401"}) == 2


def test_a_marked_block_is_skipped(tmp_path: Path) -> None:
    run_examples("<!-- no-test: shows an error -->\n```python\nassert False\n```\n", "skipped.md", tmp_path, "")
