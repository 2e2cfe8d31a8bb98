"""The engine of a client, against frames that are written by hand: no node, no socket, no clock."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from fieldfare.client.engine import Engine
from fieldfare.client.errors import ConnectionLost, Refused
from fieldfare.client.registrations import NO_SUBSCRIPTION, AdvertisementRegistration, SubscriptionRegistration
from fieldfare.events.event import Event
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import JSON_CODEC


def engine(session: str = "ana", **options: object) -> Engine:
    return Engine(encode_event=JSON_CODEC.raw, session=session, **options)  # type: ignore[arg-type]


def welcome(identity: str = "1", **more: object) -> f.Welcome:
    return f.Welcome("oslo", "ana", identity, **more)  # type: ignore[arg-type]


def sent(client: Engine, now: float = 0.0) -> list[f.Frame]:
    """Return all frames that the engine wants to send."""
    frames = []
    while (frame := client.next_frame(now)) is not None:
        frames.append(frame)
    assert client.pause is None
    return frames


def delivery(number: int, *subscriptions: str) -> f.Delivery:
    return f.Delivery(number, 10 + number, 1.0, "bob", msgspec.Raw(b'{"x":1}'), subscriptions)


def publish(client: Engine, x: int, outcomes: list[object], ttl: float | None = None, now: float = 0.0) -> None:
    client.publish((Event({"x": x}),), f.PublishOptions(ttl=ttl), outcomes.append, now)


def test_the_engine_needs_no_event_loop_no_socket_and_no_clock() -> None:
    program = "import sys, fieldfare.client.engine;print(*({'asyncio', 'websockets', 'socket'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_events_are_safe_when_the_node_has_accepted_them() -> None:
    client, outcomes = engine(), list[object]()
    client.begin(welcome(), 0.0)
    publish(client, 1, outcomes, ttl=10.0, now=5.0)
    publish(client, 2, outcomes)
    assert client.pause == 0.0
    assert [(frame.number, frame.ttl) for frame in sent(client, 6.0) if isinstance(frame, f.Publish)] == [
        (1, 9.0),
        (2, None),
    ]
    client.receive(f.Accepted(1))
    assert (outcomes, client.unsafe) == ([True], 1)
    client.receive(f.Refused("too large", number=2, code="limit"))
    assert isinstance(outcomes[1], Refused)
    assert (str(outcomes[1]), client.unsafe) == ("too large", 0)


def test_a_replica_holder_repeats_no_event_and_nothing_that_its_channel_has_passed() -> None:
    def numbered(number: int, by: str, sequence: int, channel: int = 0) -> f.Delivery:
        return f.Delivery(number, number, 1.0, "bob", msgspec.Raw(b"{}"), ("s",), by, sequence, channel)

    client, reading = engine(), SubscriptionRegistration("s", "TRUE", None, keep=True)
    client.inbox.add(reading)
    client.begin(welcome(), 0.0)
    client.receive(f.Deliveries([numbered(1, "b", 4), numbered(2, "b#bid", 7, 3)]))
    client.disconnect()
    client.begin(welcome(may_repeat=1006, moves=1), 0.0)
    before = [numbered(1001, "b", 4), numbered(1002, "e#bid", 1, 2), numbered(1003, "b#bid", 7, 3)]
    after = [numbered(1004, "b", 5), numbered(1005, "e#bid", 2, 4), numbered(1006, "e#ask", 3, 1)]
    client.receive(f.Deliveries([*before, *after, numbered(1007, "c#bid", 1, 1)]))  # the last is not in doubt
    assert [item.delivery.number for item in reading.clear()] == [1, 2, 1004, 1005, 1006, 1007]


def test_an_event_that_comes_late_from_a_silent_node_counts_once() -> None:
    """The node was silent for so long that a replica holder took over, and then passed on what it had delivered."""

    def numbered(number: int, sequence: int) -> f.Delivery:
        return f.Delivery(number, number, 1.0, "bob", msgspec.Raw(b"{}"), ("s",), "b", sequence)

    client, reading = engine(), SubscriptionRegistration("s", "TRUE", None, keep=True)
    client.inbox.add(reading)
    client.begin(welcome(), 0.0)
    client.receive(f.Deliveries([numbered(1, 1), numbered(2, 3)]))
    client.disconnect()
    client.begin(welcome(may_repeat=1000, moves=1), 0.0)
    client.receive(f.Deliveries([numbered(1001, 1), numbered(1002, 2), numbered(1003, 3), numbered(1004, 4)]))
    assert [item.delivery.number for item in reading.clear()] == [1, 2, 1002, 1004]


def test_unanswered_events_are_repeated_under_their_numbers() -> None:
    client, outcomes = engine(), list[object]()
    client.begin(welcome(), 0.0)
    publish(client, 1, outcomes)
    first = sent(client)
    client.disconnect()
    client.begin(welcome(accepted=1), 0.0)
    repeated, question = sent(client)
    assert [repeated] == first
    assert isinstance(question, f.Unsubscribe)
    assert question.id == NO_SUBSCRIPTION
    client.receive(f.Accepted(1))
    assert not outcomes  # an event that was refused before the break would be answered so, too
    client.receive(f.Done(question.request))
    assert outcomes == [True]


def test_a_node_that_has_forgotten_the_session_gets_new_numbers_and_all_registrations() -> None:
    client, outcomes, answers = engine(), list[object](), list[object]()
    client.begin(welcome(accepted=7), 0.0)
    client.register(AdvertisementRegistration("a", "x > 0"), answers.append)
    client.register(SubscriptionRegistration("s", "x > 1", None, keep=False), answers.append)
    publish(client, 1, outcomes)
    advertise, subscribe, *rest = sent(client)
    assert (advertise, subscribe) == (f.Advertise(1, "a", "x > 0"), f.Subscribe(2, "s", "x > 1"))
    assert [getattr(frame, "number", None) for frame in rest] == [None, 8]  # credit, and the event
    client.receive(f.Done(1))
    client.receive(f.Done(2))
    assert answers == [None, None]
    client.disconnect()
    assert client.hello("").identity == "1"
    client.begin(welcome("2"), 0.0)
    again = sent(client)
    assert [type(frame) for frame in again] == [f.Advertise, f.Subscribe, f.Publish]
    assert isinstance(again[-1], f.Publish)
    assert again[-1].number == 1


def test_values_are_stated_again_in_each_life_of_a_log_until_the_answer() -> None:
    """A node that has started again may have forgotten them in a power failure, and the answer may get lost, too."""
    client, answers = engine(), list[object]()

    def stated(life: str) -> list[int]:
        client.disconnect()
        client.begin(welcome(life=life, version=3), 0.0)
        found = [frame for frame in sent(client) if isinstance(frame, f.SetParameters)]
        assert {bytes(frame.values) for frame in found} <= {b'{"at":"a"}'}
        return [frame.request for frame in found]

    assert stated("first") == []
    client.set_parameters({"at": "a"}, answers.append)
    (frame,) = sent(client)
    assert isinstance(frame, f.SetParameters)
    client.receive(f.Done(frame.request))
    assert answers == [None]
    assert stated("first") == []
    assert len(stated("second")) == 1
    (request,) = stated("second")
    client.receive(f.Done(request))
    assert stated("second") == []
    assert len(stated("third")) == 1


def test_deliveries_are_acknowledged_in_order_and_after_a_pause() -> None:
    client = engine(credit=100)
    subscription = SubscriptionRegistration("s", "TRUE", None, keep=False)
    client.begin(welcome(), 0.0)
    client.register(subscription, lambda error: None)
    sent(client)
    client.receive(f.Deliveries([delivery(1, "s"), delivery(2, "s")]))
    assert client.pause is not None
    assert client.pause > 0  # more acknowledgements may follow
    sent(client)
    first, second = subscription.take(), subscription.take()
    for item, frames in ((second, []), (first, [f.Acknowledge(2)])):
        assert subscription.release(item)
        assert not subscription.release(item)
        client.acknowledge(item)
        assert sent(client) == frames


def test_an_advertisement_ends_when_all_events_are_safe() -> None:
    client, outcomes, answers = engine(), list[object](), list[object]()
    advertisement = AdvertisementRegistration("a", "x > 0")
    client.begin(welcome(), 0.0)
    client.register(advertisement, answers.append)
    publish(client, 1, outcomes)
    sent(client)
    client.withdraw(advertisement, answers.append)
    assert not sent(client)
    client.receive(f.Accepted(1))
    assert sent(client) == [f.Unadvertise(2, "a")]


def test_interest_is_asked_again_on_each_connection() -> None:
    client, answers = engine(quench=True), list[object]()
    client.begin(welcome(), 0.0)
    client.watch_interest(answers.append)
    assert sent(client) == [f.WatchInterest(1)]
    client.receive(f.Interest(["x > 5"]))
    assert answers == [None]
    assert client.interest.texts == ("x > 5",)
    assert [client.interest.matches(Event({"x": x})) for x in (5, 6)] == [False, True]
    client.disconnect()
    client.begin(welcome(), 0.0)
    assert client.interest.matches(Event({"x": 5}))  # not known: send
    assert sent(client) == [f.WatchInterest(2)]


def test_lost_events_are_reported_once() -> None:
    lost: list[int] = []
    client = engine(on_dropped=lambda count, reason: lost.append(count))
    client.begin(welcome(warned=3), 0.0)
    for total in (3, 5, 5):
        client.receive(f.Deliveries([], dropped=total))
    client.receive(f.Done(9, log_start=100))
    assert (lost, client.dropped) == ([2, 0], 2)


def test_the_end_answers_everything_that_waits() -> None:
    client, answers = engine(), list[object]()
    subscription = SubscriptionRegistration("s", "TRUE", None, keep=False)
    client.begin(welcome(), 0.0)
    client.register(subscription, answers.append)
    publish(client, 1, answers)
    client.watch_interest(answers.append)
    error = ConnectionLost("over")
    client.fail(error)
    client.fail(ConnectionLost("a second end has no effect"))
    client.request(f.Leave, answers.append)
    assert answers == [error] * 4
    assert (subscription.ended, client.error) == (error, error)


def test_an_id_is_used_once() -> None:
    client = engine()
    client.begin(welcome(), 0.0)
    for first, second in (
        (
            SubscriptionRegistration("s", "x = 1", None, keep=False),
            SubscriptionRegistration("s", "x = 2", 1, keep=True),
        ),
        (AdvertisementRegistration("s", "x = 1"), AdvertisementRegistration("s", "x = 2")),
    ):
        client.register(first, lambda error: None)
        with pytest.raises(ValueError, match="in use already"):
            client.register(second, lambda error: None)
        client.withdraw(first, lambda error: None)
        client.register(second, lambda error: None)
