"""Messages between clients, access servers and resolution servers, beside those of `protocol.messages`.

A channel may move during a conversation. So requests to a channel are numbered (`ChannelRequest`), and so are its
answers (`ChannelReply`): on whatever ways they come, they are processed in order, and once.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.protocol.messages import Forward, Message

Position: TypeAlias = dict[str, int]
"""progress of events: for each server that counts events, the number of the last event"""
Matrix: TypeAlias = dict[str, dict[str, int]]
"""numbers of messages by sender and receiver"""


def join(known: Matrix, more: Matrix) -> None:
    """Raise the known numbers to those of another matrix, in place."""
    for sender, counts in more.items():
        mine = known.setdefault(sender, {})
        for receiver, count in counts.items():
            mine[receiver] = max(count, mine.get(receiver, 0))


def copied(matrix: Matrix) -> Matrix:
    """Return an independent copy of a matrix."""
    return {sender: dict(counts) for sender, counts in matrix.items()}


# From clients


class Attach(Message, frozen=True):
    """A client arrives and continues its session, from wherever the session was."""

    session: str = ""
    """name of the session, if it differs from the client's"""
    app: str = ""
    """name of the application within a shared session; a former client of the same name is replaced"""
    received: int | None = None
    """number of the last received delivery, if known"""
    source: str = ""
    """the client's last access server, if any"""
    moves: int = 0
    """number of attachments so far: requests after the previous one come before those after this one"""


class SubscribePast(Message, frozen=True):
    """A subscription with some matching past events; only for a session without deliveries."""

    id: str
    filter: Filter
    last: int


class WatchInterest(Message, frozen=True):
    """A request for the interest of all clients, now and after each change, to spare unwanted events."""


# To clients


class InterestReply(Message, frozen=True):
    """The interest of all clients. A server does not know a new filter sooner than it informs the watchers."""

    filters: tuple[Filter, ...]


class MoveRequest(Message, frozen=True):
    """A request to a client to go to another access server."""

    to: str


class SessionMoved(Message, frozen=True):
    """The client's session was called to another access server; the client follows, or calls it back by `Attach`."""

    session: str
    to: str


# From operators


class MoveClients(Message, frozen=True):
    """A request to send the clients of some sessions to another access server."""

    to: str
    sessions: int = 1


class RelocateChannel(Message, frozen=True):
    """A request to host a channel elsewhere."""

    channel: str
    to: str


class BalanceLoad(Message, frozen=True):
    """A request to compare loads with other servers, and to give a channel away if loads become more even."""


# From access servers to channels


class ChannelRequest(Message, frozen=True):
    """A request to a channel, wherever the channel is."""

    channel: str
    server: str
    number: int
    clock: int
    content: Message


class ChannelEvent(Message, frozen=True):
    """An event for the channel to order and to deliver."""

    event: Forward


class ChannelSubscribe(Message, frozen=True):
    """A change of the subscriptions of an access server's clients."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class PastRequest(Message, frozen=True):
    """A request for some matching past events, for a session."""

    session: str
    filter: Filter
    last: int


class ChannelAdvertise(Message, frozen=True):
    """A change of the advertisements of an access server; the answer is the overlapping filters of others."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


# From channels to access servers


class ChannelReply(Message, frozen=True):
    """An answer of a channel to an access server."""

    channel: str
    number: int
    clock: int
    content: Message


class RequestDone(Message, frozen=True):
    """A request is processed; it is in force after the confirmations of the servers in `audience`."""

    number: int
    stamp: int
    audience: tuple[str, ...] = ()


class ServerInterest(Message, frozen=True):
    """A change of another server's filters that overlap the recipient's advertisements, by the request of a number."""

    server: str
    number: int
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class PastEvents(Message, frozen=True):
    """Past events for a session."""

    session: str
    number: int
    """number of the request"""
    events: tuple[tuple[int, Forward], ...]


class StampedEvent(Message, frozen=True):
    """An event with its place in the order of all events."""

    stamp: int
    event: Forward


