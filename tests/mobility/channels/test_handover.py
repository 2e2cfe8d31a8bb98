"""Sessions that move: what channels hear of it, and what clients get."""

from __future__ import annotations

from typing import Any

import pytest
from tools.mobility.channels import world

from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.messages import Attach, MoveClients, MoveRequest, SessionMoved
from fieldfare.mobility.messages import Acknowledge, MoveOut
from fieldfare.protocol.messages import Message
from fieldfare.simulation import checker
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.trace import Arrived, Delivered

ORDERED = Domain(("r0", "r1"), types=("news",))
CAUSAL = Domain(("r0", "r1"), types=("news",), ordered=False)
BOTH = pytest.mark.parametrize("domain", [ORDERED, CAUSAL])
NEWS = "type = 'news' AND n > 3"


def start(domain: Domain, clients: dict[str, str], **options: Any) -> Network[Any]:
    network = world(domain, 4, **options).network
    for client, server in clients.items():
        network.attach(client, server)
    return network


def got(network: Network[Any], client: str) -> list[int]:
    return [r.sequence for r in network.trace if isinstance(r, Delivered) and r.client == client]


def publish(network: Network[Any], client: str, count: int = 1) -> None:
    for _ in range(count):
        network.publish(client, {"type": "news", "n": 5})
    network.drain()


def updates(network: Network[Any]) -> int:
    return sum(network.brokers[f"a{i}"].updates for i in range(4))


@BOTH
@pytest.mark.parametrize(
    ("at_source", "at_target", "expected"), [(True, True, 0), (True, False, 1), (False, True, 1), (False, False, 2)]
)
def test_channels_hear_only_what_they_do_not_know(
    domain: Domain, at_source: bool, at_target: bool, expected: int
) -> None:
    network = start(domain, {"ana": "a0", "bob": "a0", "cyd": "a1", "pat": "a2"})
    network.subscribe("ana", "x", NEWS)
    if at_source:
        network.subscribe("bob", "x", "type = 'news'")
    if at_target:
        network.subscribe("cyd", "x", "type = 'news' AND n > 1")
    network.drain()
    publish(network, "pat")
    before = updates(network)
    network.move("ana", "a1", Attach(received=network.taken["ana"], source="a0"))
    network.drain()
    assert updates(network) - before == expected
    publish(network, "pat", 3)
    assert got(network, "ana") == [1, 2, 3, 4]
    assert network.brokers["a1"].sessions["ana"].subscriptions.keys() == {"x"}
    assert "ana" not in network.brokers["a0"].sessions


@BOTH
def test_a_target_that_was_told_before_tells_channels_nothing_when_the_client_comes(domain: Domain) -> None:
    network = start(domain, {"ana": "a0", "pat": "a2"})
    network.subscribe("ana", "x", NEWS)
    network.drain()
    publish(network, "pat")

    def delay(prepared: bool, source: str, target: str) -> float:
        if prepared:
            network.send("ana", MoveOut(target))
            network.drain()
        publish(network, "pat")
        network.detach("ana")
        publish(network, "pat")
        before = network.brokers[target].updates
        network.move("ana", target, Attach(received=network.taken["ana"], source=source))
        network.drain()
        assert network.brokers[target].updates - before == (not prepared)
        arrived = max(record.time for record in network.trace if isinstance(record, Arrived))
        return max(record.time for record in network.trace if isinstance(record, Delivered)) - arrived

    assert delay(True, "a0", "a1") < delay(False, "a1", "a3")
    assert got(network, "ana") == [1, 2, 3, 4, 5]


@BOTH
def test_a_session_that_was_expected_in_vain_leaves_nothing_there(domain: Domain) -> None:
    network = start(domain, {"ana": "a0", "pat": "a2"})
    network.subscribe("ana", "x", NEWS)
    network.send("ana", MoveOut("a1"))
    network.drain()
    network.move("ana", "a3", Attach(source="a0"))
    network.drain()
    hosts = [
        network.brokers[server].channels["news"]
        for server in domain.servers
        if "news" in network.brokers[server].channels
    ]
    assert [list(host.state.subscriptions) for host in hosts] == [["a3"]]


