from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.tables.networks import (
    EVENTS,
    FILTERS,
    AdvertisingBroker,
    AdvertisingNetwork,
    Broker,
    Message,
    Network,
    Pool,
    Tape,
    lengths,
    messages,
    numbers,
    pools,
    random_tree,
    received,
    remembered,
    some_numbers,
    tapes,
)

from fieldfare.filters import EVERYTHING, NOTHING, Filter, parse
from fieldfare.tables.advertised import Told
from fieldfare.tables.configurations import CONFIGURATIONS, LOCAL, RendezvousTable, SplitTable, rendezvous
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.updates import Update

PEERS = [name for name in CONFIGURATIONS if name not in ("hierarchical", "rendezvous")]


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


def between(low: int, high: int) -> Filter:
    return parse(f"x BETWEEN {low} AND {high}")


def make(name: str, neighbours: int) -> SplitTable[Any]:
    """A configuration in which all neighbours are told of all filters."""
    table = CONFIGURATIONS[name](range(neighbours))
    if isinstance(table, RendezvousTable):
        for neighbour in range(neighbours):
            table.advertise(Update(added=(EVERYTHING,)), neighbour)
    return table


# Against the definitions


class Configuration(RuleBasedStateMachine):
    """Any changes by clients and neighbours: same deliveries and same exports as of one table without structure."""

    name: str

    @initialize(neighbours=st.integers(0, 3), pool=pools)
    def start(self, neighbours: int, pool: Pool) -> None:
        self.pool = pool
        if self.name == "hierarchical":
            neighbours = min(neighbours, 1)
        self.table = make(self.name, neighbours)
        self.naive: NaiveTable[Any] = NaiveTable(range(neighbours))
        self.mirrors: dict[int, list[Filter]] = {j: [] for j in range(neighbours)}

    def tell(self, told: Mapping[int, Update]) -> None:
        for neighbour, update in told.items():
            assert update != Update()
            self.mirrors[neighbour] = received(self.mirrors[neighbour], update)

    @rule(client=st.sampled_from("ab"), some=some_numbers)
    def client_add(self, client: str, some: list[int]) -> None:
        for filter in self.pool.update(some, ()).added:
            self.tell(self.table.client_add(filter, client))
            self.naive.add(filter, (client, filter))  # the definition knows nothing of clients with several filters

    @rule(client=st.sampled_from("ab"), number=numbers)
    def client_change(self, client: str, number: int) -> None:
        filter = self.pool[number]
        if (client, filter) in self.naive.interfaces(filter):
            self.tell(self.table.client_remove(filter, client))
            self.naive.remove(filter, (client, filter))
        else:
            assert self.table.client_remove(filter, client) == {}
            self.client_add(client, [number])

    @precondition(lambda self: len(self.naive) > 2)
    @rule(client=st.sampled_from("ab"))
    def client_leave(self, client: str) -> None:
        self.tell(self.table.client_leave(client))
        for filter in self.naive.filters():
            self.naive.remove(filter, (client, filter))

    @rule(added=some_numbers, removed=some_numbers, neighbour=st.integers(0, 3))
    def neighbour_update(self, added: list[int], removed: list[int], neighbour: int) -> None:
        update = self.pool.update(added, removed)
        if neighbour in self.mirrors or self.name == "hierarchical":  # there the others are slaves
            self.tell(self.table.update(update, neighbour))
            for filter in update.removed:
                self.naive.remove(filter, neighbour)
            for filter in update.added:
                self.naive.add(filter, neighbour)

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "table"):
            return
        for neighbour, known in self.mirrors.items():
            assert set(known) == set(self.naive.exported(neighbour))
        for event in EVENTS:
            wanted = self.naive.match(event)
            found = self.table.match(event)
            assert found.clients == {one[0] for one in wanted if isinstance(one, tuple)}
            assert found.neighbours == {one for one in wanted if isinstance(one, int)} | self.table.always


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_same_as_the_definitions(name: str) -> None:
    machine = type("Configuration", (Configuration,), {"name": name})
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=20))


