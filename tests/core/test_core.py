"""Single cases of `Core`; random runs of several are in `tests/simulation/test_core_runs.py`."""

from __future__ import annotations

import pytest

from fieldfare.core.core import Core
from fieldfare.core.inputs import EndSession
from fieldfare.core.state import NEVER, Pending, Publication, RequestRefused
from fieldfare.core.step import Step
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import (
    details_of,
)
from fieldfare.routing.broker import Broker
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Disk
from fieldfare.simulation.topologies import line
from tools import effort


def test_a_client_that_leaves_takes_its_rows_along() -> None:
    network = CoreNetwork(line(2))
    ana, bob = network.add_client("ana", "b0"), network.add_client("bob", "b1")
    network.settle()
    ana.change(m.Subscribe("s", parse("x = 1")))
    network.settle()
    assert network.disks["b1"].rows["told"]
    ana.detach()
    bob.publish([Event({"x": 1, "y": 1})])
    network.clock.run(10.0)
    assert network.hosts["b0"].core.low_water() == 1
    network.hosts["b0"].submit(EndSession("ana"))
    del network.clients["ana"]
    network.settle()
    assert not network.disks["b0"].rows["subscriptions"]
    assert ("ana",) not in network.disks["b0"].rows["session"]
    assert not network.disks["b1"].rows["told"]
    assert network.hosts["b0"].core.low_water() == 2
    assert not network.problems


def one_broker(**options: object) -> Core:
    core = Core(Broker("b"), **options)  # type: ignore[arg-type]
    for name in ("ana", "bob"):
        core.presence.attach(name, f"{name}@1", 0.0)
    core.presence.change_filters(m.Subscribe("s", parse("x >= 0")), "ana", 0.0)
    core.drain()
    return core


def publish(core: Core, number: int, *events: dict[str, object], now: float = 0.0, **options: object) -> Step:
    (answer,) = core.publish([Publication("bob", number, [Event(one) for one in events], **options)], now)  # type: ignore[arg-type]
    assert isinstance(answer, int), answer
    step = core.drain()
    core.release(step)
    return step


def positions(core: Core, now: float = 0.0) -> list[int]:
    return [pending.position for _, pending in core.deliveries.next("ana", 1000, now)]


