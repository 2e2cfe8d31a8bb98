"""What clients, access servers and resolution servers say to each other, beside `protocol.messages`.

A channel may move while it is talked to. So whatever an access server says to a channel is numbered (`ChannelRequest`),
and so is what the channel answers (`ChannelReply`): by whichever ways it comes, it is taken in that order, and once.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.protocol.messages import Forward, Message

Position: TypeAlias = dict[str, int]
"""how far events have been had: of each server that counts events, all up to a number"""
Matrix: TypeAlias = dict[str, dict[str, int]]
"""how many messages each server has sent to each"""


def join(known: Matrix, more: Matrix) -> None:
    """Let what is known be all that either knows."""
    for sender, counts in more.items():
        mine = known.setdefault(sender, {})
        for receiver, count in counts.items():
            mine[receiver] = max(count, mine.get(receiver, 0))


def copied(matrix: Matrix) -> Matrix:
    """One that does not change when the other does."""
    return {sender: dict(counts) for sender, counts in matrix.items()}


# From clients


class Attach(Message, frozen=True):
    """Here I am: go on with my session, wherever it was before."""

    session: str = ""
    """its name, if it is not my own"""
    app: str = ""
    """who of those that share the session I am; whoever was that before is so no more"""
    received: int | None = None
    """the number of the last delivery that I have got, if I know"""
    source: str = ""
    """the access server where I was last, if anywhere"""
    moves: int = 0
    """how often I have said this: what I said after the one before comes before what I say after this one"""


class SubscribePast(Message, frozen=True):
    """A subscription, and up to so many matching events of the past; only as long as the session has got nothing."""

    id: str
    filter: Filter
    last: int


class WatchInterest(Message, frozen=True):
    """Tell me what anybody wants, now and when it changes, so that I need not send what nobody wants."""


# To clients


class InterestReply(Message, frozen=True):
    """What anybody wants. A wish that you have not heard of yet is not known here any sooner than you are told."""

    filters: tuple[Filter, ...]


class MoveRequest(Message, frozen=True):
    """Please go to another access server."""

    to: str


class SessionMoved(Message, frozen=True):
    """Your session has been called to another access server; follow it there, or call it back by `Attach`."""

    session: str
    to: str


# From whoever looks after servers


class MoveClients(Message, frozen=True):
    """Let the clients of so many sessions go to another access server."""

    to: str
    sessions: int = 1


class RelocateChannel(Message, frozen=True):
    """Let a channel be hosted elsewhere."""

    channel: str
    to: str


class BalanceLoad(Message, frozen=True):
    """Compare your load with that of others, and give away a channel if that makes it more even."""


# From access servers to channels


class ChannelRequest(Message, frozen=True):
    """Something for a channel, wherever it is now."""

    channel: str
    server: str
    number: int
    clock: int
    content: Message


class ChannelEvent(Message, frozen=True):
    """An event to be ordered and given to all who want it."""

    event: Forward


class ChannelSubscribe(Message, frozen=True):
    """Another access server's clients, together, want these and no longer those."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class PastRequest(Message, frozen=True):
    """Tell me up to so many events of the past that match, for a session."""

    session: str
    filter: Filter
    last: int


