"""A client shows programs what the guide documents, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from fieldfare.client.client import Client
from fieldfare.client.sync import SyncClient

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-client.md"
ONLY_WITH_ASYNCIO = {"close", "connected", "wait_for_capacity"}
"""The client without asyncio closes with its block, and `publish_soon` waits for capacity."""


def documented() -> set[str]:
    """Return the names in the table of the section "Everything a client has"."""
    section = PAGE.read_text(encoding="utf-8").split("## Everything a client has\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(?:await )?client\.(\w+)", section, re.MULTILINE))


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_a_client_shows_what_is_documented() -> None:
    assert public(Client) == documented()


def test_a_client_without_asyncio_shows_the_same() -> None:
    assert public(SyncClient) == documented() - ONLY_WITH_ASYNCIO
