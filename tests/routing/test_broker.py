from __future__ import annotations

import pytest

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.routes import ProtocolError
from fieldfare.routing.strategies import (
    BOOK_MERGING,
    COVERING,
    FLOODING,
    RENDEZVOUS,
    SOURCES,
    STRATEGIES,
    Strategy,
    cyclic,
    with_advertisements,
)  # fmt: skip

CHEAP = parse("price < 10")


@pytest.fixture
def broker() -> Broker:
    made = Broker("oslo")
    made.receive(m.Connect(), "rome", 0.0)
    return made


def delivered(sends: list[m.Send]) -> list[tuple[str, tuple[str, ...]]]:
    return [(send.to, send.message.subscriptions) for send in sends if isinstance(send.message, m.Deliver)]


def test_a_delivery_names_all_subscriptions_that_match(broker: Broker) -> None:
    broker.receive(m.Subscribe("cheap", CHEAP), "ana", 0.0)
    broker.receive(m.Subscribe("any", parse("price > 0")), "ana", 0.0)
    broker.receive(m.Subscribe("dear", parse("price > 100")), "ana", 0.0)
    [(client, ids)] = delivered(broker.receive(m.Publish(Event({"price": 5})), "bob", 0.0))
    assert (client, set(ids)) == ("ana", {"cheap", "any"})


def test_a_subscription_changes_in_place(broker: Broker) -> None:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    [told] = broker.receive(m.Subscribe("s", parse("price > 50")), "ana", 0.0)
    assert told == m.Send("rome", m.FilterUpdate((parse("price > 50"),), (CHEAP,)))
    assert not delivered(broker.receive(m.Publish(Event({"price": 5})), "bob", 0.0))
    assert delivered(broker.receive(m.Publish(Event({"price": 60})), "bob", 0.0))


def test_the_same_subscription_again_says_nothing(broker: Broker) -> None:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    assert broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0) == []
    assert broker.receive(m.Subscribe("t", CHEAP), "bob", 0.0) == []
    assert broker.receive(m.Unsubscribe("s"), "ana", 0.0) == []
    assert broker.receive(m.Unsubscribe("nothing"), "ana", 0.0) == []
    assert broker.receive(m.Unsubscribe("t"), "bob", 0.0) == [m.Send("rome", m.FilterUpdate((), (CHEAP,)))]


def test_who_leaves_is_forgotten(broker: Broker) -> None:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    assert broker.receive(m.Leave(), "ana", 0.0) == [m.Send("rome", m.FilterUpdate((), (CHEAP,)))]
    assert broker.receive(m.Publish(Event({"price": 5})), "bob", 0.0) == []
    assert broker.receive(m.Leave(), "nobody", 0.0) == []


def test_a_filter_that_nothing_matches_is_refused(broker: Broker) -> None:
    never = CHEAP & parse("price > 20")
    assert broker.receive(m.Subscribe("s", never), "ana", 0.0) == [
        m.Send("ana", m.Refuse("no event can match this filter", "s"))
    ]


def test_an_event_said_twice_is_told_once(broker: Broker) -> None:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    said = m.Publish(Event({"price": 5}), sequence=7)
    assert delivered(broker.receive(said, "bob", 0.0))
    assert not delivered(broker.receive(said, "bob", 1.0))
    assert not broker.receive(m.Forward(Event({"price": 5}), "bob", 7), "rome", 2.0)


def test_what_a_broker_counts_in_a_new_life_is_new() -> None:
    other = Broker("rome")
    other.receive(m.Connect(), "oslo", 0.0)
    other.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    for life in (1, 2):
        oslo = Broker("oslo", life=life)
        oslo.receive(m.Connect(), "rome", 0.0)
        oslo.receive(m.FilterUpdate((CHEAP,)), "rome", 0.0)
        [send] = oslo.receive(m.Publish(Event({"price": 5})), "bob", 0.0)
        assert delivered(other.receive(send.message, "oslo", 0.0))


def test_an_event_that_was_not_advertised_is_refused() -> None:
    broker = Broker("oslo", with_advertisements(COVERING))
    broker.receive(m.Subscribe("s", parse("EXISTS price")), "ana", 0.0)
    [refused] = broker.receive(m.Publish(Event({"price": 5})), "bob", 0.0)
    assert refused.to == "bob"
    assert isinstance(refused.message, m.Refuse)
    broker.receive(m.Advertise("a", CHEAP), "bob", 0.0)
    assert delivered(broker.receive(m.Publish(Event({"price": 5})), "bob", 0.0))


@pytest.mark.parametrize(
    ("message", "sender", "what"),
    [
        (m.FilterUpdate((CHEAP,)), "paris", "no neighbour"),
        (m.Forward(Event({"price": 1}), "x", 1), "ana", "no neighbour"),
        (m.Disconnect(), "paris", "no neighbour"),
        (m.Subscribe("s", CHEAP), "rome", "no client"),
        (m.Connect(), "ana", "cannot be called"),
        (m.Connect(), "oslo", "cannot be called"),
        (m.Refuse("no"), "rome", "no message to a broker"),
        (m.LinkUpdate("rome", (0, 1), ()), "rome", "means nothing to this strategy"),
    ],
)
def test_a_message_out_of_place_changes_nothing(broker: Broker, message: m.Message, sender: str, what: str) -> None:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    before = broker.snapshot(), broker.entries, broker.neighbours
    with pytest.raises(ProtocolError, match=what):
        broker.receive(message, sender, 0.0)
    assert before == (broker.snapshot(), broker.entries, broker.neighbours)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda strategy: strategy.name)
