"""Bridges that lose their node or their server at random moments."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tools.servers import kills

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("kafka", marks=pytest.mark.needs("Kafka")),
        pytest.param("nats", marks=pytest.mark.needs("nats-server")),
    ],
)
def test_nothing_is_lost_and_nothing_comes_in_twice(name: str, tmp_path: Path) -> None:
    asyncio.run(kills.run(kills.SYSTEMS[name](tmp_path / name), 8, tmp_path))
