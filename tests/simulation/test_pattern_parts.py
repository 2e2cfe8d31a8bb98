"""Patterns in parts at several nodes: nodes are killed and links break, and nothing is missed or said twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.core.inputs import Tick
from fieldfare.core.pattern_inputs import HostPattern, SettlePatterns
from fieldfare.core.standing_pattern import PUBLISHER
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.patterns import parse_pattern
from fieldfare.patterns.bounds import Bounds, check
from fieldfare.patterns.canonical import expression_type
from fieldfare.patterns.decomposition import cuts
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import details_of
from fieldfare.simulation.checker.pattern_checks import Standing, check_patterns
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.topologies import line
from fieldfare.simulation.trace import Delivered

FRAUD = """a: [x = 1] b: [x = 2] c: [x = 3] d: [x = 4]
    (a followed by b followed by c followed by d) within 1 hour for each card select card as card"""
NESTED = {cut.type: node for cut, node in zip(cuts(parse_pattern(FRAUD)), ("b2", "b0"), strict=True)}
"""Three events at b2, and two of them at b0"""
RELAY = {expression_type(parse_pattern(FRAUD)): "b2"}


class World:
    """Three nodes with a client each, and a pattern at b1 in the middle."""

    def __init__(self, seed: int = 0) -> None:
        self.network = CoreNetwork(line(3), seed=seed)
        self.network.settle()
        self.clients = [self.network.add_client(f"c{number}", f"b{number}") for number in range(3)]
        self.clients[0].change(m.Subscribe("all", parse("pattern = 'fraud'")))
        self.network.settle()
        self.born: dict[tuple[str, str], tuple[str, int, dict[str, str]]] = {}

    def do(self, node: str, what: object) -> list[object]:
        answers: list[object] = []
        self.network.hosts[node].submit(what, answers.append)
        self.network.settle()
        return answers

    def publish(self, client: int, x: int, card: int = 0) -> None:
        self.clients[client].publish([Event({"x": x, "card": card})])

    def tell(self, story: str) -> None:
        """Publish events one after the other: the client and x of each."""
        for client, x in map(tuple, story.split()):
            self.publish(int(client), int(x))
            self.network.settle()

    def maintain(self) -> None:
        for host in self.network.hosts.values():
            host.maintain()
        self.network.settle()

    def standing(self) -> dict[str, list[str]]:
        found = {name: sorted(host.core.patterns.known) for name, host in self.network.hosts.items()}
        return {name: keys for name, keys in found.items() if keys}

    def detections(self, node: str) -> Iterator[tuple[str, Any]]:
        """Yield the detections in the log of a node, each with the node that made it."""
        for _, entry in sorted(self.network.disks[node].history.items()):
            if entry.publisher.startswith(PUBLISHER):
                yield details_of(entry).source, (entry.publisher, entry.sequence, msgpack.decode(entry.event))

    def problems(self) -> list[str]:
        """Return what is wrong with the detections of each node, and with those on their way to the whole."""
        found = list(self.network.problems)
        for name, host in self.network.hosts.items():
            known = [
                Standing(one.key, one.text, one.born, hosts=one.hosts) for one in host.core.patterns.known.values()
            ]
            history = self.network.disks[name].history
            found += check_patterns(name, [history[position] for position in sorted(history)], known)
            for one in host.core.patterns.known.values():
                for cut in one.recipe.parts.values():
                    there = one.hosts[cut.type]
                    made = [
                        what for source, what in self.detections(there) if source == there and what[2].type == cut.type
                    ]
                    came = [
                        what for source, what in self.detections(name) if source == there and what[2].type == cut.type
                    ]
                    if made != came:
                        found.append(
                            f"{there} has found {len(made)} {cut.type}, and {len(came)} of them came to {name}"
                        )
        return found


def test_a_pattern_in_parts_says_what_the_whole_says() -> None:
    world = World()
    world.do("b1", HostPattern("fraud", FRAUD, NESTED))
    assert {name: len(keys) for name, keys in world.standing().items()} == {"b0": 1, "b1": 1, "b2": 1}
    world.tell("01 22 02 13 04")
    (delivered,) = [record for record in world.network.trace if isinstance(record, Delivered)]
    event = delivered.event
    assert event["constituents.name"] == ("a", "b", "c", "d")
    assert event["constituents.event.x"] == (1, 2, 3, 4)
    assert (event["pattern"], event["detector"], event["card"]) == ("fraud", "b1", 0)
    assert event["expr"] == parse_pattern(FRAUD).text
    assert world.problems() == []


def test_an_event_follows_a_composite_event_from_elsewhere_that_comes_at_the_same_moment() -> None:
    world = World()
    world.do("b1", HostPattern("fraud", FRAUD, NESTED))
    world.network.cut("b1", "b2")
    for x in (1, 2, 3):
        world.publish(0, x)
        world.network.clock.run(world.network.clock.now + 0.01)
    world.network.settle()
    world.tell("24")
    moments = [entry.time for entry in world.network.disks["b2"].history.values()]
    assert len(moments) > len(set(moments))
    assert world.problems() == []
    assert len([one for one in world.network.trace if isinstance(one, Delivered)]) == 1


def test_equal_parts_are_shared_and_end_with_the_last_pattern() -> None:
    world = World()
    world.do("b1", HostPattern("fraud", FRAUD, NESTED))
    other = FRAUD.replace("x = 4", "x = 5").replace("a:", "other:").replace("(a", "(other")
    world.do("b0", HostPattern("other", other, NESTED))
    assert {name: len(keys) for name, keys in world.standing().items()} == {"b0": 2, "b1": 1, "b2": 1}
    world.tell("01 02 03 04 05")
    assert world.problems() == []
    world.maintain()
    world.do("b1", SettlePatterns({}))
    world.maintain()
    world.maintain()
    assert {name: len(keys) for name, keys in world.standing().items()} == {"b0": 2, "b2": 1}
    world.do("b0", SettlePatterns({}))
    assert world.standing() == {}


def test_a_relay_passes_on_what_another_node_detects() -> None:
    world = World()
    world.do("b1", HostPattern("fraud", FRAUD, RELAY))
    world.tell("01 02 03 04")
    assert world.problems() == []
    assert len([one for one in world.network.trace if type(one).__name__ == "Delivered"]) == 1


def test_a_policy_measures_before_the_pattern_begins() -> None:
    world = World()
    world.do("b1", SettlePatterns({"fraud": FRAUD}, {"fraud": "bandwidth"}))
    assert world.standing() == {}
    world.tell("01 02 03 04 01 02 03 04")
    assert list(world.network.hosts["b1"].core.patterns.parts.measured) == ["fraud"]
    world.maintain()
    assert {name: len(keys) for name, keys in world.standing().items()} == {"b0": 1, "b1": 1}  # all came from b0
    world.tell("01 02 03 04")
    assert world.problems() == []
    assert len([one for one in world.network.trace if type(one).__name__ == "Delivered"]) == 1
    world.do("b1", SettlePatterns({"quiet": FRAUD}, {"quiet": "load"}))
    world.maintain()
    assert sum(map(len, world.standing().values())) == 4  # two events, three, all four, and the name at b1


def test_a_node_with_lower_bounds_refuses_a_part() -> None:
    world = World()
    parts = world.network.hosts["b2"].core.patterns.parts
    parts._check = lambda one: check(one.pattern, Bounds(seconds=60))
    world.do("b1", HostPattern("fraud", FRAUD, NESTED))
    world.network.problems.clear()
    assert list(world.standing()) == ["b1"]
    world.tell("01 02 03 04")
    assert len([one for one in world.network.trace if type(one).__name__ == "Delivered"]) == 1


@few(6)
@given(st.data())
def test_whatever_is_killed_nothing_is_missed_or_repeated(data: st.DataObject) -> None:
    world = World(data.draw(st.integers(0, 99)))
    network = world.network
    world.do("b1", HostPattern("fraud", FRAUD, data.draw(st.sampled_from([NESTED, RELAY]))))
    for act in data.draw(st.lists(st.sampled_from("pppppppppkcmt"), min_size=10, max_size=40)):
        match act:
            case "p":
                world.publish(data.draw(st.integers(0, 2)), data.draw(st.sampled_from([1, 1, 2, 2, 3, 4])))
            case "k":
                stage = data.draw(st.sampled_from(list(Stage)))
                node = f"b{data.draw(st.integers(0, 2))}"
                network.kill_later(node, data.draw(st.integers(0, 3)), stage, data.draw(st.integers(0, 3)), 0.2)
            case "c":
                a, b = data.draw(st.sampled_from(sorted(network.edges)))
                network.cut(a, b)
            case "m":
                network.hosts[f"b{data.draw(st.integers(0, 2))}"].maintain()
            case "t":
                network.hosts["b1"].submit(Tick())
        network.clock.run(network.clock.now + data.draw(st.sampled_from([0.0, 0.01, 0.3])))
    network.settle()
    world.maintain()
    assert world.problems() == []
