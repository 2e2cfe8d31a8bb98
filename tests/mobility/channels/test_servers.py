"""Channels and those who host them: relocation, load, history, merging, advertisements, what clients may leave out."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tools.mobility.channels import World, world

from fieldfare.filters import parse
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.messages import (
    BalanceLoad,
    InterestReply,
    RelocateChannel,
    SubscribePast,
    WatchInterest,
)
from fieldfare.protocol.messages import Message
from fieldfare.simulation import checker
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.trace import Delivered
from fieldfare.tables.merging.rules import Merging

ORDERED = Domain(("r0", "r1", "r2"), types=("news", "stock"))
CAUSAL = Domain(("r0", "r1", "r2"), types=("news", "stock"), ordered=False)


def got(network: Network[Any], client: str) -> list[tuple[str, int]]:
    return [(r.publisher, r.sequence) for r in network.trace if isinstance(r, Delivered) and r.client == client]


def start(domain: Domain, **where: str) -> World:
    made = world(domain)
    for client, server in where.items():
        made.network.attach(client, server)
    return made


@pytest.mark.parametrize("domain", [ORDERED, CAUSAL])
def test_a_channel_that_is_relocated_all_the_time_loses_and_doubles_nothing(domain: Domain) -> None:
    dice = Random(1)
    network = world(domain, links=Wire(exponential(0.5)), seed=3).network
    for client, server in (("ana", "a0"), ("bob", "a1"), ("cyd", "a2")):
        network.attach(client, server)
        network.subscribe(client, "all", "TRUE")
    network.drain()
    for i in range(60):
        network.at(network.now + i * 0.2, network.publish, dice.choice(["ana", "bob"]), {"type": "news", "n": i})
        relocate = RelocateChannel("news", dice.choice(domain.servers))
        network.at(network.now + i * 0.2 + 0.1, network.send, f"operator of {dice.choice(domain.servers)}", relocate)
        if i % 5 == 0:
            network.at(network.now + i * 0.2, network.subscribe, "cyd", str(i), f"type = 'news' AND n > {i}")
    network.drain()
    assert sum(network.brokers[server].relocations for server in domain.servers) > 20
    assert sum("news" in network.brokers[server].channels for server in domain.servers) == 1
    assert all(len(got(network, client)) == len(set(got(network, client))) == 60 for client in ("ana", "bob", "cyd"))
    assert checker.causal(network.trace) == []
    assert not domain.ordered or checker.total(network.trace) == []


def test_looking_up_a_channel_takes_one_step_and_a_correction_when_it_has_moved() -> None:
    network = start(ORDERED, ana="a0").network
    network.subscribe("ana", "x", "type = 'news'")
    network.drain()
    home = ORDERED.home("news")
    there = next(server for server in ORDERED.servers if server != home)
    sent = network.traffic["a0", home].other
    network.send(f"operator of {home}", RelocateChannel("news", there))
    network.drain()
    for _ in range(3):
        network.publish("ana", {"type": "news"})
        network.drain()
    asked = network.traffic["a0", home].other - sent
    probes = 3  # the home is also asked for the time
    assert asked <= 1 + probes
    assert got(network, "ana") == [("ana", 1), ("ana", 2), ("ana", 3)]


def test_load_is_balanced() -> None:
    types = tuple(f"t{i}" for i in range(12))
    domain = Domain(("r0", "r1", "r2"), types=types)
    network = start(domain, ana="a0").network
    for type in types:
        network.send(f"operator of {domain.home(type)}", RelocateChannel(type, "r0"))
    network.drain()

    def publish() -> dict[str, int]:
        before = {server: _events(network, server) for server in domain.servers}
        for type in types * 5:
            network.publish("ana", {"type": type})
        network.drain()
        return {server: _events(network, server) - before[server] for server in domain.servers}

    def _events(network: Network[Any], server: str) -> int:
        return sum(channel.state.events for channel in network.brokers[server].channels.values())

    assert publish()["r0"] == 60
    for _ in range(12):
        network.send("operator of r0", BalanceLoad())
        network.drain()
        publish()
    loads = publish()
    assert max(loads.values()) - min(loads.values()) <= 5, loads  # one channel's events


def test_who_comes_late_gets_what_was_before_and_then_what_follows() -> None:
    network = start(Domain(("r0", "r1"), types=("news",), log=3), ana="a0", bob="a1", cyd="a2").network
    network.subscribe("cyd", "x", "type = 'news'")
    for i in range(6):
        network.publish("ana", {"type": "news", "n": i})
    network.drain()
    network.send("bob", SubscribePast("x", parse("type = 'news' AND n < 6"), 10))
    network.publish("ana", {"type": "news", "n": 5})
    network.drain()
    network.publish("ana", {"type": "news", "n": 2})
    network.drain()
    numbers = [number for _, number in got(network, "bob")]
    assert numbers in (
        [4, 5, 6, 7, 8],
        [5, 6, 7, 8],
    )  # the log keeps three, and the seventh may come before the question
    assert [number for _, number in got(network, "cyd")] == list(range(1, 9))


def test_only_servers_that_promise_such_events_hear_of_wishes() -> None:
    domain = Domain(("r0",), types=("news",), ordered=False, advertisements=True)
    network = start(domain, ana="a0", bob="a1", cyd="a2").network
    network.advertise("ana", "x", "type = 'news' AND n < 5")
    network.advertise("bob", "x", "type = 'news' AND n > 5")
    network.drain()
    network.subscribe("cyd", "x", "type = 'news' AND n = 3")
    network.drain()
    tables = {name: network.brokers[name].services[""].member.proxies.get("news") for name in ("a0", "a1", "a2")}
    assert [name for name, table in tables.items() if table is not None and len(table)] == ["a0"]


@pytest.mark.parametrize("merging", [None, Merging(), Merging(imperfect=True, budget=1.0)])
def test_channels_hold_merged_filters(merging: Merging | None) -> None:
    network = start(Domain(("r0",), types=("news",), merging=merging), ana="a0").network
    for id, filter in enumerate(["n BETWEEN 0 AND 5", "n BETWEEN 5 AND 9", "n BETWEEN 1 AND 7"]):
        network.subscribe("ana", str(id), f"type = 'news' AND {filter}")
    network.drain()
    held = network.brokers["r0"].channels["news"].wanted()
    assert len(held) == (3 if merging is None else 1)
    for n in range(12):
        network.publish("ana", {"type": "news", "n": n})
    network.drain()
    assert len(got(network, "ana")) == 10


@pytest.mark.parametrize("domain", [ORDERED, CAUSAL])
def test_a_client_may_know_what_anybody_wants(domain: Domain) -> None:
    heard: list[tuple[str, Message]] = []
    network = world(domain, on_message=lambda client, message: heard.append((client, message))).network
    for client, server in (("ana", "a0"), ("bob", "a1"), ("cyd", "a0")):
        network.attach(client, server)
    network.subscribe("bob", "x", "type = 'news' AND n > 3")
    network.subscribe("cyd", "x", "type = 'stock'")
    network.drain()
    network.send("ana", WatchInterest())
    network.drain()

    last = [message for _, message in heard if isinstance(message, InterestReply)][-1]
    assert set(last.filters) == {parse("type = 'news' AND n > 3"), parse("type = 'stock'")}
    network.subscribe("bob", "y", "type = 'news' AND n > 1")
    network.unsubscribe("cyd", "x")
    network.drain()
    last = [message for _, message in heard if isinstance(message, InterestReply)][-1]
    assert set(last.filters) == {parse("type = 'news' AND n > 1")}
    assert all(client == "ana" for client, message in heard if isinstance(message, InterestReply))
