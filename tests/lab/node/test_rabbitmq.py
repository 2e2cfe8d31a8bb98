"""RabbitMQ: without it one is told what to do; with it, it delivers what it should."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

from fieldfare_lab.node import contest, rabbitmq
from fieldfare_lab.node import load as loads


def test_without_rabbitmq_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq, "_SCRIPT", rabbitmq._SCRIPT.with_name("no such thing"))
    with pytest.raises(rabbitmq.Missing, match="apt-get install rabbitmq-server"), rabbitmq.running():
        pass


def test_without_its_client_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(rabbitmq, "_SCRIPT", Path(__file__))
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/true")
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(rabbitmq.Missing, match="pip install pika"), rabbitmq.running():
        pass


@pytest.mark.needs("RabbitMQ")
def test_rabbitmq_gets_every_event_to_its_subscribers() -> None:
    load = loads.make(1, filters=100, subscribers=10)
    contender = rabbitmq.contender(rabbitmq.VARIANTS[0])
    (result,) = contest.contend(load, [contender], contest.Effort(events=200, seconds=1.0, rounds=1))
    assert result.correct
    assert (result.events, result.deliveries) == (200, 2000)
    assert result.cpu_seconds > 0
    assert result.p50_ms is not None
    assert result.p99_ms is not None
    assert 0 < result.p50_ms <= result.p99_ms
