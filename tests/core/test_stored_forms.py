"""What a core stores can be read by the version before, and what that version leaves alone is not taken for new."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import fieldfare
from fieldfare.core.core import Core
from fieldfare.core.inputs import Attach
from fieldfare.core.parameter_inputs import SetParameters, SubscribeDynamic
from fieldfare.core.recovery import NEW_ROWS, life_rows
from fieldfare.core.state import Link, Pending, Session
from fieldfare.core.state_rows import link_row, pending_row, session_row
from fieldfare.protocol.journal import Row, RowKey
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker

OLD_ROWS = frozenset(
    [
        "advertisements",
        "arrival",
        "checkpoint",
        "copy",
        "departure",
        "digest",
        "dropped",
        "gone",
        "id",
        "kept",
        "life",
        "lives",
        "name",
        "neighbour",
        "outbox",
        "parked",
        "place",
        "reach",
        "replayed",
        "session",
        "subscriptions",
        "told",
        "unreadable",
        "warned",
        "webhook",
    ]
)
"""kinds of rows that version 2 has; see revision 2e55862"""

LASTING = frozenset(
    {"channel", "former_way", "held", "home", "incomplete", "joined", "pattern", "pattern-count", "sent_home"}
)
"""new kinds that are about no session, and stay valid whatever an older version has done meanwhile"""


def kinds() -> set[str]:
    """All kinds of rows that the sources name where they make one."""
    texts = [path.read_text(encoding="utf-8") for path in Path(fieldfare.__file__).parent.rglob("*.py")]
    return {kind for text in texts for kind in re.findall(r'\bRow\(\s*"([\w-]+)", \(', text)}


def test_every_kind_of_row_is_old_or_listed_as_new() -> None:
    """A kind that is not listed would come back to life after an older version has used the folder."""
    named = {"acknowledged", "device", "former", "incomplete"}  # by constants
    assert (kinds() | named) - OLD_ROWS - LASTING == {*NEW_ROWS, "newest"}


def test_rows_that_the_version_before_reads_have_no_more_values() -> None:
    """Version 2 takes a row of sessions, links and deliveries apart value by value: one more, and it does not start."""
    session, link = Session("i", durable=True, connected=False), Link(Role.PEER)
    rows = session_row("ana", session, 0), link_row("b", link, 0), pending_row("ana", 1, Pending(1, ("s",), 0.0))
    assert [len(row.value) for row in rows] == [13, 10, 5]
    assert len(rows[1].value[4]) == 4


def stored(rows: Iterable[Row]) -> dict[str, dict[RowKey, object]]:
    found: dict[str, dict[RowKey, object]] = {}
    for row in rows:
        table = found.setdefault(row.kind, {})
        table.pop(row.key, None)
        if row.value is not None:
            table[row.key] = row.value
    return found


@pytest.mark.parametrize("older", [False, True])
def test_new_rows_are_void_after_an_older_version(older: bool, caplog: pytest.LogCaptureFixture) -> None:
    core = Core(Broker("a"))
    step = core.step(
        [Attach("ana", "i"), SubscribeDynamic("ana", "s", "x < :most"), SetParameters("ana", {"most": 3})], 0.0
    )
    rows = [*life_rows(7), *step.rows]
    if older:
        rows.append(Row("life", (), 8))
    with caplog.at_level(logging.WARNING):
        again = Core(Broker("a"), stored(rows))
    assert ("an older version has used this folder" in caplog.text) == older
    assert [str(filter) for filter in again.interest()] == ["x < 3"]  # the version before went on with this one
    answer = again.step([SetParameters("ana", {"most": 5})], 1.0)
    assert [str(filter) for filter in again.interest()] == ["x < 3" if older else "x < 5"]
    left = stored([*rows, *answer.rows])
    assert bool(left["dynamic"]) is not older
