"""A neighbour that is broken or wicked breaks nothing but itself."""

from __future__ import annotations

import asyncio

import pytest
from tests.node.talking import settings, talking, until
from tests.node.wicked import wicked

from fieldfare.filters import parse
from fieldfare.node.server import running
from fieldfare.node.service import Service
from fieldfare.routing import messages as m


async def works(service: Service) -> None:
    """A node takes and delivers events, and can write."""
    async with talking(service) as client:
        await client.subscribe("s", "kind = 'test'")
        await client.publish(1, {"kind": "test"})
        assert await client.events(1) == [{"kind": "test"}]
    assert not service.node.failure.done()


@pytest.mark.parametrize("message", [m.Subscribe("x", parse("TRUE")), m.Leave(), m.Unsubscribe("s")])
def test_a_neighbour_does_not_speak_for_the_client_of_its_name(message: m.Message) -> None:
    """A subscription without a session ended the node with the next event."""

    async def test() -> None:
        async with running(settings()) as a, talking(a, "mallory") as client:
            await client.subscribe("s", "x > 0")
            async with wicked(a) as one:
                await one.say(message)
                await until(lambda: a.node.broker.links["mallory"].heard == one.said)
                assert list(a.node.broker.broker.clients.all["mallory"].subscriptions) == ["s"]
                await works(a)

    asyncio.run(test())
