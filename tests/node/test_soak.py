"""The soak in short, and its judge; `make soak-nodes` is the long one."""

from __future__ import annotations

import asyncio

import pytest
from tools.nodes.soak import BAD, Book, made, run


def test_nodes_in_trouble_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.nodes.soak.PARENTS", (None, 0))
    counts = asyncio.run(run(0.01, seed=5))  # a few faults, and peace
    assert not {what: counts[what] for what in BAD if counts[what]}, counts
    assert counts["accepted"] > 0
    assert counts["deliveries"] > counts["accepted"]


def test_the_judge_sees_what_is_wrong() -> None:
    book = Book("s", "k = 1")
    for number in (1, 6, 16, 11, 11):
        book.take(made("p0", number))
    book.take(made("p0", 2))
    book.take({**made("p0", 21), "text": "another"})
    assert book.verdict({"p0": 27}) == {"deliveries": 5, "lost": 2, "twice": 1, "out of order": 2, "unasked": 2}
    assert book.verdict({"p0": 10})["unasked"] == 2 + 2, "nobody may get what was never accepted"
