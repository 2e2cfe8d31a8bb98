from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.tables.networks import (
    FILTERS,
    KINDS,
    AdvertisingBroker,
    AdvertisingNetwork,
    Make,
    Message,
    Tape,
    held,
    lengths,
    messages,
    oracle,
    random_tree,
    received,
    remembered,
    tapes,
)

from fieldfare.filters import EVERYTHING, Filter, parse
from fieldfare.filters.advertisement import Advertisement
from fieldfare.tables.advertised import AdvertisedTable, NeighbourUpdates, advertisers, as_filter
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.updates import TableUpdate


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


def joined(make: Make, neighbours: Sequence[Any], *, drop: bool = False) -> AdvertisedTable[Any]:
    advertisements = make(neighbours)
    return AdvertisedTable(advertisements, make(neighbours, towards=advertisers(advertisements)), drop=drop)


def between(low: int, high: int) -> Filter:
    return parse(f"x BETWEEN {low} AND {high}")


def sub(*filters: Filter) -> TableUpdate:
    return TableUpdate(added=filters)


def unsub(filter: Filter, *uncovered: Filter) -> TableUpdate:
    return TableUpdate(uncovered, (filter,))


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest) -> AdvertisedTable[Any]:
    return joined(KINDS[request.param], ["B1", "B2", "B3"])


@pytest.fixture(params=KINDS)
def dropping(request: pytest.FixtureRequest) -> AdvertisedTable[Any]:
    return joined(KINDS[request.param], ["B1", "B2", "B3"], drop=True)


# One table


def test_subscriptions_follow_advertisements(table: AdvertisedTable[Any]) -> None:
    a, s, t = between(0, 5), between(4, 8), between(6, 8)
    assert table.advertise(sub(a), "B1") == NeighbourUpdates({"B2": sub(a), "B3": sub(a)}, {})
    assert table.subscribe(sub(s), "ana") == {"B1": sub(s)}
    assert table.subscribe(sub(t), "ben") == {}
    assert table.advertise(sub(t), "B3") == NeighbourUpdates({"B1": sub(t), "B2": sub(t)}, {"B3": sub(s)})
    assert table.subscribe(unsub(s), "ana") == {"B1": unsub(s), "B3": unsub(s, t)}
    assert table.match({"x": 7}) == {"ben"}


def test_what_has_lost_its_way_is_taken_back(table: AdvertisedTable[Any]) -> None:
    a, s = between(0, 5), between(4, 8)
    table.advertise(sub(a), "B1")
    assert table.subscribe(sub(s), "ana") == {"B1": sub(s)}
    assert table.advertise(unsub(a), "B1") == NeighbourUpdates({"B2": unsub(a), "B3": unsub(a)}, {"B1": unsub(s)})
    assert table.advertise(sub(a), "B1").subscriptions == {"B1": sub(s)}


def test_what_has_lost_its_way_is_dropped(dropping: AdvertisedTable[Any]) -> None:
    table, a, s = dropping, between(0, 5), between(4, 8)
    assert table.subscribe(sub(s), "B2") == {}
    assert len(table.subscriptions) == 0  # it came late
    table.advertise(sub(a), "B1")
    assert table.subscribe(sub(s), "B2") == {"B1": sub(s)}
    assert table.subscribe(sub(s), "ana") == {}
    assert table.subscriptions.interfaces(s) == {"ana", "B2"}
    assert table.advertise(unsub(a), "B1") == NeighbourUpdates({"B2": unsub(a), "B3": unsub(a)}, {})
    assert table.subscriptions.interfaces(s) == {"ana"}  # a client waits
    assert table.advertise(sub(a), "B1").subscriptions == {"B1": sub(s)}


def test_an_advertisement_of_the_subscriber_alone_shows_no_way(dropping: AdvertisedTable[Any]) -> None:
    table, a = dropping, between(0, 5)
    table.advertise(sub(a), "B1")
    assert table.subscribe(sub(a), "B1") == {}
    assert len(table.subscriptions) == 0
    table.advertise(sub(a), "pub")
    assert table.subscribe(sub(a), "B1") == {}
    assert table.subscriptions.interfaces(a) == {"B1"}
    assert table.advertise(unsub(a), "pub") == NeighbourUpdates(
        {"B1": unsub(a)}, {}
    )  # the others still hear of it, from B1
    assert len(table.subscriptions) == 0


