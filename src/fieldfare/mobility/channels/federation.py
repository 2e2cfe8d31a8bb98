"""`Gateway`: a connection between domains, which subscribes on each side for the other sides and brings events across.

Gateways are members of a *backbone*, a causal domain of their own, or of several. There are three ways to learn the
filters of the others. At a *rendezvous*: a backbone with channels, hosted by backbone servers by the hashes of their
names. By *multicast*: a backbone without channels, where each gateway informs all others (`MulticastMember`). Along a
*tree*: a backbone for each edge, with a gateway at each end. Events always go straight from gateway to gateway.

A gateway confirms a filter only when the filter is in force on its other sides; so a confirmed filter is in force in
all domains. A gateway brings events across in sequence: therefore causal order holds throughout, and in an ordered
domain all servers see the events of other domains in the same order, too. Two domains may differ in their orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels import messages as c
from fieldfare.mobility.channels.causal import CausalMember
from fieldfare.mobility.channels.channel import change
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import ChannelMember, Ticket
from fieldfare.protocol.messages import FilterUpdate, Forward, Message, Send

_ACROSS: Final = "across"
"""all that is brought to the other side comes from one publisher, as it were"""


class MulticastMember(CausalMember):
    """A gateway in a backbone without channels, which informs all others of its filters."""

    def __init__(self, name: str, domain: Domain, gateways: Collection[str]) -> None:
        super().__init__(name, domain)
        self._others = sorted(set(gateways) - {name})
        self._wants: dict[tuple[str, str], dict[Filter, None]] = {}
        """filters of each other gateway, by channel"""

    def request(self, channel: str, content: Message) -> list[Send]:
        """Send subscriptions to all gateways; advertisements are useless, because all gateways learn all filters."""
        if not isinstance(content, c.ChannelSubscribe) or not self._others:
            return []
        number = self._requests[channel] = self._requests.get(channel, 0) + 1
        self._open[channel, number] = set(self._others)
        told = c.GatewayInterest(
            self.domain.name, channel, c.ServerInterest(self.name, number, content.added, content.removed)
        )
        return [Send(other, told) for other in self._others]

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Process a message of another gateway."""
        if isinstance(message, c.GatewayInterest):
            wants = self._wants.setdefault((message.channel, sender), {})
            before = dict(wants)
            change(wants, message.change.added, message.change.removed)
            added = tuple(filter for filter in wants if filter not in before)
            removed = tuple(filter for filter in before if filter not in wants)
            return self._handle(message.channel, c.ServerInterest(sender, message.change.number, added, removed))
        return super().receive(message, sender)


class _Debt(NamedTuple):
    """A filter of one side, to be confirmed when the other sides know the filter."""

    side: int
    channel: str
    interest: c.ServerInterest
    tickets: tuple[tuple[ChannelMember, frozenset[Ticket]], ...]

    @property
    def is_due(self) -> bool:
        """Whether the filter is in force on all other sides."""
        return all(other.in_force(tickets) for other, tickets in self.tickets)


class Gateway:
    """A member of a domain and of its backbone, or of a backbone for each neighbour."""

    wakes: float | None = None

    def __init__(self, *sides: ChannelMember) -> None:
        self.name = sides[0].name
        self.sides = sides
        self.across = 0
        """number of events brought to other sides"""
        self._subscribed: tuple[Counter[Filter], ...] = tuple(Counter() for _ in sides)
        """for each side, the filters of the other sides together, with their numbers of sides"""
        self._debts: list[_Debt] = []
        self._started = False

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message on the side from which it came; return the messages to send."""
        sends: list[Send] = []
        if not self._started:
            self._started = True
            sends += [send for side in self.sides for one in side.domain.channels for send in side.advertise_all(one)]
        for side in self.sides:
            named = (
                isinstance(message, c.CausalMessage | c.InterestConfirmation | c.GatewayInterest)
                and message.domain == side.domain.name
            )
            if named or sender in side.domain.servers:
                sends += side.receive(message, sender)
        return sends + self._go_on()

    def tick(self, now: float) -> list[Send]:
        """Return nothing: a gateway has no timers."""
        return []

    def snapshot(self) -> bytes:
        """Return the filters of each side, encoded."""
        return msgspec.msgpack.encode([[str(filter) for filter in subscribed] for subscribed in self._subscribed])

    def _go_on(self) -> list[Send]:
        sends = self._confirm()
        while any(side.arrived or side.news for side in self.sides):
            for number, side in enumerate(self.sides):
                news, side.news = side.news, []
                for channel, interest in news:
                    sends += self._note(number, channel, interest)
                arrived, side.arrived = side.arrived, []
                for _, event in arrived:
                    if event.source != self.name:  # otherwise the event came from another side
                        sends += self._bring(number, event)
            sends += self._confirm()
        return sends

    def _others(self, number: int) -> list[tuple[ChannelMember, Counter[Filter]]]:
        pairs = enumerate(zip(self.sides, self._subscribed, strict=True))
        return [pair for other, pair in pairs if other != number]

    def _bring(self, number: int, event: Forward) -> list[Send]:
        self.across += len(self.sides) - 1
        brought = msgspec.structs.replace(event, source=self.name)
        return [send for other, _ in self._others(number) for send in other.publish(_ACROSS, brought)]

    def _note(self, number: int, channel: str, interest: c.ServerInterest) -> list[Send]:
        """Apply a change of a side's filters on the other sides."""
        sends: list[Send] = []
        for other, subscribed in self._others(number):
            added = tuple(filter for filter in interest.added if not subscribed[filter])
            subscribed.update(interest.added)
            subscribed.subtract(interest.removed)
            removed = tuple(filter for filter in interest.removed if not subscribed[filter])
            for filter in removed:
                del subscribed[filter]
            sends += other.apply(FilterUpdate(added, removed)) if added or removed else []
        if interest.number:
            tickets = tuple((other, other.tickets(interest.added)) for other, _ in self._others(number))
            self._debts.append(_Debt(number, channel, interest, tickets))
        return sends

    def _confirm(self) -> list[Send]:
        paid = [debt for debt in self._debts if debt.is_due]
        self._debts = [debt for debt in self._debts if debt not in paid]
        sends: list[Send] = []
        for side, channel, interest, _ in paid:
            member = self.sides[side]
            sends += member.confirm(
                interest.server, c.InterestConfirmation(member.domain.name, channel, interest.number)
            )
        return sends