class ChannelAdvertise(Message, frozen=True):
    """Events like these may be published here, and no longer those: let me know who wants them."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


# From channels to access servers


class ChannelReply(Message, frozen=True):
    """Something from a channel."""

    channel: str
    number: int
    clock: int
    content: Message


class RequestDone(Message, frozen=True):
    """What you said has been taken; it is in force when these servers have said that they heard of it."""

    number: int
    stamp: int
    audience: tuple[str, ...] = ()


class ServerInterest(Message, frozen=True):
    """Another access server wants these and no longer those, from its `ChannelSubscribe` of that number on."""

    server: str
    number: int
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class PastEvents(Message, frozen=True):
    """Events of the past for a session."""

    session: str
    number: int
    """of the question"""
    events: tuple[tuple[int, Forward], ...]


class StampedEvent(Message, frozen=True):
    """An event and its place in the order of all."""

    stamp: int
    event: Forward


class ChannelRedirect(Message, frozen=True):
    """A channel is there now."""

    channel: str
    server: str


# Clocks of resolution servers


class ClockRequest(Message, frozen=True):
    """Will there be anything up to this time?"""

    clock: int


class ClockReply(Message, frozen=True):
    """There will be nothing any more up to this time."""

    clock: int


# Between resolution servers


class ChannelState(msgspec.Struct):
    """All that a channel is."""

    moves: int = 0
    next: dict[str, int] = {}
    """of each access server, the number of what it will say next"""
    early: dict[str, dict[int, ChannelRequest]] = {}
    """what has overtaken something"""
    replies: dict[str, int] = {}
    wants: dict[str, dict[Filter, None]] = {}
    promises: dict[str, dict[Filter, None]] = {}
    promised: dict[str, dict[Filter, None]] = {}
    """the same, with what is promised no longer: its events may still be on their way"""
    told: dict[str, dict[str, dict[Filter, None]]] = {}
    """what those who promise something know of each other server's wishes"""
    log: list[tuple[int, Forward]] = []
    events: int = 0
    """so far"""
    load: float = 0.0
    """the same, but each counts for less the longer ago it was"""
    since: float = 0.0
    """when that was so"""


class ChannelTransfer(Message, frozen=True):
    """A channel moves to you."""

    channel: str
    state: ChannelState
    clock: int


class ChannelMoved(Message, frozen=True):
    """A channel is with me now."""

    channel: str
    moves: int


class LoadReply(Message, frozen=True):
    """So much."""

    load: float


class LoadRequest(Message, frozen=True):
    """How much have you to do?"""


# Where sessions are


class SessionCall(Message, frozen=True):
    """A session is wanted at a server. Said to the home of the session's name, by way of where its client was last.

    So the moves of a client are put in the order in which it made them.
    """

    session: str
    server: str
    call: int
    """tells the calls of a server apart"""
    after: tuple[str, int] = ("", 0)
    """the client, and how often it had moved before"""


class SessionCallReply(Message, frozen=True):
    """This will be its visit of that number; the one before was at another server, or nowhere."""

    session: str
    call: int
    visit: int
    source: str
    context: Matrix = msgspec.field(default_factory=dict)
    """of sessions that are over"""


class SessionEnd(Message, frozen=True):
    """A session is over; what its clients publish under another may still have been caused by that context."""

    session: str
    visit: int
    context: Matrix


class SessionEndReply(Message, frozen=True):
    """Nobody will ask for it any more."""

    session: str
    visit: int


# Between access servers


class CausalMessage(Message, frozen=True):
    """A message in causal order."""

    domain: str
    content: Message
    number: int
    """how many events its sender has published"""
    sent: Matrix


class GatewayInterest(Message, frozen=True):
    """What a gateway wants, said to all others: there is no channel between them."""

    domain: str
    channel: str
    change: ServerInterest


class InterestConfirmation(Message, frozen=True):
    """I know what you told a channel under that number."""

    domain: str
    channel: str
    number: int


class SessionRequest(Message, frozen=True):
    """I call a session from its visit of that number at yours."""

    session: str
    visit: int


class SessionOffer(Message, frozen=True):
    """What the session wants and promises: see to it, and fetch the rest."""

    session: str
    visit: int
    subscriptions: dict[str, Filter]
    advertisements: dict[str, Filter]


class SessionFetch(Message, frozen=True):
    """From here on I have its events: give me all up to there."""

    session: str
    visit: int
    cut: Position


class SessionTransfer(Message, frozen=True):
    """Here it is, with all events up to that position; what it publishes next may have been caused by that context."""

    session: str
    visit: int
    value: SharedSession
    position: Position
    context: Matrix


class PrepareSession(Message, frozen=True):
    """A session may come to you soon: have what it wants ready."""

    session: str
    subscriptions: dict[str, Filter]
    advertisements: dict[str, Filter]


class CancelSession(Message, frozen=True):
    """It will not come after all."""

    session: str