def test_only_what_is_advertised_is_published(table: AdvertisedTable[Any]) -> None:
    table.advertise(sub(between(0, 5)), "pub")
    assert table.may_publish({"x": 3}, "pub")
    assert not table.may_publish({"x": 6}, "pub")
    assert not table.may_publish({"x": 3}, "sub")


def test_a_smaller_advertisement_in_its_place(table: AdvertisedTable[Any]) -> None:
    a, b, s, t = between(0, 5), between(0, 2), between(1, 3), between(4, 4)
    table.advertise(sub(a), "B1")
    table.subscribe(sub(s, t), "ana")
    told = table.advertise(unsub(a, b), "B1")
    assert told.subscriptions == {"B1": unsub(t)}
    assert told.advertisements == {"B2": unsub(a, b), "B3": unsub(a, b)}


TABLES = st.lists(
    st.tuples(st.booleans(), st.sampled_from(FILTERS), st.booleans(), st.integers(0, 4), st.sampled_from(FILTERS)),
    max_size=30,
)


@pytest.mark.parametrize("name", KINDS)
@few(20)
@given(changes=TABLES)
def test_neighbours_know_what_is_exported(name: str, changes: list[tuple[bool, Filter, bool, int, Filter]]) -> None:
    """After any update each neighbour's picture is what the definition exports."""
    table = joined(KINDS[name], range(3))
    ads: dict[int, list[Filter]] = {j: [] for j in range(3)}
    subs: dict[int, list[Filter]] = {j: [] for j in range(3)}
    for advertises, filter, replaces, sender, other in changes:
        update = TableUpdate((filter,), (other,)) if replaces else TableUpdate((), (filter,))
        told = table.advertise(update, sender) if advertises else NeighbourUpdates({}, table.subscribe(update, sender))
        assert sender not in told.advertisements
        for picture, updates in ((ads, told.advertisements), (subs, told.subscriptions)):
            for j, message in updates.items():
                assert message != TableUpdate()
                picture[j] = received(picture[j], message)
        for j in range(3):
            assert set(ads[j]) == set(oracle(table.advertisements).exported(j))
            assert set(subs[j]) == set(oracle(table.subscriptions).exported(j))


# Networks


