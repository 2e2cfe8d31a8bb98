"""Sessions: exactly once, in the order of each publisher."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.mobility.sessions import MobileSession, deliveries_due, merged
from fieldfare.protocol.messages import Deliver

PUBLISHERS = ("p", "q")


def delivery(publisher: str, sequence: int) -> Deliver:
    """An event that says who published it."""
    return Deliver(Event({"of": publisher, "a": sequence}), publisher, sequence, ("x",))


def ids(deliveries: list[Deliver]) -> list[tuple[str, int]]:
    """Whose events, and which."""
    return [(one.publisher, one.sequence) for one in deliveries]


@st.composite
def handovers(draw: st.DrawFn) -> tuple[list[Deliver], list[Deliver], list[Deliver], int]:
    """What comes to the old broker, to the new one before the session does, and after; and how much was acknowledged.

    Each hears a publisher in order, and the new one begins with the next event that the old one misses or before.
    """
    old, new = [], []
    for publisher in PUBLISHERS:
        torn = draw(st.integers(1, 6))
        begins = draw(st.integers(1, torn))
        old.append([delivery(publisher, number) for number in range(1, torn)])
        new.append([delivery(publisher, number) for number in range(begins, 8)])
    there, here = draw(shuffles(old)), draw(shuffles(new))
    cut = draw(st.integers(0, len(here)))
    return there, here[:cut], here[cut:], draw(st.integers(0, len(there)))


def shuffles(lists: list[list[Deliver]]) -> st.SearchStrategy[list[Deliver]]:
    """All that is in them, each in its order."""

    def mixed(order: list[int]) -> list[Deliver]:
        left = [iter(one) for one in lists]
        return [next(left[number]) for number in order]

    return st.permutations([number for number, one in enumerate(lists) for _ in one]).map(mixed)


@given(handovers())
def test_merged_sessions_have_all_events_once_in_the_order_of_their_publishers(
    run: tuple[list[Deliver], list[Deliver], list[Deliver], int],
) -> None:
    there, aside, later, received = run
    session = MobileSession()
    for one in there:
        session.accept(one)
    got = session.pending[:received]
    session.acknowledge(received)
    here = merged(session, [(one, "") for one in aside])
    for one in later:
        here.accept(one)
    all_of_them = got + here.pending
    assert [one.number for one in all_of_them] == list(range(1, 15))
    for publisher in PUBLISHERS:
        assert [one.sequence for one in all_of_them if one.publisher == publisher] == list(range(1, 8))
    assert ids(got + session.pending) == ids(there)  # the old session is as it was


def test_an_event_that_was_overtaken_before_the_session_came_is_not_delivered_late() -> None:
    session = MobileSession()
    session.accept(delivery("p", 2), "b")  # the subscription was not in force yet on the way of the first
    aside = [(delivery("p", 1), "b"), (delivery("p", 2), "b"), (delivery("q", 1), "b")]
    assert ids(merged(session, aside).pending) == [("p", 2), ("q", 1)]


def test_an_event_that_was_overtaken_by_one_from_another_place_is_not_lost() -> None:
    session = MobileSession()
    session.accept(delivery("p", 2), "b")  # its publisher has moved there
    assert ids(merged(session, [(delivery("p", 1), "a"), (delivery("p", 2), "b")]).pending) == [("p", 2), ("p", 1)]


def test_a_publisher_that_counts_anew_is_heard_where_the_session_stays() -> None:
    session = MobileSession()
    assert session.accept(delivery("p", 5)) is not None
    assert session.accept(delivery("p", 1)) is not None


def test_what_is_due_is_for_what_the_client_wants_now() -> None:
    session = MobileSession()
    for number in (1, 2, 3):
        session.accept(delivery("p", number))
    session.acknowledge(1)
    wanted = {"y": parse("a > 2"), "z": parse("a > 2 AND of = 'p'")}
    assert [(one.number, one.subscriptions) for one in deliveries_due(session, wanted)] == [(3, ("y", "z"))]