def test_a_restored_broker_does_the_same(strategy: Strategy) -> None:
    first = Broker("oslo", strategy)
    first.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    first.receive(m.Subscribe("t", parse("price < 20 AND name LIKE 'a%'")), "bob", 0.0)
    first.receive(m.Advertise("a", parse("EXISTS price")), "bob", 0.0)
    first.receive(m.Publish(Event({"price": 50})), "bob", 0.0)
    second = Broker("oslo", strategy)
    second.restore(first.snapshot())
    assert second.snapshot() == first.snapshot()
    for message, sender in [
        (m.Connect(), "rome"),
        (m.Publish(Event({"price": 5, "name": "abc"})), "bob"),
        (m.Unsubscribe("s"), "ana"),
        (m.Unsubscribe("t"), "bob"),
    ]:
        assert second.receive(message, sender, 1.0) == first.receive(message, sender, 1.0)
    with pytest.raises(ValueError, match="only a broker without clients"):
        second.restore(first.snapshot())
    with pytest.raises(ValueError, match="no snapshot"):
        Broker("oslo", strategy).restore(first.snapshot()[:-1])


def test_a_restored_broker_knows_which_events_were_here(broker: Broker) -> None:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0)
    assert delivered(broker.receive(m.Forward(Event({"price": 5}), "bob", 7), "rome", 0.0))
    again = Broker("oslo")
    again.restore(broker.snapshot())
    again.receive(m.Connect(), "rome", 1.0)
    assert not delivered(again.receive(m.Forward(Event({"price": 5}), "bob", 7), "rome", 1.0))


def test_a_restored_broker_remembers_as_long_as_it_is_told(broker: Broker) -> None:
    again = Broker("oslo", remember=5.0)
    again.restore(broker.snapshot())
    assert delivered_twice(again, after=20.0)
    assert not delivered_twice(again, after=4.0)


def delivered_twice(broker: Broker, after: float) -> bool:
    broker.receive(m.Subscribe("s", CHEAP), "ana", 100 * after)
    said = m.Publish(Event({"price": 5}), sequence=int(after))
    return all(delivered(broker.receive(said, "bob", 100 * after + passed)) for passed in (0.0, after))


@pytest.mark.parametrize("strategy", [COVERING, BOOK_MERGING], ids=lambda strategy: strategy.name)
def test_tell_all_replaces_what_was_said(strategy: Strategy) -> None:
    broker = Broker("oslo", strategy)
    broker.receive(m.Connect(), "rome", 0.0)
    broker.receive(m.FilterUpdate((parse("x = 1"), parse("x = 2"))), "rome", 0.0)
    broker.receive(m.FilterUpdate((parse("x = 3"), parse("x = 2")), all=True), "rome", 0.0)
    wanted = [x for x in range(5) if broker.receive(m.Publish(Event({"x": x})), "bob", 0.0)]
    assert wanted == [2, 3]


def test_only_what_bears_no_cycles_can_be_given_a_tree() -> None:
    for strategy in (SOURCES, RENDEZVOUS, cyclic(COVERING)):
        with pytest.raises(ValueError, match="its own way"):
            cyclic(strategy)


def test_flooding_sends_everything_everywhere_but_back() -> None:
    broker = Broker("oslo", FLOODING)
    for neighbour in ("rome", "bern"):
        broker.receive(m.Connect(), neighbour, 0.0)
    assert broker.receive(m.Subscribe("s", CHEAP), "ana", 0.0) == []
    sends = broker.receive(m.Forward(Event({"price": 5}), "bob", 1), "rome", 0.0)
    assert [send.to for send in sends] == ["ana", "bern"]


def test_a_link_that_comes_up_again_starts_anew(broker: Broker) -> None:
    broker.receive(m.FilterUpdate((CHEAP,)), "rome", 0.0)
    broker.receive(m.Connect(), "rome", 1.0)
    assert broker.entries == 0


def test_what_a_publisher_says_after_it_left_and_came_back_is_new() -> None:
    broker = Broker("oslo")
    broker.receive(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
    assert broker.receive(m.Publish(Event({"x": 1})), "bob", 1.0)
    broker.receive(m.Leave(), "bob", 2.0)
    assert broker.receive(m.Publish(Event({"x": 1})), "bob", 3.0)


def test_a_promise_where_there_are_none_changes_nothing() -> None:
    """A neighbour with advertisements and one without: a ProtocolError, or no effect."""
    broker = Broker("oslo")
    broker.receive(m.Connect(), "rome", 0.0)
    assert broker.receive(m.FilterUpdate(about="advertisements", all=True), "rome", 0.0) == []


def test_a_filter_update_has_an_effect_as_a_whole_or_none() -> None:
    broker = Broker("oslo")
    for neighbour in ("rome", "bern"):
        broker.receive(m.Connect(), neighbour, 0.0)
    never = parse("x = 1") & parse("x = 2")
    with pytest.raises(ProtocolError):
        broker.receive(m.FilterUpdate((parse("x = 5"), never)), "rome", 0.0)
    assert broker.entries == 0  # else bern is never told of x = 5, and its events are lost
