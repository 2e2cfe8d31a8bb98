"""`Relocation`: moving subscribers as in the book. Events follow entries that point towards the client.

Each broker has a single entry for a client: the neighbour with the latest news of the client. When the client arrives
at another border broker, the border broker *resubscribes*. The first broker on the way with an older entry is the
*junction*: the junction points its entry to the new place, and passes the message on to where the entry pointed before
(*fetch*), until the old border broker, which sends all kept events (*replay*). Events under way to the old broker have
come before the fetch, because links keep order; later events go to the new place, and wait there for the replay. Only
brokers between the two places are involved.

A client may move on at any time. Entries have the client's number of moves, and an older message that meets a newer
entry is answered with the newer: so each visit learns, sooner or later, the client's present place (`visits`).

Without advertisements all brokers have an entry, and the new border broker itself is the junction. With advertisements
only those between the client and publishers have an entry. Publishers come and go, and so do the entries; therefore the
message also goes to the client's last broker, as the client says. As a rule the entries point there anyway.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import msgspec

from fieldfare.events.event import Event, fields_of
from fieldfare.mobility.messages import Acknowledge, MoveIn, MoveOut
from fieldfare.mobility.relocation_messages import (
    ClientGone,
    GapNotice,
    ReleaseEntry,
    Replay,
    Resubscribe,
    VisitComplete,
)
from fieldfare.mobility.sessions import deliveries_due
from fieldfare.mobility.side_table import Recipients, SideTable
from fieldfare.mobility.visits import RelocationVisit
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Message, Send
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.structures.distinct import DistinctTable


class RelocationEntry(NamedTuple):
    """A broker's knowledge of a client's place."""

    news: Resubscribe
    to: str
    """the neighbour on the way to the client; empty if the client is here"""


class Relocation(SideTable):
    """The moving clients, as a single broker knows them."""

    handles: ClassVar[tuple[type[Message], ...]] = (
        *SideTable.handles,
        *(MoveIn, MoveOut, Acknowledge, m.Subscribe, m.Unsubscribe, m.Leave),
        *(Resubscribe, Replay, ReleaseEntry, VisitComplete, ClientGone, m.FilterUpdate, m.Connect),
    )

    def __init__(self, *, patience: float = math.inf, limit: int | None = None) -> None:
        """Make the part; blocked visits wait `patience` seconds for replays; a visit keeps at most `limit` events."""
        self.patience = patience
        self.limit = limit
        self.entries: dict[str, RelocationEntry] = {}
        """by client"""
        self.visits: dict[str, dict[int, RelocationVisit]] = {}
        """by client and number"""
        self._table: DistinctTable[str] = DistinctTable()

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message about moving clients or an event, and pass other messages to the broker."""
        match message:
            case m.Publish() | m.Forward():
                return self.route(message, sender, now)
            case MoveIn():
                return self._move_in(message, sender, now)
            case MoveOut():
                return []  # events for the client are kept in any case
            case Acknowledge():
                for visit in self.visits.get(sender, {}).values():
                    visit.acknowledge(message.number)
                return []
            case m.Subscribe() | m.Unsubscribe() if sender in self.visits:
                return self._change(message, sender, now)
            case Resubscribe():
                return self._follow(message, sender, now)
            case Replay():
                return self._replayed(message, now)
            case ReleaseEntry():
                return self._release(message, sender)
            case VisitComplete():
                return self._completed(message)
            case ClientGone():
                return self._gone(message, sender)
        sends = self.base.submit(message, sender, now)
        match message:
            case m.FilterUpdate(about="advertisements"):
                news = [entry.news for entry in self.entries.values() if entry.to != sender]
                sends += [
                    Send(sender, one)
                    for one in news
                    if any(mine.overlaps(other) for mine in one.subscriptions.values() for other in message.added)
                ]
            case m.Connect():
                news = [entry.news for entry in self.entries.values()]
                sends += [Send(sender, one) for one in news if sender in self._towards(one)]
            case m.Leave() if sender in self.entries and not self.entries[sender].to:
                sends += self._gone(ClientGone(sender, self.entries[sender].news.moves), "")
        return sends

    # Entries

    def _follow(self, news: Resubscribe, sender: str, now: float) -> list[Send]:
        """Point the entry of a client to its new place, and pass the message on."""
        client, entry = news.client, self.entries.get(news.client)
        if entry is None:
            self._point(client, RelocationEntry(news, sender))
            return self._pass_on(news, self._towards(news) | self._back(news), sender)
        old = entry.news
        if news.age <= old.age:
            return self._overtaken(news, entry, sender) if news.moves < old.moves else []
        self._point(client, RelocationEntry(news, sender))
        others = {entry.to} if news.moves == old.moves else {entry.to} | self._back(news)
        if news.subscriptions != old.subscriptions:
            others |= self._towards(old) | self._towards(news)
        sends = self._pass_on(news, others, sender)
        return sends if entry.to or news.moves == old.moves else sends + self._hand_over(news, now)

    def _overtaken(self, news: Resubscribe, entry: RelocationEntry, sender: str) -> list[Send]:
        """Answer old news with the newer, and pass the old news on towards the visit before."""
        answer = [] if sender in ("", entry.to) else [Send(sender, entry.news)]
        return answer + self._pass_on(news, self._back(news), sender)

    def _pass_on(self, news: Resubscribe, others: set[str], sender: str) -> list[Send]:
        return [Send(one, news) for one in sorted(others - {sender, ""})]

    def _point(self, client: str, entry: RelocationEntry | None) -> None:
        old = self.entries.pop(client, None)
        had = set() if old is None else set(old.news.subscriptions.values())
        has = set() if entry is None else set(entry.news.subscriptions.values())
        for filter in had - has:
            self._table.remove(filter, client)
        for filter in has - had:
            self._table.add(filter, client)
        if entry is not None:
            self.entries[client] = entry

    def _advertisers(self, news: Resubscribe) -> set[str] | None:
        """Return the interfaces with overlapping advertisements; None in a network without advertisements."""
        routes = self.base.broker.routes
        if not isinstance(routes, TableRoutes) or routes.advertised is None:
            return None
        table = routes.advertised.advertisements
        wanted = news.subscriptions.values()
        return {one for filter in wanted for other in table.overlapping(filter) for one in table.interfaces(other)}

    def _towards(self, news: Resubscribe) -> set[str]:
        """Return the neighbours on the ways to publishers."""
        found, neighbours = self._advertisers(news), set(self.base.broker.neighbours)
        return neighbours if found is None else neighbours & found

    def _back(self, news: Resubscribe) -> set[str]:
        return {self.base.next_hop(news.source)} if news.source not in ("", self.base.name) else set()

    def _release(self, message: ReleaseEntry, sender: str) -> list[Send]:
        """Drop an entry that serves no publisher, and let the next broker on the way do the same."""
        entry = self.entries.get(message.client)
        if entry is None or not entry.to or entry.to == sender or entry.news.moves != message.moves:
            return []
        publishing = self._advertisers(entry.news)
        if publishing is None or publishing - {entry.to}:
            return []
        self._point(message.client, None)
        return [Send(entry.to, message)]

    def _gone(self, message: ClientGone, sender: str) -> list[Send]:
        entry = self.entries.get(message.client)
        if entry is None or entry.news.moves > message.moves:
            return []
        self._point(message.client, None)
        self.visits.pop(message.client, None)
        return [Send(one, message) for one in self.base.broker.neighbours if one != sender]

    # Visits

    def _move_in(self, message: MoveIn, client: str, now: float) -> list[Send]:
        visits = self.visits.setdefault(client, {})
        if message.moves in visits:
            visits[message.moves].acknowledge(message.received)
            return self._resent(visits[message.moves])
        visit = visits[message.moves] = RelocationVisit(client, message.moves, now, message.received)
        subscriptions = {id: filter for id, filter in message.subscriptions.items() if not filter.is_empty}
        news = Resubscribe(client, visit.number, self.base.name, subscriptions, 0, visit.received, message.source)
        sends = self._follow(news, "", now)
        latest = self.entries[client].news
        if latest.moves > visit.number:  # the message from the client's next broker was faster
            return sends + self._hand_over(latest, now)
        return sends + self._try(visit)

    def _try(self, visit: RelocationVisit) -> list[Send]:
        """Unblock a visit without missing replays."""
        return self._unblock(visit) if visit.session is None and visit.successor is None and not visit.missing else []

    def _unblock(self, visit: RelocationVisit) -> list[Send]:
        missing, waiting = tuple(visit.missing), {piece.border for piece in visit.pieces.values() if piece.border}
        visit.unblock()
        gap = [Send(visit.client, GapNotice(missing, visit.lost))] if missing or visit.lost else []
        visit.lost = 0
        complete = VisitComplete(visit.client, visit.number)
        told = [self.base.envelope(border, complete) for border in sorted(waiting - {self.base.name})]
        return [*gap, *self._resent(visit), *self._completed(complete), *told]

    def _resent(self, visit: RelocationVisit) -> list[Send]:
        """Return the deliveries which a client has not received, as far as its present subscriptions match them."""
        if visit.session is None:
            return []
        wanted = self.entries[visit.client].news.subscriptions
        return [Send(visit.client, delivery) for delivery in deliveries_due(visit.session, wanted)]

    def _completed(self, message: VisitComplete) -> list[Send]:
        for visit in list(self.visits.get(message.client, {}).values()):
            if visit.number < message.moves and visit.successor is not None:
                self._forget(visit)
        return []

    def _hand_over(self, successor: Resubscribe, now: float) -> list[Send]:
        """Send all kept events of a client to its present place."""
        sends: list[Send] = []
        for visit in list(self.visits.get(successor.client, {}).values()):
            if visit.number < successor.moves and visit.successor is None:
                if visit.complete:
                    self._forget(visit)
                pieces = visit.replays_for(successor, self.base.name)
                sends += [send for piece in pieces for send in self._replay(piece, successor, now)]
        return sends + self._release(ReleaseEntry(successor.client, successor.moves), "")

    def _replay(self, piece: Replay, successor: Resubscribe, now: float) -> list[Send]:
        return (
            self._replayed(piece, now)
            if successor.border == self.base.name
            else [self.base.envelope(successor.border, piece)]
        )

    def _replayed(self, piece: Replay, now: float) -> list[Send]:
        """Accept the events which another broker kept, or send them on."""
        visit = self.visits.get(piece.client, {}).get(piece.moves)
        if visit is None or (visit.session is not None and visit.successor is None):
            return []  # the client has left, or has waited for this long enough
        if visit.successor is not None:
            return self._replay(msgspec.structs.replace(piece, moves=visit.successor.moves), visit.successor, now)
        visit.pieces[piece.first] = piece
        return self._try(visit)

    def _forget(self, visit: RelocationVisit) -> None:
        visits = self.visits[visit.client]
        del visits[visit.number]
        if not visits:
            del self.visits[visit.client]

    def _change(self, message: m.Subscribe | m.Unsubscribe, client: str, now: float) -> list[Send]:
        entry = self.entries.get(client)
        if entry is None or entry.to:
            return []  # the client has moved on, and has sent its filters there
        wanted = {id: filter for id, filter in entry.news.subscriptions.items() if id != message.id}
        if isinstance(message, m.Subscribe):
            if message.filter.is_empty:
                return [Send(client, m.Refuse("no event can match this filter", message.id))]
            wanted[message.id] = message.filter
        change = entry.news.change + 1
        return self._follow(msgspec.structs.replace(entry.news, subscriptions=wanted, change=change), "", now)

    # Events

    def recipients(self, event: Event) -> Recipients:
        """Return the clients that are here, and the neighbours on the ways to others."""
        clients: dict[str, list[str]] = {}
        neighbours = set()
        fields = fields_of(event)
        for client in sorted(self._table.match(event)):
            news, to = self.entries[client]
            if to:
                neighbours.add(to)
            else:
                clients[client] = [id for id, filter in news.subscriptions.items() if filter.matches_fields(fields)]
        return Recipients(clients, neighbours)

    def transform(self, send: Send, now: float) -> list[Send]:
        """Number and keep a delivery to a client; a blocked visit buffers the delivery."""
        visits = self.visits.get(send.to)
        if not visits or not isinstance(send.message, m.Deliver):
            return [send]
        numbered = visits[max(visits)].accept(send.message, self.limit)
        return [] if numbered is None else [Send(send.to, numbered)]

    # Time

    def _waiting(self) -> list[RelocationVisit]:
        every = (visit for visits in self.visits.values() for visit in visits.values())
        return [visit for visit in every if visit.session is None and visit.successor is None]

    @property
    def wakes(self) -> float | None:
        """The time at which the first blocked visit stops waiting."""
        if self.patience == math.inf:
            return None
        return min((visit.since + self.patience for visit in self._waiting()), default=None)

    def tick(self, now: float) -> list[Send]:
        """Unblock visits that have waited too long, with a gap."""
        late = [visit for visit in self._waiting() if now >= visit.since + self.patience]
        return [send for visit in late for send in self._unblock(visit)]