# By hand


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_clients_need_not_care_about_covering(name: str) -> None:
    table, f, g = make(name, 1), between(0, 10), between(2, 8)
    assert table.client_add(g, "ana") == {0: Update((g,))}
    assert table.client_add(f, "ana") == {0: Update((f,))}
    assert table.client_add(f, "ana") == table.client_remove(between(3, 4), "ana") == {}
    assert table.client_remove(f, "ana") == {0: Update((g,), (f,))}
    assert table.match({"x": 5}).clients == {"ana"}
    assert table.client_leave("ana") == {0: Update((), (g,))}
    assert table.match({"x": 5}).clients == set()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_neighbours_see_only_roots(name: str) -> None:
    table, f, g = make(name, 1), between(0, 10), between(2, 8)
    table.client_add(f, "ana")
    assert table.client_add(g, "ben") == table.client_remove(g, "ben") == {}
    assert [*table.external.filters()] == [f]
    assert table.external.interfaces(f) == {LOCAL}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_filter_for_nothing_changes_nothing(name: str) -> None:
    table = make(name, 1)
    with pytest.raises(ValueError, match="no event can match"):
        table.client_add(NOTHING, "ana")
    assert table.client_leave("ana") == {}


def test_clients_are_asked_only_about_what_concerns_them() -> None:
    table = make("pf+fp", 1)
    table.client_add(between(0, 2), "ana")
    table.match({"x": 3})
    assert table.clients.table.tests.match == 0
    table.match({"x": 1})
    assert table.clients.table.tests.match == 1


def test_one_master() -> None:
    with pytest.raises(ValueError, match="one master"):
        CONFIGURATIONS["hierarchical"](["a", "b"])


# Networks


class Split(Broker):
    """A broker that is a split table."""

    def __init__(self, table: SplitTable[Any]) -> None:
        self.table = table
        self.subscriptions = table.external

    def subscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Update]:
        return self.table.client_add(filter, client)

    def unsubscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Update]:
        return self.table.client_remove(filter, client)

    def receive(self, message: Update, neighbour: int) -> Mapping[Any, Update]:
        return self.table.update(message, neighbour)

    def match(self, event: Mapping[str, object]) -> set[Any]:
        found = self.table.match(event)
        return found.neighbours | found.clients


class Hierarchy(Network[Split]):
    """Every event goes up to the top, which is broker 0."""

    def targets(self, event: Mapping[str, object], wanted: set[int]) -> set[int]:
        return wanted | {0}


def change(network: Network[Any], pool: list[Filter], tape: Tape) -> None:
    what = tape.below(10)
    if what < 5:
        network.toggle(tape.of("ab"), tape.below(len(network.tree)), tape.of(pool))
    elif what < 9:
        network.step(tape)
    else:
        network.settle(tape)


@pytest.mark.parametrize("name", [*PEERS, "hierarchical", "mixed"])
@given(tape=tapes, steps=lengths)
def test_networks_deliver_exactly(name: str, tape: Tape, steps: int) -> None:
    tree = random_tree(tape)
    network: Network[Split]
    if name == "hierarchical":
        network = Hierarchy(tree, lambda i, neighbours: Split(CONFIGURATIONS[name](j for j in neighbours if j < i)))
    else:
        kinds = [tape.of(PEERS) if name == "mixed" else name for _ in tree]
        network = Network(tree, lambda i, neighbours: Split(CONFIGURATIONS[kinds[i]](neighbours)))
    pool = tape.some(FILTERS)
    for _ in range(steps):
        change(network, pool, tape)
        network.publish(tape.below(len(tree)), {"x": tape.below(5), "y": tape.below(2)})
        network.check_links()
    network.settle(tape)
    network.check_deliveries()
    network.check_exact(tape)