class Advertising(AdvertisingBroker):
    """A broker that is two tables; a client's filters are interfaces of their own, lest one hide another."""

    def __init__(self, table: AdvertisedTable[Any]) -> None:
        self.table = table
        self.subscriptions, self.advertisements, self.drop = table.subscriptions, table.advertisements, table.drop

    def subscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(NeighbourUpdates({}, self.table.subscribe(sub(filter), (client, filter))))

    def unsubscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(NeighbourUpdates({}, self.table.subscribe(unsub(filter), (client, filter))))

    def advertise(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(self.table.advertise(sub(filter), (client, filter)))

    def unadvertise(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]:
        return messages(self.table.advertise(unsub(filter), (client, filter)))

    def receive(self, message: Message, neighbour: int) -> Mapping[Any, Message]:
        if message.kind == "advertise":
            return messages(self.table.advertise(message.update, neighbour))
        return messages(NeighbourUpdates({}, self.table.subscribe(message.update, neighbour)))

    def match(self, event: Mapping[str, object]) -> set[Any]:
        return {one[0] if isinstance(one, tuple) else one for one in self.table.match(event)}

    def may_publish(self, event: Mapping[str, object], client: Hashable, filter: Filter) -> bool:
        return self.table.may_publish(event, (client, filter))


def network_of(tree: Mapping[int, Sequence[int]], make: Make, *, drop: bool) -> AdvertisingNetwork:
    return AdvertisingNetwork(tree, lambda _, neighbours: Advertising(joined(make, neighbours, drop=drop)))


@pytest.mark.parametrize(("name", "drop"), [*((name, False) for name in KINDS), ("naive", True), ("poset", True)])
@few(12)
@given(tape=tapes, steps=lengths)
def test_networks_deliver_exactly(name: str, drop: bool, tape: Tape, steps: int) -> None:
    network = network_of(random_tree(tape, 2, 5), KINDS[name], drop=drop)
    brokers = len(network.tree)
    pool = tape.some(FILTERS, 2, 8)
    ended = False
    for _ in range(steps):
        what = tape.below(12)
        if what < 3:
            network.toggle(tape.of("ab"), tape.below(brokers), tape.of(pool))
        elif what < 4 and network.wanted:
            network.toggle(*tape.of(sorted(network.wanted, key=str)))
        elif what < 7:
            one = (tape.of("pq"), tape.below(brokers), tape.of(pool))
            if what == 6 and network.promised:
                one = tape.of(sorted(network.promised, key=str))
            if one in network.promised:
                ended = True
            if one in network.promised or not (drop and ended):  # where we drop, none must come at once: see below
                network.toggle_advertisement(*one)
        elif what < 11:
            network.step(tape)
        else:
            network.drain(tape)
            network.check_rest()
            ended = False
        network.publish_promised(tape)
        network.check_links()
    network.drain(tape)
    network.check_links()
    network.check_rest()
    network.check_deliveries()
    network.check_exact(tape)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_a_subscription_crosses_the_end_of_its_advertisement(name: str, drop: bool) -> None:
    network, a, tape = network_of({0: [1], 1: [0]}, KINDS[name], drop=drop), between(0, 2), Tape(0)
    network.toggle_advertisement("p", 0, a)
    network.drain(tape)
    network.toggle("a", 1, a)
    network.toggle_advertisement("p", 0, a)
    network.drain(tape)
    assert len(network.brokers[0].subscriptions) == 0
    network.check_rest()


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_a_subscription_crosses_the_end_and_the_return_of_its_advertisement(name: str, drop: bool) -> None:
    """It is accepted, and its subscriber leaves while we know only of the end: where we drop, nobody takes it back."""
    network, a, tape = network_of({0: [1], 1: [0]}, KINDS[name], drop=drop), between(0, 2), Tape(0)
    network.toggle_advertisement("p", 0, a)
    network.drain(tape)
    network.toggle("a", 1, a)
    network.toggle_advertisement("p", 0, a)
    network.toggle_advertisement("p", 0, a)
    network.handle(network.links[1, 0].popleft(), 0, 1)  # the subscription arrives after both
    assert held(network.brokers[0].subscriptions, 1) == [a]
    network.handle(network.links[0, 1].popleft(), 1, 0)  # the end arrives
    network.toggle("a", 1, a)
    network.drain(tape)
    assert held(network.brokers[0].subscriptions, 1) == ([a] if drop else [])


@pytest.mark.parametrize("name", KINDS)
@few(20)
@given(changes=st.lists(st.tuples(st.booleans(), st.sampled_from(FILTERS), st.integers(0, 4)), max_size=12))
def test_who_advertises_everything_is_told_everything(name: str, changes: list[tuple[bool, Filter, int]]) -> None:
    """With a virtual advertisement at every neighbour it is as without advertisements."""
    table = joined(KINDS[name], range(3))
    for j in range(3):
        table.advertise(sub(EVERYTHING), j)
    plain = NaiveTable(range(3))
    for adds, filter, sender in changes:
        table.subscribe(sub(filter) if adds else unsub(filter), sender)
        (plain.add if adds else plain.remove)(filter, sender)
        for j in range(3):
            assert set(oracle(table.subscriptions).exported(j)) == set(plain.exported(j))


# Promises as filters

PARTS = [["a = 1", "a > 1", "EXISTS a"], ["b = 'x'", "b LIKE 'x%'"], ["c.d = 1"]]
promises = st.tuples(*(st.sampled_from([EVERYTHING, *map(parse, part)]) for part in PARTS)).map(
    lambda parts: parts[0] & parts[1] & parts[2]
)
WORLD: list[dict[str, object]] = [
    {name: value for name, value in zip("abce", values, strict=True) if value is not None}
    for values in itertools.product([None, 1, 2], [None, "x", "xy"], [None, {"d": 1}, {"e": 1}], [None, 0])
]


@given(promises, promises)
def test_a_filter_for_a_promise(first: Filter, second: Filter) -> None:
    promise = Advertisement(first)
    for event in WORLD:
        assert as_filter(promise).matches(event) or not promise.determines(event)
    assert as_filter(promise).overlaps(second) or not promise.intersects(second)
