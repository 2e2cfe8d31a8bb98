"""One suite for every handover: sessions follow clients, and nothing is lost, repeated or out of order."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.durable_network import DurableNetwork
from fieldfare.simulation.handovers import HANDOVERS, MobileNetwork
from fieldfare.simulation.links import Wire, uniform
from fieldfare.simulation.scenario import ScenarioError, parse, run
from fieldfare.simulation.topologies import line, random_tree, ring
from fieldfare.simulation.trace import Delivered


class HandoverSuite:
    """The tests of a handover; a subclass names it."""

    name: str

    def network(self, brokers: int = 4, strategy: str = "covering", seed: int = 1) -> MobileNetwork:
        tree = line(brokers) if seed == 1 else random_tree(brokers, seed)
        wire = Wire(uniform(0.01, 0.05))
        made: MobileNetwork = HANDOVERS[self.name].network(tree, STRATEGIES[strategy], wire, seed)
        return made

    def judged(self, network: MobileNetwork, strategy: str = "covering") -> None:
        network.drain()
        assert HANDOVERS[self.name].judge(network.trace, STRATEGIES[strategy]) == []
        assert not getattr(network, "problems", [])

    def delivered(self, network: MobileNetwork) -> list[tuple[str, int]]:
        return [(one.broker, one.sequence) for one in network.trace if isinstance(one, Delivered)]

    def start(self, network: MobileNetwork) -> None:
        for client, broker in (("ana", "b0"), ("bob", "b2")):
            network.attach(client, broker)
        network.drain()
        network.advertise("bob", "all", "TRUE")
        network.subscribe("ana", "x", "x >= 0")
        network.drain()

    def test_a_session_follows_its_client(self) -> None:
        network = self.network()
        self.start(network)
        network.publish("bob", {"x": 1})
        network.drain()
        network.attach("ana", "b3")
        network.drain()
        network.publish("bob", {"x": 2})
        self.judged(network)
        assert self.delivered(network) == [("b0", 1), ("b3", 2)]

    def test_events_wait_for_a_client_that_is_away(self) -> None:
        network = self.network()
        self.start(network)
        network.detach("ana")
        network.publish("bob", {"x": 1})
        network.at(network.now + 5.0, network.attach, "ana", "b3")
        network.at(network.now + 5.0, network.publish, "bob", {"x": 2})
        network.run(network.now + 5.0)
        self.judged(network)
        assert self.delivered(network) == [("b3", 1), ("b3", 2)]

    def test_subscriptions_change_on_the_way(self) -> None:
        network = self.network()
        self.start(network)
        network.attach("ana", "b3")
        network.subscribe("ana", "y", "y >= 0")
        network.drain()
        network.unsubscribe("ana", "x")
        network.drain()
        network.publish("bob", {"x": 1})
        network.publish("bob", {"y": 1})
        self.judged(network)
        assert self.delivered(network) == [("b3", 2)]

    def test_fast_moves_lose_nothing(self) -> None:
        strategies = sorted(set(HANDOVERS[self.name].strategies) - {"book-merging", "prefix", "prefix+ads"})
        for seed in range(2, 8):
            dice = Random(seed)
            strategy = strategies[seed % len(strategies)]
            network = self.network(dice.randint(2, 6), strategy, seed)
            brokers = [f"b{number}" for number in range(2)]
            for client in ("ana", "eve", "bob", "dan"):
                network.attach(client, dice.choice(brokers))
            network.drain()
            for publisher in ("bob", "dan"):
                network.advertise(publisher, "all", "TRUE")
            for client, filter in (("ana", "x < 5"), ("eve", "x > 2"), ("eve", "y = 1")):
                network.subscribe(client, filter, filter)
            network.drain()
            begin = network.now
            for _ in range(30):
                event = {"x": dice.randrange(8), "y": dice.randrange(3)}
                network.at(begin + dice.uniform(0, 2), network.publish, dice.choice(["bob", "dan"]), event)
            for _ in range(8):
                client = dice.choice(["ana", "eve"])
                network.at(begin + dice.uniform(0, 2), network.attach, client, dice.choice(brokers))
            network.run(begin + 2.0)
            self.judged(network, strategy)
            assert self.delivered(network)

    def test_other_networks_are_refused(self) -> None:
        handover = HANDOVERS[self.name]
        with pytest.raises(ValueError, match="without a cycle"):
            handover.network(ring(4), STRATEGIES["covering"])
        for strategy in STRATEGIES.keys() - set(handover.strategies):
            with pytest.raises(ValueError, match="for the strategies"):
                handover.network(line(2), STRATEGIES[strategy])


class TestNode(HandoverSuite):
    name = "node"


class TestPingPong(HandoverSuite):
    name = "ping-pong"


class TestPathUpdate(HandoverSuite):
    name = "path-update"


class TestRendezvous(HandoverSuite):
    name = "rendezvous"


class TestRelocation(HandoverSuite):
    name = "relocation"


def suites() -> Iterator[str]:
    return (suite.name for suite in HandoverSuite.__subclasses__())


def test_every_handover_has_the_suite() -> None:
    assert sorted(suites()) == sorted(HANDOVERS)
    assert isinstance(HANDOVERS["node"].network(line(1), STRATEGIES["covering"]), DurableNetwork)


WORKLOAD = "workload = {subscribers = 4, subscriptions = 6, publishers = 2, events = 40, moves = 10}\ntopology = {kind = 'line', brokers = 4}\n"


@pytest.mark.parametrize("name", HANDOVERS)
def test_a_scenario_has_any_handover(name: str) -> None:
    nodes = "nodes = 'durable'\n" if name == "node" else ""
    result = run(parse(f"handover = '{name}'\n{nodes}{WORKLOAD}"))
    assert result.violations == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "workload.moves: brokers alone keep no sessions: name a handover"),
        ("nodes = 'durable'\nhandover = 'ping-pong'\n", "handover: durable nodes have a handover of their own"),
        ("handover = 'node'\n", "handover: the handover of nodes needs nodes"),
        ("handover = 'relocation'\nstrategy = 'imperfect'\n", "handover: relocation: this handover is for the strategies"),
        ("handover = 'ping-pong'\nfaults = [{do = 'crash', time = 1.0, broker = 'b0'}]\n", "faults: ping-pong is for brokers"),
        ("handover = 'ping-pong'\nlinks = {loss = 0.1, reliable = false}\n", "handover: ping-pong needs links that keep order"),
    ],
)  # fmt: skip
def test_a_wrong_scenario_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        run(parse(text + WORKLOAD))
