"""A token is not said where others can read it."""

from __future__ import annotations

import asyncio
import logging

import pytest

import fieldfare as ff
from fieldfare.client.errors import ConnectionLost, ConnectionRefused


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    async def connect(url: str, **_: object) -> None:
        found.append(url)
        raise OSError("nobody is there")

    monkeypatch.setattr("fieldfare.client.handshake.websockets.connect", connect)
    return found


async def come(url: str, **options: object) -> None:
    async with ff.connect(url, **options):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("url", ["ws://node.example:7400", "ws://10.0.0.7", "ws://[2001:db8::1]:7400"])
def test_a_token_does_not_go_in_the_clear_to_another_machine(dialled: list[str], url: str) -> None:
    with pytest.raises(ConnectionRefused, match="wss://"):
        asyncio.run(come(url, token="abc"))
    assert not dialled


def test_it_does_if_that_is_wanted_and_is_warned_of(dialled: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(ConnectionLost):
        asyncio.run(come("ws://10.0.0.7", token="abc", insecure=True))
    assert dialled == ["ws://10.0.0.7"]
    assert "everybody on the way" in caplog.text
    assert "abc" not in caplog.text


@pytest.mark.parametrize(
    ("url", "token"), [("wss://node.example", "abc"), ("ws://127.0.0.1:1", "abc"), ("ws://node.example", "")]
)
def test_all_else_is_as_it_was(dialled: list[str], url: str, token: str) -> None:
    with pytest.raises(ConnectionLost):
        asyncio.run(come(url, token=token))
    assert dialled == [url]