class Meeting(AdvertisingBroker):
    """A broker of a network with rendezvous; events go upstream unless publishers advertise."""

    drop = False

    def __init__(self, table: RendezvousTable[Any], *, upstream: bool) -> None:
        self.table = table
        self.subscriptions, self.advertisements = table.external, table.advertised.advertisements
        self.upstream = upstream

    def subscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(Told({}, self.table.client_add(filter, client)))

    def unsubscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(Told({}, self.table.client_remove(filter, client)))

    def advertise(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(self.table.client_advertise(filter, client))

    def unadvertise(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(self.table.client_unadvertise(filter, client))

    def receive(self, message: Message, neighbour: int) -> Mapping[Any, Message]:
        if message.kind == "advertise":
            return messages(self.table.advertise(message.update, neighbour))
        return messages(Told({}, self.table.update(message.update, neighbour)))

    def match(self, event: Mapping[str, object]) -> set[Any]:
        found = self.table.match(event)
        return found.clients | found.neighbours | (self.table.upstream(event) if self.upstream else set())

    def may_publish(self, event: Mapping[str, object], client: Hashable, filter: Filter) -> bool:
        return self.table.may_publish(event, client)


TYPES = [parse("y = 0"), parse("y = 1")]


class Rendezvous(AdvertisingNetwork):
    """The events of each type meet at one broker."""

    def __init__(self, tape: Tape, *, upstream: bool) -> None:
        super().__init__(random_tree(tape), lambda _, neighbours: Meeting(rendezvous(neighbours), upstream=upstream))
        self.upstream = upstream
        self.hosts = [tape.below(len(self.tree)) for _ in TYPES]
        for host, type in zip(self.hosts, TYPES, strict=True):
            broker = self.brokers[host]
            assert isinstance(broker, Meeting)
            self.send(host, messages(broker.table.host(type)))
        self.settle(tape)

    def targets(self, event: Mapping[str, object], wanted: set[int]) -> set[int]:
        y = event["y"]
        assert isinstance(y, int)
        return wanted | {self.hosts[y]} if self.upstream else wanted


@given(tape=tapes, steps=lengths)
def test_events_meet_subscriptions_at_the_rendezvous(tape: Tape, steps: int) -> None:
    """Nobody advertises but the rendezvous; subscriptions and events go there."""
    network = Rendezvous(tape, upstream=True)
    pool = tape.some(FILTERS)
    for _ in range(steps):
        change(network, pool, tape)
        network.publish(tape.below(len(network.tree)), {"x": tape.below(5), "y": tape.below(2)})
        network.check_links()
    network.settle(tape)
    Network.check_deliveries(network)
    Network.check_exact(network, tape)
    for host, type in zip(network.hosts, TYPES, strict=True):
        known = network.brokers[host].subscriptions
        for _, _, filter in network.wanted:
            assert known.covering(filter) or not filter.overlaps(type)


@given(tape=tapes, steps=lengths)
def test_events_need_not_pass_the_rendezvous(tape: Tape, steps: int) -> None:
    """Publishers advertise as well, and events go only where they are wanted."""
    network = Rendezvous(tape, upstream=False)
    pool = tape.some(FILTERS)
    for _ in range(steps):
        change(network, pool, tape)
        if tape.below(3) == 0:
            network.toggle_advertisement(tape.of("pq"), tape.below(len(network.tree)), tape.of(pool))
        network.publish_promised(tape)
        network.check_links()
    network.settle(tape)
    network.check_rest()
    network.check_deliveries()
    network.check_exact(tape)


def test_a_rendezvous_moves() -> None:
    """What it drew towards it is taken back."""
    table, f, g = rendezvous(["B1", "B2"]), between(0, 1), between(0, 5)
    assert table.host(g) == Told({"B1": Update((g,)), "B2": Update((g,))}, {})
    assert table.host(f) == table.unhost(f) == Told({}, {})
    assert table.client_add(f, "ana") == {}
    assert table.unhost(g) == Told({"B1": Update((), (g,)), "B2": Update((), (g,))}, {})
    assert table.advertise(Update((g,)), "B1") == Told({"B2": Update((g,))}, {"B1": Update((f,))})
    assert table.upstream({"x": 1}) == {"B1"}
    assert not table.may_publish({"x": 1}, "ana")
