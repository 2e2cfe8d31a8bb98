"""Single cases of channels that get another home; random runs are in `tests/simulation/test_channels.py`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from fieldfare.core.channel_homes import ChannelHomes
from fieldfare.core.channel_inputs import MoveChannel
from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.core import Core
from fieldfare.core.inputs import LinkUp, ReceiveMessages, SetReachable
from fieldfare.core.state import PeerTooOld, Publication, RequestRefused
from fieldfare.core.take_over import NUMBER_GAP
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import channel_number_of
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.core_rest import leftovers
from fieldfare.simulation.disk import Disk, Stage
from fieldfare.simulation.topologies import from_edges, line
from fieldfare.simulation.trace import Delivered

RED, BLUE = Event({"type": "red"}), Event({"type": "blue"})
AT_B0 = ChannelMap({"red": "b0"})


def network(nodes: int = 3) -> CoreNetwork:
    made = CoreNetwork(line(nodes), Options(channels=AT_B0))
    made.settle()
    for number in range(nodes):
        made.add_client(f"c{number}", f"b{number}").change(m.Subscribe("s", EVERYTHING))
    made.settle()
    return made


def got(made: CoreNetwork, client: str) -> list[tuple[str, int, int]]:
    return [
        (one.publisher, one.sequence, one.channel_number)
        for one in made.trace
        if isinstance(one, Delivered) and one.client == client
    ]


def publish_for(made: CoreNetwork, seconds: float) -> None:
    """Let all clients publish every few milliseconds."""
    end = made.clock.now + seconds
    while made.clock.now < end:
        for client in made.clients.values():
            client.publish([RED])
        made.clock.run(made.clock.now + 0.007)


def check(made: CoreNetwork, home: str) -> None:
    """Check one order at all nodes, without a gap, and the home on which all nodes agree."""
    made.settle()
    assert not made.problems
    seen = {client: got(made, client) for client in made.clients}
    first, *others = seen.values()
    assert all(one == first for one in others)
    assert [number for _, _, number in first] == list(range(1, len(first) + 1))
    for publisher in made.clients:
        assert [sequence for by, sequence, _ in first if by == publisher] == sorted(
            sequence for by, sequence, _ in first if by == publisher
        )
    assert {host.core.channels.homes.of("red").node for host in made.hosts.values()} == {home}
    for client in made.clients.values():
        client.acknowledge()
    made.settle()
    for host in made.hosts.values():
        host.maintain()
    made.settle()
    assert list(leftovers(made)) == []


def test_a_channel_moves_while_all_publish() -> None:
    made = network(4)
    for target, at in (("b3", "b1"), ("b1", "b3"), ("b0", "b0")):
        publish_for(made, 0.1)
        made.hosts[at].submit(MoveChannel("red", target))
        publish_for(made, 0.2)
        check(made, target)


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("node", ["b0", "b1", "b2"])
def test_a_kill_in_any_step_of_a_move_is_a_pause(node: str, stage: Stage) -> None:
    for steps in range(0, 8, 2):
        made = network()
        publish_for(made, 0.05)
        made.hosts["b0"].submit(MoveChannel("red", "b2"))
        made.kill_later(node, steps, stage, steps, 0.3)
        publish_for(made, 0.2)
        made.settle()
        check(made, made.hosts["b1"].core.channels.homes.of("red").node)  # a killed home may not know the request


def test_a_move_waits_for_a_link() -> None:
    made = network()
    made.kill("b1", seconds=3.0)
    made.clock.run(made.clock.now + 1.0)
    made.hosts["b0"].submit(MoveChannel("red", "b2"))
    publish_for(made, 0.1)
    assert made.hosts["b0"].core.channels.homes.moving == ["red"]
    assert made.hosts["b0"].core.channels.numbers.counts["red"] > 0  # the home goes on until the link is up
    check(made, "b2")


def test_of_two_moves_the_last_counts() -> None:
    made = network(4)
    made.hosts["b0"].submit(MoveChannel("red", "b3"))
    made.clock.run(made.clock.now + 0.06)
    made.hosts["b0"].submit(MoveChannel("red", "b1"))
    publish_for(made, 0.1)
    check(made, "b1")


# Advertisements


def with_branches() -> CoreNetwork:
    """Subscribers on side branches of the way from b0 to b2; only the channel advertises their events at b0."""
    edges = (("b0", "b1"), ("b1", "b2"), ("b0", "s0"), ("b1", "s1"), ("b2", "s2"), ("b2", "p"))
    made = CoreNetwork(from_edges(edges, ["b0"]), Options(STRATEGIES["covering+ads"], channels=AT_B0))
    made.settle()
    for name in ("s0", "s1", "s2"):
        made.add_client(name, name).change(m.Subscribe("s", EVERYTHING))
    made.add_client("p", "p").change(m.Advertise("a", AT_B0.filter_of("red")))
    made.settle()
    return made


def test_subscriptions_find_the_new_home() -> None:
    made = with_branches()
    for target in ("b2", "s1", "b0"):
        made.hosts["p"].submit(MoveChannel("red", target))
        for _ in range(40):
            made.clients["p"].publish([RED])
            made.clock.run(made.clock.now + 0.005)
        made.settle()
        count = made.hosts[target].core.channels.numbers.counts["red"]
        for name in ("s0", "s1", "s2"):
            assert [number for _, _, number in got(made, name)] == list(range(1, count + 1))


def advertised_at(core: Core) -> bool:
    client = core.broker.clients.all.get("~channels")
    return client is not None and bool(client.advertisements)


def test_only_the_home_advertises_after_a_move() -> None:
    made = with_branches()
    made.hosts["p"].submit(MoveChannel("red", "b2"))
    made.settle()
    assert [name for name, host in made.hosts.items() if advertised_at(host.core)] == ["b2"]
    made.kill("b2")
    made.settle()
    assert [name for name, host in made.hosts.items() if advertised_at(host.core)] == ["b2"]


def test_without_the_advertisement_of_the_new_home_events_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_branches()
    monkeypatch.setattr(ChannelHomes, "advertise", lambda *_: None)
    made.hosts["p"].submit(MoveChannel("red", "s1"))
    made.settle()
    made.clients["p"].publish([RED])
    made.settle()
    assert got(made, "s0") == []


# Torn writes and new links


def letter(to: str, origin: str, message: c.AnyChannelMessage) -> bytes:
    return wire.encode(m.Envelope(to, origin, c.encode(message)))


def event(to: str, sequence: int) -> bytes:
    """An event of ana at the node q, on its way to the home."""
    return wire.encode(m.Envelope(to, "q", wire.encode(m.Forward(RED, "ana", sequence, "1#red", "q"))))


def between(disk: Disk) -> Core:
    """Node a between p, the home, and q, with the node's state on a disk; nothing is remembered for long."""
    stored, entries = disk.load()
    core = Core(Broker("a", remember=0.0), stored, entries, channels=ChannelMap({"red": "p"}))
    for name in ("p", "q"):
        if name not in core.links:
            core.links.connect(name, Role.PEER, 0.0)
        core.links[name].version = 3
    core.resume()
    disk.write(core.drain())
    return core


