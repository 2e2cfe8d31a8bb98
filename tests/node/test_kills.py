"""Real processes, killed; `make kills` does this hundreds of times."""

from __future__ import annotations

import asyncio

import pytest
from tools.nodes.kills import Publisher, run


def test_what_was_accepted_survives_kill_9(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Publisher, "pause", 0.5)
    counts = asyncio.run(run(1, seed=3, pause=0.1, nodes=2))
    assert counts["accepted between two kills, at least"] > 0
    assert counts["delivered"] > 0
    assert counts["detections of patterns"] > 0