def test_without_a_session_nothing_is_kept() -> None:
    core = Core(Broker("b"))
    core.presence.attach("ana", "1", 0.0, durable=False)
    core.presence.change_filters(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
    assert core.publish([Publication("ana", 1, [Event({"x": 1})])], 0.0) == [1]
    step = core.drain()
    assert step.rows == []
    assert details_of(step.entries[0]).to == []
    core.release(step)
    assert positions(core) == [1]
    core.presence.detach("ana", 0.0)
    assert not core.broker.clients.all


def test_who_has_not_come_is_refused() -> None:
    core = Core(Broker("b"))
    with pytest.raises(RequestRefused, match="no session ana"):
        core.presence.change_filters(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
    (answer,) = core.publish([Publication("ana", 1, [Event({"x": 1})])], 0.0)
    assert isinstance(answer, RequestRefused)


def test_nobody_takes_what_is_not_written() -> None:
    core = one_broker()
    core.publish([Publication("bob", 1, [Event({"x": 1})])], 0.0)
    assert positions(core) == []
    core.release(core.drain())
    assert positions(core) == [1]


def test_what_is_too_old_is_not_delivered() -> None:
    core = one_broker()
    publish(core, 1, {"x": 1}, expires=10.0)
    publish(core, 2, {"x": 2})
    assert positions(core, now=11.0) == [2]


def test_events_replace_each_other_while_they_wait() -> None:
    core = one_broker()
    publish(core, 1, {"x": 1}, replaces="price")
    assert positions(core) == [1]  # it is on its way
    for number in (2, 3):
        publish(core, number, {"x": number}, replaces="price")
    publish(core, 4, {"x": 4}, replaces="other")
    assert positions(core) == [3, 4]
    core.presence.attach("ana", "", 1.0)
    assert positions(core) == [1, 3, 4]


def test_of_what_is_too_much_the_oldest_goes() -> None:
    core = one_broker(limit=3)
    for number in range(1, 6):
        publish(core, number, {"x": number})
    assert core.sessions["ana"].dropped == 2
    assert positions(core) == [3, 4, 5]


def test_events_cost_the_same_for_a_lasting_session_with_many_waiting_events() -> None:
    core = one_broker(queue=10)
    begin = [Publication("bob", 0, [Event(x=number)]) for number in range(20)]
    few = effort.steps(lambda: core.publish(begin[:9], 1.0))
    core.publish(begin, 1.0)
    assert effort.steps(lambda: core.publish(begin[:9], 1.0)) <= few + 10


def test_a_queue_of_a_session_without_a_name_loses_its_oldest_events() -> None:
    core = Core(Broker("b"), queue=2, policy="drop-oldest")
    for name, durable in (("ana", False), ("bob", True)):
        core.presence.attach(name, name, 0.0, durable=durable)
        core.presence.change_filters(m.Subscribe("s", parse("x >= 0")), name, 0.0)
    publish(core, 1, {"x": 1}, {"x": 2}, {"x": 3})
    assert [core.sessions[name].dropped for name in ("ana", "bob")] == [1, 0]


def test_a_slow_client_without_a_session_has_to_go() -> None:
    core = Core(Broker("b"), queue=2, policy="disconnect")
    for name in ("ana", "bob"):
        core.presence.attach(name, name, 0.0, durable=False)
    core.presence.change_filters(m.Subscribe("s", parse("x >= 0")), "ana", 0.0)
    assert publish(core, 1, {"x": 1}, {"x": 2}).overflowing == set()
    assert publish(core, 3, {"x": 3}).overflowing == {"ana"}


def test_old_events_are_replayed_and_survive() -> None:
    core = one_broker()
    publish(core, 1, {"y": 1}, {"y": 2})
    disk = Disk()
    core.checkpoint()
    core.deliveries.replay("ana", [Pending(position, ("old",), NEVER) for position in (1, 2)])
    step = core.drain()
    disk.write(step)
    again = Core(Broker("b"), disk.load()[0], [], now=1.0)
    again.presence.attach("ana", "", 1.0)
    assert [(n, p.position, p.subscriptions) for n, p in again.deliveries.next("ana", 9, 1.0)] == [
        (1, 1, ("old",)),
        (2, 2, ("old",)),
    ]
    again.deliveries.acknowledge("ana", 2)
    disk.write(again.drain())
    assert disk.rows["replayed"] == {}


def test_what_was_not_sent_cannot_be_acknowledged() -> None:
    core = one_broker()
    publish(core, 1, {"x": 1})
    with pytest.raises(RequestRefused, match="was not sent"):
        core.deliveries.acknowledge("ana", 1)


def test_sessions_that_nobody_comes_back_to_end() -> None:
    core = one_broker()
    core.presence.detach("ana", 5.0)
    assert core.expire(10.0, life=20.0) == []
    assert core.expire(30.0, life=20.0) == ["ana"]
    assert "ana" not in core.broker.clients.all


def test_a_neighbour_that_has_forgotten_begins_anew() -> None:
    core = one_broker()
    core.links.connect("c", m.Role.PEER, 0.0, local_name="m", remote_name="t1")
    core.release(core.drain())
    assert len(core.links.outgoing("c", 0, 9)) == 1
    core.links.acknowledge("c", 1)
    assert core.links["c"].acknowledged == 1
    core.links.connect("c", m.Role.PEER, 0.0, local_name="m2", remote_name="t2")
    core.release(core.drain())
    assert (core.links["c"].acknowledged, len(core.links.outgoing("c", 0, 9))) == (0, 1)


def test_numbers_leave_nothing_out() -> None:
    core = one_broker()
    core.links.connect("c", m.Role.PEER, 0.0)
    with pytest.raises(ValueError, match="left out"):
        core.receive("c", 2, [wire.encode(m.FilterUpdate())], 0.0)
    with pytest.raises(ValueError, match="was the last"):
        core.links.acknowledge("c", 7)
