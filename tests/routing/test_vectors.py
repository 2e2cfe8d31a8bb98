"""The book's examples of one broker B1 with neighbours B2 and B3, and possibly S."""

from __future__ import annotations

from collections.abc import Iterable

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, IDENTITY, SIMPLE, Strategy

F, G = parse("x < 10"), parse("x < 5")
LARGER = parse("x < 20")


def broker(strategy: Strategy, *neighbours: str, knows: Iterable[tuple[Filter, str]] = ()) -> Broker:
    made = Broker("B1", strategy)
    for neighbour in neighbours:
        made.receive(m.Connect(), neighbour, 0.0)
    for filter, sender in knows:
        made.receive(m.FilterUpdate((filter,)), sender, 0.0)
    return made


def tells(sends: list[m.Send]) -> dict[str, tuple[set[Filter], set[Filter]]]:
    found = {}
    for send in sends:
        assert isinstance(send.message, m.FilterUpdate)
        found[send.to] = (set(send.message.added), set(send.message.removed))
    assert len(found) == len(sends), "one message for each neighbour"
    return found


def test_forwarding_an_event() -> None:
    b1 = broker(SIMPLE, "B2", "B3", knows=[(F, "B2")])
    b1.receive(m.Subscribe("s", F), "X2", 0.0)
    sends = b1.receive(m.Publish(Event({"x": 1})), "X1", 0.0)
    assert [(send.to, type(send.message)) for send in sends] == [("X2", m.Deliver), ("B2", m.Forward)]


def test_a_publisher_gets_its_own_event_if_it_asked() -> None:
    b1 = broker(COVERING)
    b1.receive(m.Subscribe("s", F), "X1", 0.0)
    assert [send.to for send in b1.receive(m.Publish(Event({"x": 1})), "X1", 0.0)] == ["X1"]


def test_simple_tells_everybody_of_everything() -> None:
    b1 = broker(SIMPLE, "B2", "B3")
    first = b1.receive(m.Subscribe("1", F), "X1", 0.0)
    again = b1.receive(m.Subscribe("2", F), "X1", 0.0)
    assert [send.to for send in first] == [send.to for send in again] == ["B2", "B3"]


def test_identity_from_a_neighbour() -> None:
    b1 = broker(IDENTITY, "S", "B2", "B3")
    assert tells(b1.receive(m.FilterUpdate((F,)), "S", 0.0)) == {"B2": ({F}, set()), "B3": ({F}, set())}


def test_identity_with_the_same_filter_from_elsewhere() -> None:
    b1 = broker(IDENTITY, "B2", "B3", knows=[(F, "B3")])
    assert tells(b1.receive(m.Subscribe("s", F), "S", 0.0)) == {"B3": ({F}, set())}


def test_covering_1_tells_only_the_neighbour_that_the_larger_came_from() -> None:
    b1 = broker(COVERING, "B2", "B3", knows=[(LARGER, "B3")])
    assert tells(b1.receive(m.Subscribe("s", F), "S", 0.0)) == {"B3": ({F}, set())}


def test_covering_2_replaces_the_smaller() -> None:
    b1 = broker(COVERING, "S", "B2", "B3", knows=[(G, "S")])
    assert tells(b1.receive(m.FilterUpdate((F,)), "S", 0.0)) == {"B2": ({F}, set()), "B3": ({F}, set())}
    assert b1.entries == 1


def test_covering_3_takes_back() -> None:
    b1 = broker(COVERING, "S", "B2", "B3", knows=[(F, "S")])
    assert tells(b1.receive(m.FilterUpdate(removed=(F,)), "S", 0.0)) == {"B2": (set(), {F}), "B3": (set(), {F})}
    assert b1.entries == 0


def test_covering_4_takes_back_where_it_was_told() -> None:
    b1 = broker(COVERING, "B2", "B3", knows=[(LARGER, "B3")])
    b1.receive(m.Subscribe("s", F), "S", 0.0)
    assert tells(b1.receive(m.Unsubscribe("s"), "S", 0.0)) == {"B3": (set(), {F})}


def test_covering_5_says_in_the_same_message_what_it_uncovers() -> None:
    b1 = broker(COVERING, "B2", "B3", knows=[(G, "B2")])
    b1.receive(m.Subscribe("s", F), "S", 0.0)
    assert tells(b1.receive(m.Unsubscribe("s"), "S", 0.0)) == {"B2": (set(), {F}), "B3": ({G}, {F})}


def test_covering_6_uncovered_by_two() -> None:
    b1 = broker(COVERING, "S", "B2", "B3", knows=[(G, "B2"), (F, "S")])
    assert tells(b1.receive(m.FilterUpdate((G,), (F,)), "S", 0.0)) == {"B2": ({G}, {F}), "B3": ({G}, {F})}


def test_covering_is_identity_where_nothing_covers() -> None:
    apart = [parse(f"x = {i}") for i in range(5)]
    one, other = broker(COVERING, "B2", "B3"), broker(IDENTITY, "B2", "B3")
    for i, filter in enumerate([*apart, *apart]):
        sender = ("B2", "B3")[i % 2]
        assert tells(one.receive(m.FilterUpdate((filter,)), sender, 0.0)) == tells(
            other.receive(m.FilterUpdate((filter,)), sender, 0.0)
        )


def test_parent_gets_every_event_and_children_are_told_nothing() -> None:
    b1 = Broker("B1")
    b1.receive(m.Connect(m.Role.PARENT), "P", 0.0)
    b1.receive(m.Connect(m.Role.CHILD), "C", 0.0)
    assert tells(b1.receive(m.Subscribe("s", F), "X", 0.0)) == {"P": ({F}, set())}
    assert [send.to for send in b1.receive(m.Publish(Event({"x": 99})), "X", 0.0)] == ["P"]
    assert b1.receive(m.Forward(Event({"x": 99}), "Z", 1), "P", 0.0) == []
