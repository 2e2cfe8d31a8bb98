"""Watchers of the kill harness: patterns at nodes that are killed, judged by a replay of each node's log.

A watcher subscribes to a pattern over the events of the publishers, and stores the detections. In the end its node has
logged exactly the detections that a replay of the log finds, and the watcher has got each of them once, in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fieldfare.client.client import connect
from fieldfare.core.standing_pattern import PUBLISHER
from fieldfare.events import msgpack
from fieldfare.node.config import Log
from fieldfare.node.storage.storage import Storage
from fieldfare.patterns import parse_pattern
from fieldfare.protocol.journal import JournalEntry
from fieldfare.simulation.checker.pattern_checks import Standing, check_patterns

TEXTS = (
    "a: [k = 1] b: [k = 2] (a followed by b) within 1 hour for each by",
    "a: [k = 3] b: [k = 0] a followed by not b within 300 ms for each by limit 50",
)


class Watcher:
    """Stores the detections of a pattern with the number under which each came."""

    def __init__(self, name: str, url: str, text: str) -> None:
        self.name, self.url, self.text = name, url, text
        self.done = 0
        self.got: list[tuple[object, ...]] = []

    async def live(self) -> None:
        """Until it is cut off (cancelled)."""
        async with (
            connect(self.url, session=self.name) as client,
            client.subscribe(parse_pattern(self.text), id="s", keep=True) as events,
        ):
            async for delivery in events.deliveries():
                if delivery.number > self.done:
                    self.done = delivery.number
                    self.got.append(content(delivery.event.tree))
                await delivery.acknowledge()


def content(tree: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what tells detections apart: time, publisher and numbers of the constituents."""
    inside = [one["event"] for one in tree["constituents"]]
    return (str(tree["ts_lo"]), str(tree["ts_hi"]), *((one["by"], one["n"]) for one in inside))


def standing_of(folder: Path) -> tuple[list[Standing], list[JournalEntry]]:
    """Return the patterns and the whole log of a node that is down."""
    storage = Storage(folder, Log())
    try:
        stored, _ = storage.load()
        standing = [Standing(str(key), text, born) for (key,), (text, _, born, *_) in stored["pattern"].items()]
        return standing, list(storage.log.read(1))
    finally:
        storage.close()


def judge(name: str, folder: Path, watchers: list[Watcher]) -> int:
    """Compare the log of a node that is down with a replay, and the watchers with the log; return the detections."""
    standing, entries = standing_of(folder)
    problems = check_patterns(name, entries, standing)
    assert not problems, problems[:5]
    count = 0
    for watcher in watchers:
        key = next(one.key for one in standing if one.text == parse_pattern(watcher.text).text)
        logged = [msgpack.decode(one.event).tree for one in entries if one.publisher == PUBLISHER + key]
        assert watcher.got == [content(tree) for tree in logged][: len(watcher.got)], watcher.name
        missing = len(logged) - len(watcher.got)
        assert missing == 0, f"{watcher.name} lacks {missing} of {len(logged)} detections"
        count += len(logged)
    return count
