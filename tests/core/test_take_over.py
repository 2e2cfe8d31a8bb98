"""Take-overs while the session's node lives: no order of messages loses a session or an event."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.core.world import World

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.routing.strategies import STRATEGIES

LINE = [("b0", "b1", m.Role.PEER), ("b1", "b2", m.Role.PEER)]


def departing() -> World:
    """A client with two waiting events leaves b0, and asks b2 for its session; b1 holds a replica."""
    world = World(STRATEGIES["covering"], LINE, replicas=1)
    world.change_filters("b0.0", m.Subscribe("all", parse("TRUE")))
    world.settle()
    world.detach("b0.0")
    world.publish("b1.1", [Event({"x": 1}), Event({"x": 2})])
    world.drain()
    world.move("b0.0", "b2", make_before_break=False, cancel=False)
    return world


def deliver(world: World, *way: str) -> None:
    """Deliver everything on the way from node to node, in order."""
    for sender, to in pairwise(way):
        while world.channels[sender, to]:
            world.deliver_message(sender, to)


def check(world: World) -> None:
    """Let everything happen; a client that still waits asks the nodes in turn, as a client of a node does."""
    client = world.clients["b0.0"]
    for node in ("b1", "b0") * 3:
        world.drain(300)
        if client.waits_at is not None:
            world._take_over("b0.0", "b2", node, "again")
    world.settle(1000)
    assert client.got == [("b1.1", 1), ("b1.1", 2)]
    assert client.home == "b2"


@pytest.mark.parametrize("asked", ["b0", "b1"])
@pytest.mark.parametrize("hops", range(9))
def test_an_impatient_client_loses_nothing(asked: str, hops: int) -> None:
    """The target asks once more, or asks another node, at each moment of a handover that goes well."""
    world = departing()
    for sender, to in (("b2", "b1"), ("b1", "b0"), ("b0", "b1"), ("b1", "b2"))[:hops]:
        deliver(world, sender, to)
    if hops > 4:
        deliver(world, "b2", "b1", "b0")  # the target is ready
    for _ in range(hops - 5):
        world.send_session("b0", "b0.0", limit=1)
    world._take_over("b0.0", "b2", asked, "again")
    check(world)


def test_a_session_that_has_moved_twice_survives_its_node() -> None:
    """The replica did not know of the moves, so the session taken over looked like an outdated copy."""
    world = World(STRATEGIES["covering"], LINE, replicas=1)
    world.change_filters("b0.0", m.Subscribe("all", parse("TRUE")))
    for node in ("b1", "b2"):
        world.settle()
        world.move("b0.0", node, make_before_break=False, cancel=False)
    world.settle()
    world.publish("b1.1", [Event({"x": 1})])
    world.fail_for_good("b2", "b1", "b1")
    assert world.clients["b0.0"].got == [("b1.1", 1)]
    assert world.clients["b0.0"].moves == 3


def test_an_outdated_copy_ends_although_it_departs() -> None:
    """The departure stayed behind without a session."""
    world = World(STRATEGIES["covering"], LINE)
    core = world.brokers["b0"]
    world.run("b0", lambda core, _: core.handovers.requested("b0.0", "t", "b1", None))
    claimed = core.handovers.claim("b0.0", "u", 1.0, at="b2", identity="b0.0@", moves=5)
    assert claimed is None
    assert not core.handovers.departures
    assert core.handovers.arrivals["b0.0"].source == "b2"
