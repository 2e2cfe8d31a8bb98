"""Samples of all wire forms, from which `protocol_vectors` makes the test vectors: a name, a value and a note each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from fieldfare.events import json, msgpack
from fieldfare.events.event import Event
from fieldfare.events.values import Interval
from fieldfare.filters import parse
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import channels as c
from fieldfare.protocol import frames as f
from fieldfare.protocol import handover as h
from fieldfare.protocol import journal as j
from fieldfare.protocol import link_frames as lf
from fieldfare.protocol import messages as m
from fieldfare.protocol import overlay_messages as o
from fieldfare.protocol import patterns as p
from fieldfare.protocol import wire


class Sample(NamedTuple):
    """A value of a wire form."""

    value: Any
    note: str
    variant: str = ""


QUOTE: Final = Event({"symbol": "IBM", "price": 119.5})
KINDS: Final = Event(
    {
        "null": None,
        "true": True,
        "whole": -7,
        "large": 2**63 - 1,
        "float": 0.5,
        "text": "naïve",
        "time": datetime(2026, 1, 31, 12, 0, tzinfo=UTC),
        "bytes": b"\x00\xff",
        "interval": Interval(1, 5),
        "list": [1, "two", None],
        "nested": {"floor": 2},
    }
)


def _raw(event: Event) -> msgspec.Raw:
    return msgspec.Raw(json.encode(event))


CLIENT_FRAMES: Final = (
    Sample(
        f.SubscribePattern(6, "pairs", "a: [x = 1] b: [x = 2] (a followed by b) within 1 hour for each card"),
        "A pattern of events.",
    ),
    Sample(
        f.SubscribePattern(7, "old", "a: [x = 1] a once", "2026-01-31T12:00:00Z"), "A pattern from a time on.", "since"
    ),
    Sample(f.SetParameters(1, _raw(Event({"myloc": "rebeca-drive 100", "budget": 120}))), "A place, and a value."),
    Sample(f.SetParameters(2, _raw(Event({"myloc": None}))), "The place is forgotten.", "forgotten"),
    Sample(f.Hello(), "A client without a session and without a token.", "shortest"),
    Sample(f.Hello(session="ana", token="secret", credit=100), "The first connection of a durable session.", "session"),
    Sample(
        f.Hello(3, "ana", "", 100, "rome", "8b4c0f5d3c2e9a71", ("bern",), 3, (("5f1e0c66a2b4", 1),), 17, "f1Yc"),
        "The session goes on at another node: the fields from `at` on repeat the last `Welcome`.",
        "moved",
    ),
    Sample(
        f.Hello(3, "orders", "", 20, shared=True, member="w1", key="account"),
        "A member of a shared session: events of one account go to one member at a time.",
        "member",
    ),
    Sample(f.Publish(1, [_raw(QUOTE), _raw(Event({}))]), "Two events, numbers 1 and 2.", "batch"),
    Sample(
        f.Publish(3, [_raw(QUOTE)], ttl=60.0, replaces="IBM"),
        "With a time to live and a name for replacement.",
        "options",
    ),
    Sample(f.Publish(4, [_raw(KINDS)]), "All kinds of values in one event.", "values"),
    Sample(f.Subscribe(1, "cheap", "price < 10"), "A filter as text.", "text"),
    Sample(f.Subscribe(2, "dialect", [{"exact": {"type": "a"}}]), "A filter as a document of CloudEvents.", "document"),
    Sample(
        f.Subscribe(3, "old", "TRUE", 1017, "5f1e0c66a2b4", complete=True), "Replay from a position on.", "position"
    ),
    Sample(f.Subscribe(4, "old", "TRUE", 1767225600.25), "Replay from a time on, in seconds since 1970.", "seconds"),
    Sample(f.Subscribe(5, "old", "TRUE", "2026-01-31T12:00:00Z"), "Replay from a time on, as text.", "time"),
    Sample(f.Unsubscribe(6, "cheap"), "The end of a subscription."),
    Sample(f.Advertise(7, "mine", "price > 0"), "An announcement of events."),
    Sample(f.Unadvertise(8, "mine"), "The end of an advertisement."),
    Sample(f.Acknowledge(17), "All deliveries up to number 17."),
    Sample(
        f.Hello(3, "anna", "", 1000, device="phone", oldest=True),
        "A device of a session, which gets every event; if it is new, from the oldest waiting event on.",
        "device",
    ),
    Sample(f.Acknowledge(0, (21, 19)), "Of a member: the deliveries 21 and 19 alone.", "member"),
    Sample(f.Credit(50), "Fifty deliveries more."),
    Sample(f.WatchInterest(9), "Answered by `Done`, and by `Interest` at each change."),
    Sample(f.Leave(10), "The end of the session."),
    Sample(f.LeaveFor(11, "rome"), "The client goes to another node next."),
    Sample(
        f.Welcome("oslo", "~7f3a", "8b4c0f5d3c2e9a71", version=3),
        "A new session; the node made up its name.",
        "shortest",
    ),
    Sample(
        f.Welcome(
            "oslo",
            "ana",
            "8b4c0f5d3c2e9a71",
            2,
            17,
            3,
            max_frame=1 << 20,
            max_batch=10_000,
            replicas=("bern",),
            moves=3,
            may_repeat=12,
            lives=(("5f1e0c66a2b4", 1), ("90ad1c27ffe1", 14)),
            void_from=15,
            life="90ad1c27ffe1",
            warned=1,
            ticket="f1Yc",
        ),
        "A session that has moved here and lost deliveries, with all fields but `shared`.",
        "longest",
    ),
    Sample(f.Welcome("oslo", "orders", "8b4c0f5d3c2e9a71", version=3, shared=True), "To a member.", "member"),
    Sample(f.Welcome("oslo", "anna", "8b4c0f5d3c2e9a71", version=3, device="phone"), "To a device.", "device"),
    Sample(f.Waiting("rome"), "The session is on its way from rome."),
    Sample(f.Accepted(2), "Events 1 and 2 are safe."),
    Sample(f.Done(1), "The request with number 1 is done.", "plain"),
    Sample(f.Done(3, 501), "Older events than position 501 are gone.", "log_start"),
    Sample(f.Refused("line 1, column 8: expected a value", 2), "A request with a mistake.", "request"),
    Sample(f.Refused("not inside publish", number=4, code="denied"), "A `Publish` without permission.", "publish"),
    Sample(
        f.Deliveries(
            [
                f.Delivery(18, 40, 1767225601.5, "bob", _raw(QUOTE), ("cheap", "all")),
                f.Delivery(20, 43, 1767225602.0, "bob", _raw(QUOTE), ("all",), "8b4c0f5d3c2e9a71", 7, 101),
            ],
            1,
        ),
        "Number 19 was dropped. An item is a list; its last three members may be missing.",
    ),
    Sample(
        f.Deliveries([f.Delivery(12, 31, 1767225600.5, "bob", _raw(QUOTE), ("all",))], redelivered=(12,)),
        "To a member: another member may have had number 12.",
        "member",
    ),
    Sample(f.Interest(["price < 10", "symbol = 'IBM'"]), "The filters of all subscribers."),
    Sample(f.Bye("the session is used by another connection now", retry=False), "Do not connect again.", "final"),
    Sample(f.Bye("your session goes on at rome", to="ws://rome:7400", ticket="f1Yc"), "Follow the session.", "follow"),
)

LINK_FRAMES: Final = (
    Sample(lf.LinkHello("oslo", "ws://oslo:7400", "covering"), "The shortest hello.", "shortest"),
    Sample(
        lf.LinkHello(
            "oslo",
            "ws://oslo:7400",
            "covering",
            role="parent",
            reaches={"rome": {"rome": "ws://rome:7400"}},
            id="8b4c",
            life="5f1e",
            answers=True,
        ),
        "All fields.",
        "longest",
    ),
    Sample(
        lf.LinkHello("oslo", "", "covering", reaches={"": {"@north": "", "@east": ""}}, domain="north"),
        "At the border to another domain.",
        "border",
    ),
    Sample(lf.LinkResume("a1", "", 0), "A new link.", "new"),
    Sample(lf.LinkResume("a1", "b2", 17, (("5f1e", 1),), (("90ad", 1),), 5, 42), "A known link.", "known"),
    Sample(
        lf.Messages(18, [wire.encode(m.Forward(QUOTE, "bob", 7)), wire.encode(m.FilterUpdate((parse("x = 1"),)))]),
        "Numbers 18 and 19; the forms of the messages are in link-messages.json.",
    ),
    Sample(lf.UnnumberedMessage(wire.encode(m.FilterUpdate(topic="t"))), "A message that may get lost."),
    Sample(lf.Received(19), "All messages up to number 19 are on disk."),
    Sample(lf.ReachableNodes({"bern": "ws://bern:7400"}), "Nodes on the far side.", "shortest"),
    Sample(lf.ReachableNodes({"bern": "", "rome": ""}, {"bern": 3}), "One speaks version 3, the other 2.", "versions"),
    Sample(lf.OverviewRequest("bern", "oslo", 1, 2), "Passed on from node to node."),
    Sample(lf.OverviewReply("oslo", "bern", 1, b'{"name":"bern"}'), "The overview is JSON."),
    Sample(lf.LinkEnd("the link would close a cycle"), "The link is refused.", "refused"),
    Sample(lf.LinkEnd("removed", forever=True), "The link is to be forgotten.", "forever"),
)

_UPDATE: Final = m.FilterUpdate((parse("price < 10"), NamedFilter("cheap", parse("price < 5"))), (parse("x = 1"),))

LINK_MESSAGES: Final = (
    Sample(m.Publish(QUOTE, 7), "From a client of a bare broker."),
    Sample(m.Subscribe("cheap", parse("price < 10")), "A filter travels as the text of its normal form."),
    Sample(m.Unsubscribe("cheap"), "The end of a subscription."),
    Sample(m.Advertise("mine", parse("price > 0")), "An announcement of events."),
    Sample(m.Unadvertise("mine"), "The end of an advertisement."),
    Sample(m.Leave(), "The client leaves."),
    Sample(m.Deliver(QUOTE, "bob", 7, ("cheap",), "oslo", 18), "To a client of a bare broker."),
    Sample(m.Refuse("no advertisement", "mine"), "To a client of a bare broker."),
    Sample(m.Forward(QUOTE, "bob", 7), "An event on its way, with defaults left out.", "shortest"),
    Sample(
        m.Forward(KINDS, "bob", 7, "oslo", "oslo", expires=1767225660.0, replaces="IBM", tag=b"\x01\x02"),
        "With a tag.",
        "longest",
    ),
    Sample(m.Forward(QUOTE, "bob", 7, "8b4c#quote", "oslo", channel_number=101), "Numbered by its channel.", "channel"),
    Sample(_UPDATE, "A named filter is a list of its name and its text.", "change"),
    Sample(m.FilterUpdate((parse("x = 1"),), about="advertisements", all=True, topic="t"), "All that counts.", "all"),
    Sample(m.Envelope("bern", "oslo", b"\x80"), "For a node that is no neighbour; see handover.json for contents."),
    Sample(m.TopicCheck("t"), "Only overlays with a tree for each topic."),
    Sample(m.TableCopy("rome", _UPDATE), "Only rendezvous overlays."),
    Sample(m.LinkUpdate("oslo", (1, 2), ("rome", "bern")), "Only overlays with cycles."),
    Sample(m.InterestUpdate("oslo", (1, 2), (parse("x = 1"),), (), all=True), "Only trees of sources."),
    Sample(m.ControlMessage(m.FilterUpdate(topic="t")), "A message of the control overlay; it may get lost."),
    Sample(o.Join("oslo", 2, ("rome",)), "Overlay message: a new node."),
    Sample(o.Welcome(("rome", "bern")), "Overlay message: the answer to `Join`."),
    Sample(o.Announce(("rome",)), "Overlay message: the leaves of the sender."),
    Sample(o.State(("rome",)), "Overlay message: nodes to know."),
    Sample(o.Repair("bern", ("rome",)), "Overlay message: a node has failed."),
    Sample(o.Gone("bern"), "Overlay message: a node has left."),
)

_SESSION: Final = ("ana", "f1Yc")

HANDOVER: Final = (
    Sample(h.SessionRequest(*_SESSION), "The target asks for a session.", "shortest"),
    Sample(h.SessionRequest(*_SESSION, "ana@example.org", take_over=True), "From a replica; with an owner.", "longest"),
    Sample(h.SessionOffer(*_SESSION, "ana@example.org"), "The source offers a session."),
    Sample(
        h.SessionDescription(
            *_SESSION, "8b4c", "ana@example.org", {"cheap": "price < 10"}, {"mine": "price > 0"}, replica=True
        ),
        "Subscriptions and advertisements by id.",
    ),
    Sample(
        h.SessionDescription(
            *_SESSION,
            "8b4c",
            "ana@example.org",
            {"near": "location = 'hall'"},
            dynamic={"near": "location IN myloc"},
            parameters=msgpack.encode(Event({"myloc": "hall"})),
        ),
        "A filter with parameters, filled in and as text, and the place of the session.",
        "dynamic",
    ),
    Sample(
        h.ClientVoucher(*_SESSION, b"\x01\x02", "ana@example.org", ("client",), 1767225660.0, "id", 1767225600.0),
        "All fields.",
    ),
    Sample(h.TargetReady(*_SESSION), "The target has subscribed."),
    Sample(
        h.StoredDeliveries(
            *_SESSION, [h.StoredDelivery(18, ("cheap",), 0.0, "bob", 7, "8b4c", "oslo", "", b"\x80", replayed=True)]
        ),
        "An item is a list; the event is MessagePack.",
    ),
    Sample(
        h.SessionTransferred(*_SESSION, 2, 20, 17, 1, [("bob", "8b4c", 7)], 12, 3, (("5f1e", 1),), 1), "All fields."
    ),
    Sample(h.ReplicaProgress(*_SESSION, 2, 20, 17, 3, [("bob", "8b4c", 7)]), "Progress of the session, to a replica."),
    Sample(h.SessionTakenOver(*_SESSION, "8b4c"), "The session was taken over."),
    Sample(h.SessionNotHere(*_SESSION, "rome", "no such session"), "The session is not here."),
    Sample(h.CancelHandover(*_SESSION), "The handover is cancelled."),
    Sample(
        h.StandInRequest("ana", "", "8b4c", {"mine": "price > 0"}, 60.0, 3), "Advertise for a session of another node."
    ),
)

CHANNELS: Final = (
    Sample(c.JoinChannel("quote"), "A node with publishers asks the home of a channel."),
    Sample(c.ChannelOpen("quote"), "Events of the type may come, each in an envelope, as `Forward`."),
    Sample(c.ChannelClosed("quote", "the settings of rome name no node for it"), "The settings of both nodes differ."),
    Sample(c.MoveChannel("quote", "rome"), "An administrator at any node asks the home to let the channel go."),
    Sample(c.ChannelHandover("quote", 3, 101, "rome"), "The home hands the channel to the next node on the way."),
    Sample(c.ChannelTaken("quote"), "The new home has the channel; all it had sent to the former home came before."),
    Sample(c.ChannelDrained("quote"), "The former home has sent all of that back."),
    Sample(c.ChannelHome("quote", "bern", 3), "A node tells its other neighbours of the new home."),
)

PATTERNS: Final = (
    Sample(
        p.MeasurePattern("fraud", ("x = 1", "x = 2"), ("ce:eba9040aa887ce3f",)),
        "The node of a pattern asks how many events for it are published at another node.",
    ),
    Sample(
        p.PatternStatistics("fraud", (2.5, 0.0), 12.0, ("bern", "rome"), ("ce:eba9040aa887ce3f",)),
        "The answer: events a second by filter, the load, the neighbours, and the types that the node detects already.",
    ),
    Sample(p.WantPattern("fraud", "a: [x = 1] b: [x = 2] (a ; b)"), "A node is to detect a part."),
    Sample(
        p.WantPattern("fraud", "a: [type = 'ce:eba9040aa887ce3f'] b: [x = 3] (a ; b)", {"ce:eba9040aa887ce3f": "oslo"}),
        "A third node detects a part of the part.",
        "with a part elsewhere",
    ),
    Sample(p.PatternRefused("fraud", "its period is above 60 s"), "The part exceeds the bounds there."),
    Sample(p.DropPattern("fraud", "ce:eba9040aa887ce3f"), "The pattern needs the part no longer."),
)

JOURNAL: Final = (
    Sample(j.EntryDetails("8b4c", "oslo"), "An event for nobody; trailing defaults are left out.", "shortest"),
    Sample(
        j.EntryDetails(
            "8b4c",
            "oslo",
            "rome",
            18,
            3,
            [("ana", "m1", 20, ["cheap"])],
            [("bern", 42)],
            1767225660.0,
            "IBM",
            6,
            8,
            b"\x01",
        ),
        "All fields of version 2.",
        "longest",
    ),
    Sample(
        j.EntryDetails("8b4c#quote", "oslo", "rome", 18, 3, channel_number=101),
        "An event with the number 101 in the channel of its type.",
        "channel",
    ),
    Sample(
        j.EntryDetails("8b4c#quote", "oslo", first=6, last=8, channel_home="rome"),
        "An event that left for the home of its channel.",
        "left",
    ),
)
