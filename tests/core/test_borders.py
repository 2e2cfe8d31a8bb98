"""Single cases of borders; random runs are in `tests/simulation/test_federation.py`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.core import Core
from fieldfare.core.domains import Federation
from fieldfare.core.inputs import Attach, ChangeFilters, ConnectLink, ReceiveMessages, SetReachable
from fieldfare.core.state import RequestRefused
from fieldfare.core.step import Step
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING, parse
from fieldfare.protocol import channels as c
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import details_of
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker

BORDER = "rome@south"
RED = Event({"type": "red"})


def core(homes: dict[str, str], share: str = "type = 'red'", replicas: int = 0) -> Core:
    """Return the node bern of the domain north, with a border to south and a session of ana for everything."""
    federation = Federation("north", {"south": parse(share)})
    made = Core(Broker("bern"), channels=ChannelMap(homes), federation=federation, replicas=replicas)
    made.step([ConnectLink(BORDER, Role.PEER), SetReachable(BORDER, ["@south"], {"@south": 3})], 0.0)
    made.step([Attach("ana", "i"), ChangeFilters("ana", m.Subscribe("s", EVERYTHING))], 0.0)
    return made


def receive(made: Core, *messages: m.Message) -> Step:
    link = made.links[BORDER]
    return made.step([ReceiveMessages(BORDER, link.received + 1, [wire.encode(one) for one in messages])], 0.0)


def sent(made: Core) -> list[m.Envelope]:
    """Return the envelopes for the other domain, since the first messages."""
    decoded = [wire.decode(one) for one in made.links[BORDER].outbox.values() if isinstance(one, bytes)]
    return [one for one in decoded if isinstance(one, m.Envelope)]


def told(made: Core) -> Sequence[str]:
    return sorted(str(one) for one in made.interest())


def event(**fields: object) -> m.Forward:
    return m.Forward(Event({"type": "red", **fields}), "bob", 1, "k#red", "rome", channel_number=7)


def envelope(content: object, to: str = "@north", origin: str = "rome@south") -> m.Envelope:
    return m.Envelope(to, origin, c.encode(content) if isinstance(content, c.ChannelMessage) else wire.encode(content))  # type: ignore[arg-type]


def test_an_event_enters_with_its_number_and_the_domain_of_its_source() -> None:
    made = core({"red": "@south"})
    (entry,) = receive(made, event()).entries
    details = details_of(entry)
    assert (details.channel_number, details.source) == (7, "rome@south")
    assert len(made.sessions["ana"].pending) == 1


def test_an_event_that_is_not_shared_does_not_enter() -> None:
    made = core({"red": "@south"})
    receive(made, m.Forward(Event({"type": "grey"}), "bob", 1, "k", "rome"), event())
    assert len(made.sessions["ana"].pending) == 1


def test_a_type_has_one_domain(caplog: pytest.LogCaptureFixture) -> None:
    made = core({"red": "bern"})
    with caplog.at_level(logging.ERROR):
        receive(made, event())
        receive(made, m.Forward(RED, "bob", 2, "k#red", "rome", channel_number=8))
    assert not made.sessions["ana"].pending
    assert [record.getMessage() for record in caplog.records] == [
        "south numbers events of the type red, and so does this domain: such events do not cross the border"
    ]


def test_filters_are_cut_to_what_is_shared() -> None:
    made = core({"red": "@south"})
    receive(made, m.FilterUpdate((parse("x = 1"), parse("type = 'grey'"))))
    assert told(made) == ["TRUE", "type = 'red' AND x = 1"]
    receive(made, m.FilterUpdate((parse("x = 1 OR type = 'grey'"),)))  # the same, after the cut
    receive(made, m.FilterUpdate(removed=(parse("x = 1"),)))
    assert told(made) == ["TRUE", "type = 'red' AND x = 1"]
    receive(made, m.FilterUpdate(removed=(parse("x = 1 OR type = 'grey'"),)))
    assert told(made) == ["TRUE"]


def test_a_question_is_answered_under_the_name_of_the_domain() -> None:
    made = core({"red": "bern", "blue": "bern"})
    receive(made, *(envelope(c.JoinChannel(type)) for type in ("red", "blue", "grey")))
    answers = [(one.to, one.origin, c.decode(one.content)) for one in sent(made)]
    assert answers == [
        ("rome@south", "bern@north", c.ChannelOpen("red")),
        ("rome@south", "@north", c.ChannelClosed("blue", _PRIVATE)),
        ("rome@south", "@north", c.ChannelClosed("grey", _PRIVATE)),
    ]


_PRIVATE = "the domains north and south do not share all events of this type"


def test_a_question_for_a_third_domain_is_answered_with_no() -> None:
    made = core({"red": "@east"})
    receive(made, envelope(c.JoinChannel("red")))
    assert [c.decode(one.content) for one in sent(made) if one.origin == "bern@north"] == [
        c.ChannelClosed("red", "the settings of bern name @east for it")
    ]


@pytest.mark.parametrize(
    "strange",
    [
        envelope(c.ChannelHome("red", "rome", 9)),
        envelope(c.ChannelHandover("red", 9, 9, "bern"), "bern@north"),
        envelope(c.MoveChannel("red", "rome")),
        envelope(c.JoinChannel("red"), origin="oslo"),
        envelope(c.JoinChannel("red"), origin="oslo@north"),
        envelope(m.Forward(Event({"type": "grey"}), "bob", 1, "k#grey", "rome")),
        m.Envelope("bern@north", "rome@south", h.encode(h.SessionRequest("ana", "t", None))),
        m.Envelope("bern", "rome", h.encode(h.SessionRequest("ana", "t", None))),
    ],
)
def test_nothing_else_crosses(strange: m.Envelope) -> None:
    made = core({"red": "bern"})
    before = made.channels.homes.of("red")
    receive(made, strange)
    assert made.channels.homes.of("red") == before
    assert not made.sessions["ana"].pending
    assert not made.handovers.any()
    assert not sent(made)
    assert made.links[BORDER].received == 1  # and the link goes on


def test_a_neighbour_in_another_domain_holds_no_replicas() -> None:
    made = core({"red": "@south"}, replicas=1)
    assert not any(made.replicas.holders.values())
    assert not sent(made) or all(isinstance(c.decode(one.content), c.JoinChannel) for one in sent(made))


def test_a_channel_of_another_domain_is_not_moved_from_here() -> None:
    made = core({"red": "@south"})
    with pytest.raises(RequestRefused, match="the channel of red is in the domain south, and moves inside it only"):
        made.channels.moves.request("red", "bern")


def test_a_node_asks_the_domain_for_its_channel() -> None:
    made = core({"red": "@south"})
    assert [(one.to, one.origin, c.decode(one.content)) for one in sent(made)] == [
        ("@south", "bern@north", c.JoinChannel("red"))
    ]
    receive(made, envelope(c.ChannelOpen("red"), "bern@north", "oslo@south"))
    assert not made.channels.homes.waiting
