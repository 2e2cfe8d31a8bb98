"""`fieldfare bench node`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare_lab.node import contest, mosquitto, nats, rabbitmq
from fieldfare_lab.node.client_processes import Contender
from fieldfare_lab.node.load import Load, Result


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "node", *arguments])
    return result.exit_code, result.output


def test_a_node_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIELDFARE_KERNELS", "numpy")  # a node starts in half the time
    monkeypatch.setattr(contest, "Effort", partial(contest.Effort, events=300))
    file = tmp_path / "out.json"
    arguments = ("--quick", "--no-peer", "--filters", "100", "--subscribers", "10", "--seconds", "0.2")
    code, output = run(*arguments, "--shape", "fanout", "--only", "in memory, batches", "--json", str(file))
    assert code == 0, output
    assert "Fieldfare" in output
    results = json.loads(file.read_text())
    assert all(result["correct"] for result in results)
    assert [(result["shape"], result["filters"]) for result in results] == [("fanout", 10)]
    assert results[0]["deliveries"] == 10 * results[0]["events"]


@pytest.mark.usefixtures("swift")
def test_sessions_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    code, output = run("--sessions", "20", "--durable", "--quick", "--json", str(file))
    assert code == 0, output
    assert "20 durable sessions" in output
    assert "4 of 4 arrived" in output
    (found,) = json.loads(file.read_text())
    assert found["durable"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--no-peer", "--filters", "many"), "numbers with commas"),
        (("--no-peer", "--filters", "105"), "multiple of 10"),
        (("--no-peer", "--shape", "one,star"), "there is no shape 'star'"),
        (("--no-peer", "--only", "Kafka"), "there is no contender 'Kafka'"),
        (("--sessions", "10_000_000".replace("_", "")), "ulimit"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...], complaint: str) -> None:
    code, output = run(*arguments)
    assert code != 0
    assert complaint in " ".join(output.split())


def test_absent_servers_are_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "contend", lambda load, contenders, *_: [])
    for module in (nats, mosquitto, rabbitmq):
        monkeypatch.setattr(module, "missing", lambda: "a server is not here")
    code, output = run("--filters", "10")
    assert code == 0
    assert output.count("not measured: a server is not here") == 3


def test_contenders_are_chosen_by_parts_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, list[str]]] = []

    def contend(load: Load, able: Sequence[Contender], *_: object) -> list[Result]:
        ran.append((load.shape, [one.name for one in able]))
        return []

    monkeypatch.setattr(contest, "contend", contend)
    monkeypatch.setattr(nats, "missing", lambda: None)
    only = ("--only", "NATS", "--only", "Fieldfare, durable")
    code, output = run("--shape", "one,filters", "--filters", "10", *only)
    assert code == 0, output
    assert ran == [
        ("one", ["Fieldfare, durable", "NATS core", "NATS JetStream, files"]),
        ("filters", ["Fieldfare, durable", "NATS core"]),
    ]