@BOTH
def test_who_was_away_for_long_gets_all_in_order(domain: Domain) -> None:
    network = start(domain, {"ana": "a0", "pat": "a2", "pia": "a1"})
    network.subscribe("ana", "x", NEWS)
    network.drain()
    network.detach("ana")
    publish(network, "pat", 20)
    network.move("pat", "a3", Attach(source="a2"))
    publish(network, "pat", 20)
    network.move("ana", "a3", Attach(received=0, source="a0"))
    network.drain()
    assert got(network, "ana") == list(range(1, 41))


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_a_client_that_never_rests_gets_all_once_and_in_order(domain: Domain, seed: int) -> None:
    network = start(domain, {"ana": "a0", "pat": "a2"}, links=Wire(exponential(0.5)), seed=seed)
    network.subscribe("ana", "x", NEWS)
    network.drain()
    last = "a0"
    for i in range(40):
        to = f"a{(i * 3 + seed) % 4}"
        if i % 2:
            network.move("ana", to, Attach(received=network.taken.get("ana"), source=last, moves=i // 2 + 1))
            last = to
        network.publish("pat", {"type": "news", "n": 5})
        network.run(network.now + 0.3)
    network.drain()
    network.move("ana", "a1", Attach(received=network.taken.get("ana"), source=last, moves=21))
    network.drain()
    assert got(network, "ana") == list(range(1, 41))
    assert checker.safety(network.trace) == []


@BOTH
def test_an_access_server_sends_clients_away(domain: Domain) -> None:
    def hear(client: str, message: Message) -> None:
        if isinstance(message, MoveRequest):
            went.append(client)
            network.move(client, message.to, Attach(received=network.taken.get(client), source="a0"))

    went: list[str] = []
    network = start(domain, {"ana": "a0", "bob": "a0", "pat": "a2"}, on_message=hear)
    for client in ("ana", "bob"):
        network.subscribe(client, "x", NEWS)
    network.drain()
    publish(network, "pat")
    network.send("operator of a0", MoveClients("a3", sessions=1))
    publish(network, "pat", 2)
    assert went == ["ana"]
    assert list(network.brokers["a3"].sessions) == ["ana"]
    assert got(network, "ana") == got(network, "bob") == [1, 2, 3]


@BOTH
def test_a_user_goes_on_with_another_device_that_knows_nothing(domain: Domain) -> None:
    network = start(domain, {"phone": "a0", "desktop": "a1", "pat": "a2"})
    network.send("phone", Attach("ana"))
    network.subscribe("phone", "x", NEWS)
    network.drain()
    publish(network, "pat", 3)
    network.send("phone", Acknowledge(2))
    network.send("desktop", Attach("ana"))
    network.drain()
    publish(network, "pat", 2)
    assert got(network, "phone") == [1, 2, 3]
    assert got(network, "desktop") == [3, 4, 5]  # the third was not acknowledged


@BOTH
def test_applications_share_a_session_each_at_its_place(domain: Domain) -> None:
    heard: list[tuple[str, Message]] = []
    network = start(
        domain,
        {"mail": "a0", "clock": "a0", "pat": "a2"},
        on_message=lambda client, message: heard.append((client, message)),
    )
    network.send("mail", Attach("ana", "mail"))
    network.send("clock", Attach("ana", "clock"))
    network.subscribe("mail", "x", NEWS)
    network.drain()
    publish(network, "pat", 3)
    assert got(network, "mail") == got(network, "clock") == [1, 2, 3]
    network.send("mail", Acknowledge(3))
    network.send("clock", Acknowledge(1))
    session = network.brokers["a0"].sessions["ana"]
    assert [delivery.number for delivery in session.pending] == [2, 3]  # the clock is not done with them
    network.move("mail", "a1", Attach("ana", "mail", received=3, source="a0"))
    network.drain()
    assert ("clock", SessionMoved("ana", "a1")) in heard
    publish(network, "pat")
    network.move("clock", "a1", Attach("ana", "clock", received=3))
    publish(network, "pat")
    assert got(network, "mail") == got(network, "clock") == [1, 2, 3, 4, 5]
    network.send("clock", Acknowledge(5))
    network.send("mail", Acknowledge(5))
    assert network.brokers["a1"].sessions["ana"].pending == []


def test_a_session_keeps_only_so_much() -> None:
    network = start(Domain(("r0",), limit=5), {"ana": "a0", "pat": "a2"})
    network.subscribe("ana", "x", "TRUE")
    network.drain()
    network.detach("ana")
    publish(network, "pat", 12)
    session = network.brokers["a0"].sessions["ana"]
    assert (len(session.pending), session.lost) == (5, 7)
    network.move("ana", "a1", Attach(source="a0"))
    network.drain()
    assert got(network, "ana") == [8, 9, 10, 11, 12]


@BOTH
def test_a_session_that_is_over_is_nowhere(domain: Domain) -> None:
    network = start(domain, {"ana": "a0", "pat": "a2"})
    network.subscribe("ana", "x", NEWS)
    network.drain()
    network.leave("ana")
    network.drain()
    publish(network, "pat", 2)
    assert got(network, "ana") == []
    assert "ana" not in network.brokers["a0"].sessions
    assert all("ana" not in network.brokers[server]._visits for server in domain.servers)
    assert not any(
        channel.state.subscriptions
        for server in domain.servers
        for channel in network.brokers[server].channels.values()
    )


@pytest.mark.parametrize("ordered", [True, False])
def test_a_session_that_goes_to_another_domain_stays_in_its_own(ordered: bool) -> None:
    home = Domain(("xr0", "xr1"), "x", types=("news",), ordered=ordered)
    away = Domain(("yr0",), "y", types=("news",), ordered=not ordered)
    network = world(home, 2, others=(away,)).network
    for client, server in {"ana": "xa0", "pat": "xa1"}.items():
        network.attach(client, server)
        network.send(client, Attach(f"{client}@x"))
    network.subscribe("ana", "x", NEWS)
    network.drain()
    publish(network, "pat")
    network.move("ana", "ya0", Attach("ana@x", received=1, source="xa0"))
    publish(network, "pat", 2)
    assert got(network, "ana") == [1, 2, 3]
    assert network.brokers["yr0"].channels == {}  # only channels of its own domain were told
    network.move("ana", "xa1", Attach("ana@x", received=3, source="ya0"))
    publish(network, "pat", 2)
    assert got(network, "ana") == [1, 2, 3, 4, 5]
