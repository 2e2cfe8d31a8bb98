"""`Relocation`: subscribers that move, the book's way. What is for a client follows entries that point to where it is.

Each broker has one entry for a client: the neighbour from which it last heard of it. When the client comes to another
border broker, that one *resubscribes*. The first broker on the way that has an older entry is the *junction*: it points
its entry to the new place, and lets the resub go on to where the entry pointed before (*fetch*), and so on to the old
border broker. That one sends all it has kept (*replay*). Whatever was under way to it had come before the fetch, for
links keep their order; whatever comes later goes to the new place, and waits there until the replay has come. Only
brokers between the two places notice.

A client may move on at any time. Entries know how often it had moved, and an older resub that meets a newer entry is
answered with that: so each stay hears, sooner or later, where its client is now (`stays`).

Without advertisements all brokers have an entry, and the new border broker itself is the junction. With advertisements
only those between the client and publishers have one. Publishers come and go, and so does what shows the way; therefore
a resub also goes to where the client says that it was. As a rule that is where entries point anyway.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import msgspec

from fieldfare.events.event import Event, fields_of
from fieldfare.mobility.messages import Acknowledge, MoveIn, MoveOut
from fieldfare.mobility.relocation_messages import Gap, Gone, Release, Replay, Resub, Settled
from fieldfare.mobility.sessions import due
from fieldfare.mobility.side_table import SideTable, Wanting
from fieldfare.mobility.visits import Visit
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Message, Send
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.structures.distinct import DistinctTable


class RelocationEntry(NamedTuple):
    """What a broker knows of a client."""

    news: Resub
    to: str
    """the neighbour behind which it is; it is here, if that is empty"""


class Relocation(SideTable):
    """The clients that move, as one broker knows them."""

    hears: ClassVar[tuple[type[Message], ...]] = (
        *SideTable.hears,
        *(MoveIn, MoveOut, Acknowledge, m.Subscribe, m.Unsubscribe, m.Leave),
        *(Resub, Replay, Release, Settled, Gone, m.FilterUpdate, m.Connect),
    )

    def __init__(self, *, patience: float = math.inf, limit: int | None = None) -> None:
        """Blocked stays wait for replays so many seconds; a stay keeps so many events for a client that is away."""
        self.patience = patience
        self.limit = limit
        self.entries: dict[str, RelocationEntry] = {}
        """by client"""
        self.stays: dict[str, dict[int, Visit]] = {}
        """by client and number"""
        self._table: DistinctTable[str] = DistinctTable()

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take what is about clients that move, and let the broker have the rest."""
        match message:
            case m.Publish() | m.Forward():
                return self.pass_by(message, sender, now)
            case MoveIn():
                return self._move_in(message, sender, now)
            case MoveOut():
                return []  # what is for the client is kept in any case
            case Acknowledge():
                for stay in self.stays.get(sender, {}).values():
                    stay.acknowledge(message.number)
                return []
            case m.Subscribe() | m.Unsubscribe() if sender in self.stays:
                return self._change(message, sender, now)
            case Resub():
                return self._follow(message, sender, now)
            case Replay():
                return self._replayed(message, now)
            case Release():
                return self._release(message, sender)
            case Settled():
                return self._settled(message)
            case Gone():
                return self._gone(message, sender)
        sends = self.base.say(message, sender, now)
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
                sends += self._gone(Gone(sender, self.entries[sender].news.moves), "")
        return sends

    # Entries

    def _follow(self, news: Resub, sender: str, now: float) -> list[Send]:
        """Hear where a client is."""
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

    def _overtaken(self, news: Resub, entry: RelocationEntry, sender: str) -> list[Send]:
        """Answer what is known better, and let it find the stay before, of which the newer word may know nothing."""
        answer = [] if sender in ("", entry.to) else [Send(sender, entry.news)]
        return answer + self._pass_on(news, self._back(news), sender)

    def _pass_on(self, news: Resub, others: set[str], sender: str) -> list[Send]:
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

    def _advertisers(self, news: Resub) -> set[str] | None:
        """The interfaces from which something comes that a client may want; None if nobody says so."""
        routes = self.base.broker.routes
        if not isinstance(routes, TableRoutes) or routes.advertised is None:
            return None
        table = routes.advertised.advertisements
        wanted = news.subscriptions.values()
        return {one for filter in wanted for other in table.overlapping(filter) for one in table.interfaces(other)}

    def _towards(self, news: Resub) -> set[str]:
        """The neighbours behind which there may be publishers."""
        found, neighbours = self._advertisers(news), set(self.base.broker.neighbours)
        return neighbours if found is None else neighbours & found

    def _back(self, news: Resub) -> set[str]:
        return {self.base.way(news.source)} if news.source not in ("", self.base.name) else set()

    def _release(self, message: Release, sender: str) -> list[Send]:
        """Give an entry up that serves nobody, and let the next broker on the way do the same."""
        entry = self.entries.get(message.client)
        if entry is None or not entry.to or entry.to == sender or entry.news.moves != message.moves:
            return []
        publishing = self._advertisers(entry.news)
        if publishing is None or publishing - {entry.to}:
            return []
        self._point(message.client, None)
        return [Send(entry.to, message)]

    def _gone(self, message: Gone, sender: str) -> list[Send]:
        entry = self.entries.get(message.client)
        if entry is None or entry.news.moves > message.moves:
            return []
        self._point(message.client, None)
        self.stays.pop(message.client, None)
        return [Send(one, message) for one in self.base.broker.neighbours if one != sender]

    # Stays

    def _move_in(self, message: MoveIn, client: str, now: float) -> list[Send]:
        stays = self.stays.setdefault(client, {})
        if message.moves in stays:
            stays[message.moves].acknowledge(message.taken)
            return self._resent(stays[message.moves])
        stay = stays[message.moves] = Visit(client, message.moves, now, message.taken)
        subscriptions = {id: filter for id, filter in message.subscriptions.items() if not filter.is_empty}
        news = Resub(client, stay.number, self.base.name, subscriptions, 0, stay.taken, message.source)
        sends = self._follow(news, "", now)
        latest = self.entries[client].news
        if latest.moves > stay.number:  # word from where it has gone since was faster
            return sends + self._hand_over(latest, now)
        return sends + self._try(stay)

    def _try(self, stay: Visit) -> list[Send]:
        """Unblock a stay if nothing is missing."""
        return self._unblock(stay) if stay.session is None and stay.heir is None and not stay.missing else []

    def _unblock(self, stay: Visit) -> list[Send]:
        missing, waiting = tuple(stay.missing), {piece.border for piece in stay.pieces.values() if piece.border}
        stay.unblock()
        gap = [Send(stay.client, Gap(missing, stay.lost))] if missing or stay.lost else []
        stay.lost = 0
        settled = Settled(stay.client, stay.number)
        told = [self.base.post(border, settled) for border in sorted(waiting - {self.base.name})]
        return [*gap, *self._resent(stay), *self._settled(settled), *told]

    def _resent(self, stay: Visit) -> list[Send]:
        """All that a client has not got, as far as it still wants it."""
        if stay.session is None:
            return []
        wanted = self.entries[stay.client].news.subscriptions
        return [Send(stay.client, delivery) for delivery in due(stay.session, wanted)]

    def _settled(self, message: Settled) -> list[Send]:
        for stay in list(self.stays.get(message.client, {}).values()):
            if stay.number < message.moves and stay.heir is not None:
                self._forget(stay)
        return []

    def _hand_over(self, heir: Resub, now: float) -> list[Send]:
        """Send all that was kept for a client to where it is now."""
        sends: list[Send] = []
        for stay in list(self.stays.get(heir.client, {}).values()):
            if stay.number < heir.moves and stay.heir is None:
                if stay.complete:
                    self._forget(stay)
                pieces = stay.estate(heir, self.base.name)
                sends += [send for piece in pieces for send in self._replay(piece, heir, now)]
        return sends + self._release(Release(heir.client, heir.moves), "")

    def _replay(self, piece: Replay, heir: Resub, now: float) -> list[Send]:
        return self._replayed(piece, now) if heir.border == self.base.name else [self.base.post(heir.border, piece)]

    def _replayed(self, piece: Replay, now: float) -> list[Send]:
        """Hear what was kept elsewhere."""
        stay = self.stays.get(piece.client, {}).get(piece.moves)
        if stay is None or (stay.session is not None and stay.heir is None):
            return []  # the client has left, or has waited for this long enough
        if stay.heir is not None:
            return self._replay(msgspec.structs.replace(piece, moves=stay.heir.moves), stay.heir, now)
        stay.pieces[piece.first] = piece
        return self._try(stay)

    def _forget(self, stay: Visit) -> None:
        stays = self.stays[stay.client]
        del stays[stay.number]
        if not stays:
            del self.stays[stay.client]

    def _change(self, message: m.Subscribe | m.Unsubscribe, client: str, now: float) -> list[Send]:
        entry = self.entries.get(client)
        if entry is None or entry.to:
            return []  # it has gone on, and has said there what it wants
        wanted = {id: filter for id, filter in entry.news.subscriptions.items() if id != message.id}
        if isinstance(message, m.Subscribe):
            if message.filter.is_empty:
                return [Send(client, m.Refuse("no event can match this filter", message.id))]
            wanted[message.id] = message.filter
        change = entry.news.change + 1
        return self._follow(msgspec.structs.replace(entry.news, subscriptions=wanted, change=change), "", now)

    # Events

    def wanting(self, event: Event) -> Wanting:
        """The clients that are here, and the neighbours behind which others are."""
        clients: dict[str, list[str]] = {}
        neighbours = set()
        fields = fields_of(event)
        for client in sorted(self._table.match(event)):
            news, to = self.entries[client]
            if to:
                neighbours.add(to)
            else:
                clients[client] = [id for id, filter in news.subscriptions.items() if filter.matches_fields(fields)]
        return Wanting(clients, neighbours)

    def overhear(self, send: Send, now: float) -> list[Send]:
        """Number what goes to a client, and keep it; put it aside while the stay is blocked."""
        stays = self.stays.get(send.to)
        if not stays or not isinstance(send.message, m.Deliver):
            return [send]
        numbered = stays[max(stays)].take(send.message, self.limit)
        return [] if numbered is None else [Send(send.to, numbered)]

    # Time

    def _waiting(self) -> list[Visit]:
        every = (stay for stays in self.stays.values() for stay in stays.values())
        return [stay for stay in every if stay.session is None and stay.heir is None]

    @property
    def wakes(self) -> float | None:
        """When the first blocked stay has waited long enough."""
        if self.patience == math.inf:
            return None
        return min((stay.since + self.patience for stay in self._waiting()), default=None)

    def tick(self, now: float) -> list[Send]:
        """Let those go on that have waited long enough, with a gap."""
        late = [stay for stay in self._waiting() if now >= stay.since + self.patience]
        return [send for stay in late for send in self._unblock(stay)]
