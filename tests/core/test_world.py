"""Durable brokers under random steps: crashes in the middle of writes, broken links, moving clients, failed nodes.

A slow model knows for each event which clients have subscribed when it is published. At the end every client has each
of its events once, in the order of the publisher, and no broker keeps anything that is not needed any more. A failing
example is printed as a program of named steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.core.world import Death, World
from tests.examples import few
from tests.routing.runs import parents, tree
from tools.samples import FILTERS, UNIVERSE

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.routing.strategies import STRATEGIES

deaths = st.sampled_from([Death.NONE] * 6 + list(Death)[1:])
"""mostly a broker survives a step"""
torn = st.integers(0, 3)
"""entries of a torn write that survive"""


def chosen(options: Callable[[Any], Sequence[Any]]) -> st.SearchStrategy[Any]:
    """Choose among the things that a machine has at the moment."""
    return st.runner().flatmap(lambda machine: st.sampled_from(options(machine)))


clients = chosen(lambda machine: sorted(machine.world.clients))
nodes = chosen(lambda machine: machine.alive())
links = chosen(lambda machine: machine.usable_links())


class BrokersMachine(RuleBasedStateMachine):
    """Brokers on a tree, two clients at each at the beginning, and a slow model of who must get what."""

    def __init__(self, strategy: str, replicas: int) -> None:
        super().__init__()
        self.strategy, self.replicas = STRATEGIES[strategy], replicas
        self.filters: dict[str, dict[str, Filter]] = {}
        """by client and id"""
        self.due: dict[str, list[tuple[str, int]]] = {}
        """events that each client must get, by publisher and number"""
        self.world: World

    @initialize(parents=parents, shape=st.sampled_from(["peer", "hierarchical"]), forgetful=st.booleans())
    def build(self, parents: Sequence[int], shape: str, *, forgetful: bool) -> None:
        links = tree(parents, "peer" if self.replicas else shape)
        self.world = World(self.strategy, links, forgetful=forgetful, replicas=self.replicas)
        self.filters = {name: {} for name in self.world.clients}
        self.due = {name: [] for name in self.world.clients}
        if self.strategy.advertisements is not None:
            for name in self.world.clients:
                self.world.change_filters(name, m.Advertise("all", parse("TRUE")))
        self.world.settle()

    # What there is

    def alive(self) -> list[str]:
        return sorted(self.world.brokers.keys() - self.world.dead)

    def usable_links(self) -> list[tuple[str, str]]:
        return [pair for pair in self.world.channels if not self.world.dead & set(pair)]

    def possible(self, method: str) -> list[tuple[str, ...]]:
        return [action.arguments for action in self.world.actions() if action.method == method]

    def connected(self) -> list[str]:
        return [name for name in sorted(self.world.clients) if self.world.has_session(name)]

    def leaves(self) -> list[str]:
        near = {node: [b for a, b in self.world.channels if a == node] for node in self.alive()}
        return [node for node, others in near.items() if len(others) == 1]

    # What clients do

    @rule(client=clients, id=st.sampled_from(["one", "two"]), filter=st.sampled_from(FILTERS))
    def subscribe(self, client: str, id: str, filter: Filter) -> None:
        """When all is quiet: so the model knows exactly which events are for the subscription."""
        self.world.settle()
        self.world.change_filters(client, m.Subscribe(id, filter))
        self.filters[client][id] = filter
        self.world.settle()

    @rule(client=clients, id=st.sampled_from(["one", "two"]))
    def unsubscribe(self, client: str, id: str) -> None:
        if id in self.filters[client]:
            self.world.settle()
            self.world.change_filters(client, m.Unsubscribe(id))
            del self.filters[client][id]
            self.world.settle()

    @rule(client=clients, events=st.lists(st.sampled_from(UNIVERSE), min_size=1, max_size=3), death=deaths, torn=torn)
    def publish(self, client: str, events: list[Event], death: Death, torn: int) -> None:
        first = self.world.clients[client].count + 1
        for number, event in enumerate(events, first):
            for name, filters in self.filters.items():
                if any(filter.matches(event) for filter in filters.values()):
                    self.due[name].append((client, number))
        self.world.publish(client, events, death, torn)

    @precondition(lambda self: self.connected())
    @rule(client=chosen(lambda machine: machine.connected()), death=deaths)
    def acknowledge(self, client: str, death: Death) -> None:
        self.world.acknowledge(client, death)

    @rule(client=clients, to=nodes, make_before_break=st.booleans(), cancel=st.booleans())
    def move(self, client: str, to: str, *, make_before_break: bool, cancel: bool) -> None:
        self.world.move(client, to, make_before_break=make_before_break, cancel=cancel)

    @precondition(lambda self: self.connected())
    @rule(client=chosen(lambda machine: machine.connected()))
    def detach(self, client: str) -> None:
        self.world.detach(client)

    @rule(client=clients)
    def reconnect(self, client: str) -> None:
        if not self.world.clients[client].connected:
            self.world.reconnect(client)

    # What happens to nodes and links

    @rule(node=nodes)
    def crash(self, node: str) -> None:
        self.world.crash(node)

    @rule(link=links)
    def break_link(self, link: tuple[str, str]) -> None:
        self.world.break_link(*link)

    @rule(node=nodes, death=deaths)
    def checkpoint(self, node: str, death: Death) -> None:
        self.world.checkpoint(node, death)

    @precondition(lambda self: self.replicas and self.connected())
    @rule(client=chosen(lambda machine: machine.connected()))
    def refresh_replica(self, client: str) -> None:
        self.world.refresh_replica(client)

    @precondition(lambda self: self.replicas and not self.world.dead and len(self.alive()) > 2)
    @rule(node=chosen(lambda machine: machine.leaves()), data=st.data())
    def fail_for_good(self, node: str, data: st.DataObject) -> None:
        """A leaf fails when its replica holder has all; its clients have their sessions taken over somewhere else."""
        (holder,) = [b for a, b in self.world.channels if a == node]
        refuge = data.draw(st.sampled_from([one for one in self.alive() if one != node]), label="refuge")
        self.world.fail_for_good(node, refuge, holder)

    # What happens by itself, in any order

    @precondition(lambda self: self.possible("deliver_message"))
    @rule(
        link=chosen(lambda machine: machine.possible("deliver_message")), death=deaths, twice=st.booleans(), torn=torn
    )
    def deliver_message(self, link: tuple[str, str], death: Death, *, twice: bool, torn: int) -> None:
        self.world.deliver_message(*link, death, twice=twice, torn=torn)

    @precondition(lambda self: self.possible("deliver_unnumbered"))
    @rule(link=chosen(lambda machine: machine.possible("deliver_unnumbered")))
    def deliver_unnumbered(self, link: tuple[str, str]) -> None:
        self.world.deliver_unnumbered(*link)

    @precondition(lambda self: self.possible("send_session"))
    @rule(which=chosen(lambda machine: machine.possible("send_session")), death=deaths, limit=st.integers(1, 3))
    def send_session(self, which: tuple[str, str], death: Death, limit: int) -> None:
        self.world.send_session(*which, death, limit=limit)

    @precondition(lambda self: self.possible("send_replica"))
    @rule(which=chosen(lambda machine: machine.possible("send_replica")), death=deaths)
    def send_replica(self, which: tuple[str, str, str], death: Death) -> None:
        self.world.send_replica(*which, death)

    @precondition(lambda self: self.possible("claim"))
    @rule(which=chosen(lambda machine: machine.possible("claim")), death=deaths)
    def claim(self, which: tuple[str], death: Death) -> None:
        self.world.claim(*which, death)

    # What must be so

    @invariant()
    def nothing_comes_twice_or_out_of_order(self) -> None:
        for name, client in self.world.clients.items() if hasattr(self, "world") else ():
            for publisher in {publisher for publisher, _ in client.got}:
                numbers = [number for other, number in client.got if other == publisher]
                assert numbers == sorted(set(numbers)), (name, publisher)
            assert set(client.got) <= set(self.due[name]), name

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        world.settle()
        for name, client in world.clients.items():
            assert sorted(client.got) == sorted(self.due[name]), name
            assert not client.unaccepted, name
        for name in world.clients:
            world.acknowledge(name)
        world.settle()
        for node in self.alive() if not world.dead else ():  # messages for a dead node wait for ever
            disk, broker = world.disks[node], world.brokers[node]
            assert not any(disk.rows.get(kind) for kind in ("outbox", "arrival", "departure", "parked", "replayed"))
            assert broker.low_water() == broker.position + 1 == len(disk.log) + 1


STRATEGY_NAMES = ("covering", "merging", "identity", "imperfect", "simple", "flooding", "covering+ads", "prefix")


def run(strategy: str, replicas: int, examples: settings) -> None:
    run_state_machine_as_test(lambda: BrokersMachine(strategy, replicas), settings=examples)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_every_event_arrives_once_and_in_order(strategy: str) -> None:
    run(strategy, 0, few(15))


@pytest.mark.parametrize("strategy", ["covering", "simple"])
def test_sessions_with_replicas_survive_a_failed_node(strategy: str) -> None:
    run(strategy, 1, few(20))


@pytest.mark.long
@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("strategy", [*STRATEGY_NAMES, "merging+ads"])
def test_every_event_arrives_in_long_runs(strategy: str, replicas: int) -> None:
    run(strategy, replicas, settings(few(400), stateful_step_count=120))


def test_an_event_in_the_log_is_remembered_until_it_comes_again() -> None:
    """A node is killed between log and rows, writes a checkpoint, and is killed again before its neighbour repeats."""
    run = BrokersMachine("identity", replicas=0)
    run.build([0, 2], "peer", forgetful=False)
    run.subscribe("b2.1", "one", parse("x BETWEEN 2 AND 3"))
    run.publish("b1.1", [UNIVERSE[14], UNIVERSE[15], UNIVERSE[0]], Death.NOTHING_WRITTEN, 0)
    run.move("b1.1", "b1", make_before_break=True, cancel=True)
    run.crash("b0")
    run.move("b2.1", "b0", make_before_break=False, cancel=False)
    run.deliver_message(("b1", "b0"), Death.ROWS_MISSING, twice=False, torn=0)
    run.deliver_message(("b0", "b2"), Death.ROWS_MISSING, twice=False, torn=0)
    run.claim(("b1.0",), Death.ROWS_MISSING)
    run.deliver_message(("b0", "b2"), Death.NONE, twice=False, torn=0)
    run.break_link(("b0", "b2"))
    run.checkpoint("b0", Death.NONE)
    run.deliver_message(("b2", "b0"), Death.NONE, twice=False, torn=0)
    run.crash("b0")
    run.teardown()


def test_filters_of_one_text_are_told_apart_on_disk() -> None:
    """Simple routing: a client moves, so that a filter comes under a new name before the old name goes."""
    run = BrokersMachine("simple", replicas=0)
    run.build([0, 1], "peer", forgetful=False)
    run.subscribe("b1.0", "one", parse("x = 0"))
    run.move("b1.0", "b2", make_before_break=False, cancel=False)
    run.subscribe("b0.0", "one", parse("x = 0"))
    run.crash("b0")
    run.publish("b0.0", [UNIVERSE[0]], Death.NONE, 0)
    run.teardown()