def write(core: Core, disk: Disk, inputs: Sequence[object], stage: Stage = Stage.ALL) -> None:
    step = core.step(inputs, 1.0)  # type: ignore[arg-type]
    assert not [one for one in step.answers if isinstance(one, Exception)]
    disk.write(step, stage)
    core.release(step)


def numbers(disk: Disk) -> list[tuple[int, int]]:
    return [(entry.sequence, channel_number_of(entry)) for entry in disk.log.values()]


def test_an_event_that_was_held_and_numbered_in_a_torn_write_gets_no_other_number() -> None:
    disk = Disk()
    core = between(disk)
    write(core, disk, [ReceiveMessages("p", 1, [letter("a", "p", c.ChannelHandover("red", 1, 7, "a"))])])
    write(core, disk, [ReceiveMessages("q", 1, [event("p", 1)])])
    both = [
        ReceiveMessages("q", 2, [event("p", 2)]),
        ReceiveMessages("p", 2, [letter("a", "p", c.ChannelDrained("red"))]),
    ]
    write(core, disk, both, Stage.ENTRIES)
    assert numbers(disk) == [(1, 8), (2, 9)]
    core = between(disk)
    assert core.links["q"].received == 2
    write(core, disk, [both[1]])
    assert numbers(disk) == [(1, 8), (2, 9)]
    write(core, disk, [ReceiveMessages("q", 3, [event("a", 3)])])
    assert numbers(disk) == [(1, 8), (2, 9), (3, 10)]


def test_a_held_event_says_nothing_of_a_later_link() -> None:
    disk = Disk()
    core = between(disk)
    write(core, disk, [ReceiveMessages("p", 1, [letter("a", "p", c.ChannelHandover("red", 1, 0, "a"))])])
    write(core, disk, [ReceiveMessages("q", 1, [event("p", 1), event("p", 2)])])
    core.links.connect("q", Role.PEER, 1.0)
    write(core, disk, [ReceiveMessages("p", 2, [letter("a", "p", c.ChannelDrained("red"))])])
    core = between(disk)
    assert core.links["q"].received == 0
    write(core, disk, [ReceiveMessages("q", 1, [event("a", 3)])])
    assert numbers(disk) == [(1, 1), (2, 2), (3, 3)]