class ChannelRedirect(Message, frozen=True):
    """The present server of a channel."""

    channel: str
    server: str


# Clocks of resolution servers


class ClockRequest(Message, frozen=True):
    """A question whether events up to a time may still come."""

    clock: int


class ClockReply(Message, frozen=True):
    """No events up to this time will come."""

    clock: int


# Between resolution servers


class ChannelState(msgspec.Struct):
    """The whole state of a channel."""

    moves: int = 0
    next: dict[str, int] = {}
    """number of the next request of each access server"""
    early: dict[str, dict[int, ChannelRequest]] = {}
    """requests that have overtaken others"""
    replies: dict[str, int] = {}
    subscriptions: dict[str, dict[Filter, None]] = {}
    advertisements: dict[str, dict[Filter, None]] = {}
    ever_advertised: dict[str, dict[Filter, None]] = {}
    """advertisements including ended ones, whose events may still be on their way"""
    known: dict[str, dict[str, dict[Filter, None]]] = {}
    """the filters of each server that the advertising servers know"""
    log: list[tuple[int, Forward]] = []
    events: int = 0
    """number of events so far"""
    load: float = 0.0
    """number of events, in which older events count less"""
    since: float = 0.0
    """time of the load"""


class ChannelTransfer(Message, frozen=True):
    """A channel moves to the recipient."""

    channel: str
    state: ChannelState
    clock: int


class ChannelMoved(Message, frozen=True):
    """A channel is now at the sender."""

    channel: str
    moves: int


class LoadReply(Message, frozen=True):
    """The load of the sender."""

    load: float


class LoadRequest(Message, frozen=True):
    """A question for the load of the recipient."""


# Where sessions are


class SessionCall(Message, frozen=True):
    """A call of a session to a server, sent to the home of the session's name, by way of the client's last server.

    So the moves of a client arrive in their order.
    """

    session: str
    server: str
    call: int
    """distinguishes the calls of a server"""
    after: tuple[str, int] = ("", 0)
    """the client, and its number of moves before"""


class SessionCallReply(Message, frozen=True):
    """The number of the called visit; the visit before was at another server, or nowhere."""

    session: str
    call: int
    visit: int
    source: str
    context: Matrix = msgspec.field(default_factory=dict)
    """context of ended sessions"""


class SessionEnd(Message, frozen=True):
    """A session is over; later events of its clients may have been caused by the context."""

    session: str
    visit: int
    context: Matrix


class SessionEndReply(Message, frozen=True):
    """The home has forgotten the session: no further call will come."""

    session: str
    visit: int


# Between access servers


class CausalMessage(Message, frozen=True):
    """A message in causal order."""

    domain: str
    content: Message
    number: int
    """number of events which its sender has published"""
    sent: Matrix


class GatewayInterest(Message, frozen=True):
    """A change of a gateway's filters, sent to all others, because no channel is between them."""

    domain: str
    channel: str
    change: ServerInterest


class InterestConfirmation(Message, frozen=True):
    """The sender knows the filters of a numbered request."""

    domain: str
    channel: str
    number: int


class SessionRequest(Message, frozen=True):
    """A call of a session from its visit at the recipient."""

    session: str
    visit: int


class SessionOffer(Message, frozen=True):
    """The filters of a called session; the recipient subscribes, and then fetches the rest."""

    session: str
    visit: int
    subscriptions: dict[str, Filter]
    advertisements: dict[str, Filter]


class SessionFetch(Message, frozen=True):
    """From a position on the sender has the events: the recipient must send those before."""

    session: str
    visit: int
    cut: Position


class SessionTransfer(Message, frozen=True):
    """A session with all events up to a position; its next events may have been caused by the context."""

    session: str
    visit: int
    value: SharedSession
    position: Position
    context: Matrix


class PrepareSession(Message, frozen=True):
    """A session may come soon: the recipient subscribes in advance."""

    session: str
    subscriptions: dict[str, Filter]
    advertisements: dict[str, Filter]


class CancelSession(Message, frozen=True):
    """A prepared session will not come after all."""

    session: str
