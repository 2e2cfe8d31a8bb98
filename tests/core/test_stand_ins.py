"""Advertisements that linger, go ahead, or stand at proxies: fewer filter updates, no lost event, and an end."""

from __future__ import annotations

import pytest
from tools.simulation.cores import failure

from fieldfare.core.stand_ins import AHEAD
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING, Filter, parse
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import About
from fieldfare.routing.publisher_policies import POLICIES
from fieldfare.routing.strategies import by_name
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.simulation.actions.clients import LeaveFor, Move, Publish, Subscribe
from fieldfare.simulation.checker import check_durable
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.plans import Plan, draw
from fieldfare.simulation.plans import Step as At
from fieldfare.simulation.topologies import line

ADS = by_name("covering+ads")


def network(policy: str, *, linger: float = 5.0) -> CoreNetwork:
    """Four nodes in a row; ana publishes at b0, and bob at b2 hears of everything."""
    rules = POLICIES[policy]
    rules = rules._replace(linger=linger) if rules.linger and not rules.holds else rules
    made = CoreNetwork(line(4), Options(ADS, publishers=rules, proxies=("b1", "b3")), seed=1, detailed=True)
    ana, bob = made.add_client("ana", "b0"), made.add_client("bob", "b2")
    made.settle()
    ana.change(m.Advertise("all", parse("x > 0")))
    bob.change(m.Subscribe("all", EVERYTHING))
    made.settle()
    return made


def stand_ins(of: CoreNetwork) -> list[str]:
    """The nodes with a stand-in for ana, in memory and on disk."""
    nodes = [name for name, host in of.hosts.items() if "ana" in host.core.stand_ins]
    assert nodes == [name for name, disk in of.disks.items() if ("ana",) in disk.rows.get("stand-in", {})]
    return nodes


def known(of: CoreNetwork, node: str, neighbour: str, about: About = "subscriptions") -> tuple[Filter, ...]:
    routes = of.hosts[node].core.broker.routes
    assert isinstance(routes, TableRoutes)
    return routes.filters_of(neighbour, about)


def to_and_fro(policy: str, *, hint: bool = True) -> int:
    """Return the number of changed filters on all links while ana goes from b0 to b3 and back, three times."""
    made = network(policy)
    ana, before = made.clients["ana"], sum(one.added + one.removed for one in made.traffic.values())
    for node in ("b3", "b0") * 3:
        if hint:
            ana.leave_for(node)
            made.settle()
        ana.attach(node)
        made.settle()
        ana.publish([Event({"x": 1})])
        made.settle()
    assert check_durable(made.trace, advertisements=True) == []
    assert not made.problems
    return sum(one.added + one.removed for one in made.traffic.values()) - before


def test_policies_save_filter_updates_and_lose_nothing() -> None:
    moved = {policy: to_and_fro(policy) for policy in POLICIES}
    assert moved["safe"] == moved["standard"] > 0
    assert moved["delayed"] < moved["safe"] / 2
    assert moved["prefetch-delayed"] == moved["delayed"]
    assert moved["proxy"] < moved["safe"]
    assert moved["prefetching"] <= moved["safe"]


def test_advertisements_linger_through_a_kill_and_end_after_it() -> None:
    made = network("delayed")
    made.clients["ana"].attach("b3")
    made.settle()
    assert stand_ins(made) == ["b0"]
    made.kill("b0", seconds=0.5)
    made.settle()
    assert stand_ins(made) == ["b0"]
    assert known(made, "b1", "b0", "advertisements") == (parse("x > 0"),)
    made.clock.run(made.clock.now + 6.0)
    assert stand_ins(made) == []
    made.settle()
    assert known(made, "b1", "b0", "advertisements") == ()


def test_a_publisher_that_returns_replaces_the_stand_in() -> None:
    made = network("delayed")
    ana = made.clients["ana"]
    for node in ("b3", "b0"):
        ana.attach(node)
        made.settle()
    assert stand_ins(made) == ["b3"]
    ana.change(m.Unadvertise("all"))
    made.clock.run(made.clock.now + 6.0)
    made.settle()
    assert stand_ins(made) == []
    assert all(not host.core.broker.clients.all.get("~stand-in:ana") for host in made.hosts.values())


def test_a_hint_brings_the_advertisements_ahead() -> None:
    made = network("prefetching")
    ana = made.clients["ana"]
    ana.leave_for("b3")
    made.settle()
    assert stand_ins(made) == ["b3"]
    assert known(made, "b3", "b2") == (EVERYTHING,)  # bob's filter is there already
    ana.attach("b3")
    made.settle()
    assert stand_ins(made) == []
    ana.leave_for("b1")  # and the client stays
    made.settle()
    assert stand_ins(made) == ["b1"]
    made.clock.run(made.clock.now + AHEAD + 1.0)
    assert stand_ins(made) == []


def test_an_unknown_node_is_refused_and_other_policies_ignore_hints() -> None:
    made = network("prefetching")
    made.clients["ana"].leave_for("nowhere")
    made.settle()
    assert "knows no way to the node nowhere" in str(made.trace)
    safe = network("safe")
    safe.clients["ana"].leave_for("b3")
    safe.settle()
    assert stand_ins(safe) == []


def test_proxies_follow_the_advertisements_until_the_session_ends() -> None:
    made = network("proxy")
    ana = made.clients["ana"]
    assert stand_ins(made) == ["b1", "b3"]
    for node, others in (("b3", ["b1"]), ("b2", ["b1", "b3"]), ("b0", ["b1", "b3"])):
        ana.attach(node)
        made.settle()
        assert stand_ins(made) == others
    ana.change(m.Advertise("more", parse("y > 0")))
    made.settle()
    about = known(made, "b2", "b3", "advertisements")
    assert set(about) == {parse("x > 0"), parse("y > 0")}
    made.hosts["b0"].core.presence.leave("ana", made.hosts["b0"].steady())
    made.hosts["b0"].submit(lambda *_: None)
    del made.clients["ana"]
    made.settle()
    assert stand_ins(made) == []


def test_a_proxy_hears_of_a_change_that_its_unknown_version_held_back() -> None:
    """After a start, a node does not know what far nodes speak."""
    made = network("proxy")
    made.cut("b0", "b1")
    made.clock.run(made.clock.now + 2.0)
    made.kill("b0", seconds=0.1)
    made.clock.run(made.clock.now + 1.0)
    made.clients["ana"].change(m.Advertise("more", parse("y > 0")))
    made.clock.run(made.clock.now + 1.0)
    made.settle()
    for node, neighbour in (("b2", "b3"), ("b2", "b1")):
        assert set(known(made, node, neighbour, "advertisements")) == {parse("x > 0"), parse("y > 0")}


@pytest.mark.parametrize("policy", POLICIES)
def test_random_moves_and_hints_lose_nothing(policy: str) -> None:
    for seed in range(6):
        plan = draw(seed, ("covering+ads", "simple+ads", "imperfect+ads"))
        assert failure(plan._replace(publishers=policy)) == ""


def test_events_right_after_a_move_reach_everybody() -> None:
    steps = [At(0.1, Subscribe(2, "one", 0)), At(1.0, LeaveFor(0, 2)), At(0.1, Move(0, 2)), At(0.0, Publish(0, (1, 2)))]
    steps += [At(0.05, Move(0, 0)), At(0.0, Publish(0, (3,))), At(0.2, Move(0, 1)), At(0.0, Publish(0, (4,)))]
    for policy in POLICIES:
        for seed in range(3):
            assert failure(Plan(seed, "covering+ads", (0, 1), tuple(steps), publishers=policy)) == ""
