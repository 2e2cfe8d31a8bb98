"""Stretches of a running node's log, against the list of what was published."""

from __future__ import annotations

import itertools
import threading
import time

import pytest
from tests.pipeline.nodes import node_elsewhere

import fieldfare as ff
from fieldfare.client.errors import ConnectionLost, ConnectionRefused, Refused
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.node.security import make_token
from fieldfare.pipeline.sinks.formats.node_publisher import publish
from fieldfare.pipeline.sources.replay import Asked, Stretch, replay


def numbers(stretch: Stretch) -> list[object]:
    return [msgpack.decode(bytes(one.event))["number"] for one in stretch.found]


def test_a_stretch_has_all_that_matches_in_order() -> None:
    with node_elsewhere() as url, ff.connect_sync(url) as client:
        client.publish_batch([{"number": number} for number in range(1, 2501)])
        even = Asked(url, "", "number % 2 = 0")
        for since, limit in itertools.product((1, 2, 777, 2500, 2501), (1, 500, 501, 5000)):
            expected = [number for number in range(since, 2501) if number % 2 == 0]
            stretch = replay(even, since, limit)
            assert numbers(stretch) == expected[:limit]
            assert stretch.more == (len(expected) >= limit)
            assert stretch.node == "a"
        with pytest.raises(Refused, match="the log ends at 2500"):
            replay(even, 2502, 5)
        with pytest.raises(Refused, match="line 1"):
            replay(Asked(url, "", "number <"), 1, 5)
    with pytest.raises(ConnectionLost, match="no node answers"):
        replay(even, 1, 5)


def test_tokens() -> None:
    secret = "s" * 40
    with node_elsewhere(settings={"security.secret": secret}) as url:
        token = make_token(secret, "ana", ["client"], 60, time.time())
        assert publish(url, token, "s", 1, [msgpack.encode(Event({"number": 5}))]) == 1
        assert numbers(replay(Asked(url, token, "TRUE"), 1, 5)) == [5]
        with pytest.raises(ConnectionRefused, match="token"):
            replay(Asked(url, "", "TRUE"), 1, 5)


def test_who_waits_gets_what_happens_meanwhile() -> None:
    with node_elsewhere() as url, ff.connect_sync(url) as client:
        client.publish({"number": 0})
        asked = Asked(url, "", "TRUE")
        begin = time.monotonic()
        assert numbers(replay(asked, 1, 10, known=1, wait=0.2)) == [0]
        assert time.monotonic() - begin > 0.2
        timer = threading.Timer(0.3, lambda: client.publish_batch([{"number": 1}, {"number": 2}]))
        timer.start()
        assert numbers(replay(asked, 1, 10, known=1, wait=20.0)) == [0, 1, 2]
        timer.join()


def test_what_is_no_longer_wanted_live_is_in_the_log() -> None:
    """Events that replace each other are not delivered live, if they wait; what is read must not depend on that."""
    with node_elsewhere() as url, ff.connect_sync(url) as client:
        over = threading.Event()

        def publish() -> None:
            for number in itertools.count(1):
                client.publish_batch([{"number": number * 10 + place} for place in range(10)], replaces="x")
                if over.is_set():
                    return

        thread = threading.Thread(target=publish)
        thread.start()
        found: list[object] = []
        position = 1
        try:
            while len(found) < 2000:
                stretch = replay(Asked(url, "", "TRUE"), position, 300)
                found += numbers(stretch)
                position = stretch.found[-1].position + 1 if stretch.found else position
        finally:
            over.set()
            thread.join()
        assert found == list(range(10, 10 + len(found)))


def test_what_was_replaced_is_there_all_the_same() -> None:
    """What was read once must be there when it is read again."""
    with node_elsewhere() as url, ff.connect_sync(url) as client:
        for number in range(3):
            client.publish({"number": number}, replaces="state")
        assert numbers(replay(Asked(url, "", "TRUE"), 1, 10)) == [0, 1, 2]