# Requests, and nodes that have forgotten


def linked(version: int = 3) -> Core:
    """The home b0, with b1 behind a link that is up."""
    core = Core(Broker("b0"), channels=AT_B0)
    core.links.connect("b1", Role.PEER, 0.0, version=version)
    core.step([LinkUp("b1"), SetReachable("b1", ["b1", "b2"], {"b1": version, "b2": 3})], 0.0)
    core.drain()
    return core


def refusal(core: Core, type: str, target: str) -> Exception:
    (answer,) = core.step([MoveChannel(type, target)], 0.0).answers
    assert isinstance(answer, RequestRefused)
    return answer


def test_a_move_is_refused_with_the_reason() -> None:
    assert str(refusal(linked(), "blue", "b1")) == "the settings of b0 have no channel of the type blue"
    assert str(refusal(linked(), "red", "b9")) == "b0 knows no way to a node b9"
    core = Core(Broker("b1"), channels=AT_B0)
    assert str(refusal(core, "red", "b1")) == "the home of the channel of red has not answered yet"


def test_a_node_of_the_version_before_refuses_and_nothing_changes() -> None:
    core = linked(version=2)
    refused = refusal(core, "red", "b2")
    assert isinstance(refused, PeerTooOld)
    assert str(refused) == "b1 speaks version 2, which has no ChannelHandover (since version 3): upgrade b1"
    assert core.channels.homes.here("red")


def contents(core: Core, neighbour: str) -> list[c.AnyChannelMessage]:
    """Return the channel messages that wait for a neighbour."""
    found = [wire.decode(one) for one in core.links[neighbour].outbox.values() if isinstance(one, bytes)]
    return [c.decode(one.content) for one in found if isinstance(one, m.Envelope) and c.is_channel_message(one.content)]


def test_a_new_neighbour_hears_of_the_home() -> None:
    core = linked()
    core.step([MoveChannel("red", "b1")], 0.0)
    core.links.connect("b7", Role.PEER, 0.0)
    assert contents(core, "b7") == [c.ChannelHome("red", "b1", 1)]
    core.channels.receive(m.Envelope("b0", "b7", c.encode(c.JoinChannel("red"))), 0.0)
    assert contents(core, "b7")[1:] == [c.ChannelHome("red", "b1", 1)]


def test_a_home_that_has_forgotten_is_told_and_jumps_ahead() -> None:
    core = Core(Broker("b1"), channels=AT_B0)
    core.presence.attach("ana", "1", 0.0)
    core.links.connect("b0", Role.PEER, 0.0)
    core.channels.receive(m.Envelope("b1", "b0", c.encode(c.ChannelHome("red", "b1", 4))), 0.0)
    core.publish([Publication("ana", 1, [RED])], 0.0)
    assert core.channels.moves.held("red") == 1
    core.channels.receive(m.Envelope("b1", "b0", c.encode(c.ChannelDrained("red"))), 0.0)
    assert [channel_number_of(one) for one in core.drain().entries][-1] == NUMBER_GAP + 1


def test_a_home_that_has_forgotten_the_move_sends_what_it_holds_to_the_next() -> None:
    core = between(Disk())
    core.presence.attach("ana", "1", 0.0)
    core.channels.receive(m.Envelope("a", "p", c.encode(c.ChannelHandover("red", 1, 0, "a"))), 0.0)
    core.publish([Publication("ana", 1, [RED])], 0.0)
    core.channels.receive(m.Envelope("a", "q", c.encode(c.ChannelHome("red", "q", 2))), 0.0)
    last = wire.decode(list(core.links["q"].outbox.values())[-1])  # type: ignore[arg-type]
    assert isinstance(last, m.Envelope)
    assert (last.to, core.channels.moves.held("red")) == ("q", 0)


def test_a_late_handover_changes_nothing() -> None:
    core = between(Disk())
    core.channels.receive(m.Envelope("a", "p", c.encode(c.ChannelHome("red", "q", 5))), 0.0)
    core.channels.receive(m.Envelope("a", "p", c.encode(c.ChannelHandover("red", 4, 0, "a"))), 0.0)
    assert core.channels.homes.of("red").node == "q"


def test_settings_that_name_a_former_home_are_named(caplog: pytest.LogCaptureFixture) -> None:
    core, disk = linked(), Disk()
    disk.write(core.step([MoveChannel("red", "b1")], 0.0))
    core.checkpoint()
    disk.write(core.drain())
    with caplog.at_level(logging.WARNING):
        Core(Broker("b0"), *disk.load(), channels=AT_B0)
    assert "the channel of red has moved to b1; the settings still say b0" in caplog.text
