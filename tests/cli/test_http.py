"""The commands around a node, with a real one in a process of its own; the examples in their help are run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.test_help import ON_A_NODE, examples
from tests.commands import shell
from tools.nodes.kills import Process
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE, wait_until
from typer.testing import CliRunner, Result

from fieldfare.cli import app
from fieldfare.cli.commands.demo import NODES, WATCHERS
from fieldfare.cli.commands.sub import _teller
from fieldfare.client.client import connect


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    one = Process("oslo", tmp_path_factory.mktemp("node") / "data")
    one.start()
    try:
        asyncio.run(_prepare(one))
        yield one
    finally:
        one.kill(signal.SIGTERM)


def invoke(command: str, node: Process) -> Result:
    """Run a command here, which takes less time; what a pipe brings is read from its file."""
    before, _, after = command.rpartition("| ")
    words = shlex.split(after)
    environment = {"FIELDFARE_NODE": node.url, "COLUMNS": "120", "FIELDFARE_TOKEN_SECRET": None}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    assert words.pop(0) == "fieldfare"
    given = Path(before.split()[-1]).read_text() if before else None
    return CliRunner().invoke(app, words, env=environment, input=given)


async def _prepare(node: Process) -> None:
    """What the examples take for granted."""
    await node.answers()
    async with connect(node.url, session="ana") as ana, ana.subscribe("price < 0", id="s", keep=True):
        for _ in range(12):
            await ana.publish({"symbol": "IBM", "price": 119})
        await ana.publish({"type": "order"})
        await ana.publish({"temp": 31, "location": "hall"})
        await ana.publish({"to": "anna"})
        await ana.publish({"card": "a7", "x": 1})
        await ana.publish({"card": "a7", "x": 2})
    async with connect(node.url, session="eve") as eve, eve.subscribe("price < -1", id="s", keep=True):
        pass
    async with connect(node.url, session="anna", device="phone") as anna, anna.subscribe("x < 0", id="s", keep=True):
        pass


@pytest.mark.parametrize(
    ("command", "example"), [(command, example) for command in ON_A_NODE for example in examples(command)]
)
def test_every_example_works(
    command: str, example: str, node: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if command in ("top", "admin overview"):
        example = re.sub("--node [^ ]+", "", example)
    ending = {"top": " --count 1", "sub": " --since 1 --count 1"}
    example = example.replace("--since -5m", "").replace("--count 10", "")
    (tmp_path / "trades.jsonl").write_text('{"symbol": "IBM", "price": 119}\n' * 3)
    (tmp_path / "log.jsonl").write_text('{"symbol": "IBM", "price": 1}\n')
    if "--move-to" in example:  # which needs two nodes: tests/client/test_roaming.py has them
        done = invoke(example.replace(" ana ", " eve "), node)
        assert "no other node rome" in done.output
        return
    if "--move quote=rome" in example:  # which needs channels, too: tests/node/http/admin/test_channels.py has them
        assert "no channel of the type quote" in invoke(example, node).output
        return
    done = invoke(example + ending.get(command, ""), node)
    assert done.exit_code == 0, done.output
    assert done.stdout or any(word in done.stderr for word in ("published", "neighbour", "0 channels"))


def test_a_session_of_another_node_has_a_name(node: Process) -> None:
    done = invoke("fieldfare sub TRUE --at oslo", node)
    assert done.exit_code == 2
    assert "--at: a session with a name is at a node: --session orders --at oslo" in done.stderr


def test_what_is_published_is_seen(node: Process) -> None:
    last = json.loads(invoke("fieldfare admin overview --json", node).stdout)["log"]["last"]
    done = invoke("""fieldfare pub '{"n": 1}' '{"n": 2, "t": "a"}'""", node)
    assert done.stderr.endswith("2 events published\n")
    done = invoke(f"fieldfare sub 'n > 0' --since {last + 1} --count 2 --json", node)
    assert done.stdout == '{"n":1}\n{"n":2,"t":"a"}\n'
    done = invoke("fieldfare sub 'n > 1' --since -1h --count 1", node)
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} #\d+  n=2  t='a'\n", done.stdout)


def test_what_is_good_is_published_before_a_bad_event(node: Process, tmp_path: Path) -> None:
    (tmp_path / "some.jsonl").write_text('{"good": 1}\n{"good": \n')
    done = invoke(f"fieldfare pub {tmp_path / 'some.jsonl'}", node)
    assert done.exit_code == 2
    assert "1 event published" in done.stderr
    assert "some.jsonl:2" in done.stderr


def test_a_session_goes_on_where_it_was(node: Process) -> None:
    begin = json.loads(invoke("fieldfare admin overview --json", node).stdout)["log"]["last"] + 1
    invoke("""fieldfare pub '{"k": 1}' '{"k": 2}' '{"k": 3}'""", node)
    one = invoke(f"fieldfare sub 'k > 0' --session here --since {begin} --count 2 --json", node)
    assert one.stdout == '{"k":1}\n{"k":2}\n'
    again = invoke("fieldfare sub 'k > 0' --session here --count 1 --json", node)
    assert again.stdout == '{"k":3}\n'
    assert "here" in invoke("fieldfare admin sessions her", node).stdout
    assert "k > 0" in invoke("fieldfare admin session here", node).stdout
    assert "k > 0" in invoke("fieldfare admin subscriptions 'k >'", node).stdout
    assert "k > 0" in invoke("fieldfare admin table", node).stdout
    assert invoke("fieldfare admin session here --end", node).stdout == "here is ended\n"
    gone = invoke("fieldfare admin session here", node)
    assert (gone.exit_code, "no session here" in gone.stderr) == (2, True)


def test_double_quotes_are_told_to_be_names(node: Process) -> None:
    invoke("""fieldfare pub '{"symbol": 1, "IBM": 1, "note": "=\\"x\\""}'""", node)
    done = invoke("""fieldfare sub 'symbol = "IBM" AND note = '"'"'="x"'"'"'' --since 1 --count 1 --json""", node)
    assert "\"IBM\" is the name of a field here; if you mean the text, write 'IBM'" in done.stderr
    assert done.stderr.count("is the name of a field") == 1
    assert json.loads(done.stdout)["symbol"] == 1


@pytest.mark.parametrize(("session", "missed"), [("", 2), ("ana", 0)])
def test_a_node_that_is_away_is_told_once(session: str, missed: int, capsys: pytest.CaptureFixture[str]) -> None:
    tell = _teller(session)
    for state in ("connected", "reconnecting", "reconnecting", "connected", "reconnecting", "closed"):
        tell(state, "")
    said = capsys.readouterr().err
    assert said.count("the node is away") == 2
    assert said.count("events are missed until then") == missed


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("fieldfare pub", "give an event"),
        ("fieldfare pub '{\"a\": }'", "not JSON"),
        ("fieldfare pub nothing.jsonl", "no such file"),
        ("fieldfare sub 'x <'", "expected a field"),
        ("fieldfare sub 'x > 1' --since soon", "soon is no position, time or number in a channel"),
        ("fieldfare sub 'x > 1' --since -soon", "no time ago"),
        ("fieldfare pub '{}' --node ws://127.0.0.1:9", "Is there a node?"),
        ("fieldfare admin overview --node 127.0.0.1:9", "Is there a node?"),
        ("fieldfare admin token ana --role client", "there is no secret"),
        ("fieldfare up --port 99999", "65535"),
        ("fieldfare up --strategy best", "strategy"),
        ("fieldfare up --host 0.0.0.0", "security"),
        ("fieldfare up --join http://x", "ws://"),
        ("fieldfare up --name 'a b'", "error: --name: a name has letters"),
    ],
)
def test_mistakes_are_named(command: str, problem: str, node: Process) -> None:
    done = invoke(command, node)
    assert done.exit_code == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_up_says_where_it_listens_and_ends_in_good_order(tmp_path: Path, programs: str) -> None:
    port = free_port()
    options = ["--port", str(port), "--name", "n", "--data", str(tmp_path / "n")]
    for program in ([sys.executable, "-m", "fieldfare"], [f"{programs}/fieldfare"]):
        command = [*program, "up", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = [process.stdout.readline() for _ in range(4)]
            assert f"ws://127.0.0.1:{port}" in "".join(first)
            again = shell(f"fieldfare up --port {free_port()} --name n --data {tmp_path / 'n'}", tmp_path, programs)
            assert "used by another node" in again.stderr
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
    other = shell(f"fieldfare up --port {port} --name m --data {tmp_path / 'n'}", tmp_path, programs)
    assert "belongs to the node n" in other.stderr


def test_the_port_is_taken(node: Process, tmp_path: Path, programs: str) -> None:
    done = shell(f"fieldfare up --port {node.port} --name other", tmp_path, programs)
    assert (done.returncode, "try another --port" in done.stderr) == (2, True)


def test_an_example_of_settings(tmp_path: Path, programs: str) -> None:
    (tmp_path / "oslo.toml").write_text(shell("fieldfare up --example", tmp_path, programs).stdout)
    command = [f"{programs}/fieldfare", "up", "-c", "oslo.toml", "--port", str(free_port())]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "oslo (covering)" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "oslo-data").is_dir()


def test_the_demo_survives_any_event_and_a_second_one(tmp_path: Path, programs: str) -> None:
    """`KeyError: 'change'` once ended it, with the event of the README."""
    port, data = free_port(len(NODES)), tmp_path / "demo"
    options = f"--no-browser --no-pipeline --port {port} --data {data}"
    numpy = {**os.environ, "FIELDFARE_KERNELS": "numpy"}  # a node starts in half the time
    with (tmp_path / "said").open("w+") as said:
        command = [f"{programs}/fieldfare", "demo", *options.split()]
        demo = subprocess.Popen(command, env=numpy, stdout=said, stderr=said)
        try:
            # the subscription of max, at the node farthest from the publisher, has reached the first node
            wait_until(lambda: demo.poll() is not None or "max  symbol=" in (tmp_path / "said").read_text())
            url = f"ws://127.0.0.1:{port}"
            asyncio.run(_odd_events(url))
            wait_until(lambda: demo.poll() is not None or "symbol='A last one'" in (tmp_path / "said").read_text())

            logs = {path: path.read_bytes() for path in data.glob("*.log")}
            second = shell(f"fieldfare demo {options}", tmp_path, programs)
            assert (second.returncode, second.stdout) == (2, "")
            assert re.fullmatch(
                rf"error: port {port} is in use by the node oslo: .*dashboard.*--port {port + 10}\n", second.stderr
            )
            elsewhere = options.replace(str(port), str(free_port(len(NODES))), 1)
            other = shell(f"fieldfare demo {elsewhere}", tmp_path, programs)
            assert other.returncode == 2
            assert "another demo runs in this folder" in other.stderr
            assert {path: path.read_bytes()[: len(logs[path])] for path in logs} == logs
            assert demo.poll() is None
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(PATIENCE)
    lines = (tmp_path / "said").read_text().splitlines()
    assert all(name in lines[0] for name in NODES)
    got = {line.split()[0] for line in lines if "symbol=" in line}
    assert got <= {name for name, _, _ in WATCHERS}
    assert any(line.startswith("ana") and "symbol='IBM'  price=119" in line and "change" not in line for line in lines)


async def _odd_events(url: str) -> None:
    """What people try: fields that are missing, of other types, or strange; the last one says that all have come."""
    async with connect(url) as client:
        await client.publish({"symbol": "IBM", "price": 119})
        await client.publish({"change": 2, "symbol": ["x", {"y": "\x1b[31m"}], "volume": {"a": 1}})
        await client.publish({"change": 1e300})
        await client.publish({"symbol": "ASML", "volume": 10**15, "price": None, "change": True})
        await client.publish({"symbol": "A\x1b[2J", "pri\x1bce": b"bytes"})
        await client.publish({"symbol": "A last one"})


def test_a_taken_port_is_said_before_anything_is_written(node: Process, tmp_path: Path, programs: str) -> None:
    for command in (f"up --port {node.port} --data here", f"demo --no-browser --port {node.port} --data here"):
        done = shell(f"fieldfare {command}", tmp_path, programs)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert f"port {node.port} is in use" in done.stderr
        assert "--port" in done.stderr
        assert not (tmp_path / "here").exists()
