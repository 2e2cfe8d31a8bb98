"""`Inbox`: the deliveries of a client, from the node's frames to the subscriptions, and back as acknowledgements.

A durable session may have subscriptions without a reading program (yet). Their deliveries wait here, are not
acknowledged, and use up credit. Late deliveries of an ended subscription are acknowledged at once. No I/O here, and no
clock: `pause` says how soon the next frame should be sent.
"""

from __future__ import annotations

import logging
from typing import Final

from fieldfare.client.acknowledgements import Allowance, Outstanding, SeparateOutstanding
from fieldfare.client.registrations import REPLIES, Item, SubscriptionRegistration
from fieldfare.protocol import frames as f
from fieldfare.protocol.channels import type_of

MAX_PUBLISHERS: Final = 100_000
"""publishers whose last event is remembered, to detect duplicates"""
MOST_EVENTS: Final = 10_000
"""events that are remembered after their deliveries, to detect duplicates"""
MOMENT: Final = 0.02
"""seconds that acknowledgements wait for more of them, to save frames"""

logger = logging.getLogger("fieldfare.client")


class Inbox:
    """All open deliveries of a client."""

    def __init__(self, credit: int, *, durable: bool, shared: bool = False) -> None:
        """Hold at most `credit` open deliveries; a member of a `shared` session acknowledges each separately."""
        if credit < 1:
            raise ValueError("credit is at least 1: with less, nothing could be delivered")
        self.subscriptions: dict[str, SubscriptionRegistration] = {}
        self.pause: float | None = None
        """seconds until `next_frame` should be called; None: nothing to send"""
        self.may_repeat = 0
        """deliveries up to this number may be events that were delivered before under other numbers"""
        self._durable = durable
        self._shared = shared
        self._outstanding: Outstanding | SeparateOutstanding = SeparateOutstanding() if shared else Outstanding()
        self._allowance = Allowance(credit)
        self._unclaimed: dict[str, list[Item]] = {}
        """deliveries of subscriptions that the program has not entered, by subscription id"""
        self._ended: set[str] = set()
        """ids of subscriptions that have ended"""
        self._last_numbers: dict[tuple[str, str], int] = {}
        """the last event of each publisher and of each channel, for nodes that send the sequence; the publisher heard
        longest ago first"""
        self._known: dict[tuple[str, str, int], None] = {}
        """the last events of such nodes, by publisher, identity and sequence; the oldest first"""

    def credit(self) -> int:
        """Return the credit for a new connection."""
        return self._allowance.reset() if self.subscriptions else self._allowance.withhold()

    @property
    def last(self) -> int:
        """The number of the last delivery."""
        return self._outstanding.last

    def resume(self, acknowledged: int, *, anew: bool, void_from: int = 0) -> None:
        """Go on with a new connection, and perhaps a new session.

        The node knows acknowledgements up to `acknowledged`. If `void_from` is not 0, the node has forgotten
        deliveries from `void_from` on, and will use the numbers for other events.
        """
        if isinstance(self._outstanding, SeparateOutstanding):
            return
        if anew:
            self._outstanding = Outstanding()
        elif 0 < void_from <= self.last:
            forgotten = self.last - void_from + 1
            logger.warning("the node has forgotten %d deliveries: its log went back in time", forgotten)
            self._outstanding = self._outstanding.cut(void_from)
        self._outstanding.resume(acknowledged)

    def give_back(self) -> None:
        """Forget the queued deliveries of an earlier connection, which now go to any member of the session.

        Deliveries that the program has taken are delivered again, too, and acknowledged in vain.
        """
        if not self._shared:
            return
        queues = [subscription.queue for subscription in self.subscriptions.values()]
        for queue in (*queues, *self._unclaimed.values()):
            for item in queue:
                self.acknowledge(item)
            queue.clear()
        self._unclaimed.clear()
        self._outstanding = SeparateOutstanding()

    def add(self, subscription: SubscriptionRegistration) -> None:
        """Add a subscription, with the waiting deliveries of the id."""
        self.subscriptions[subscription.id] = subscription
        self._ended.discard(subscription.id)
        for item in self._unclaimed.pop(subscription.id, ()):
            subscription.add(item)

    def remove(self, subscription: SubscriptionRegistration, *, keep: bool) -> None:
        """Remove a subscription; open deliveries wait for another subscription with the id (`keep`), or are dropped."""
        del self.subscriptions[subscription.id]
        subscription.end()
        left = subscription.clear()
        if keep:
            if left:
                self._unclaimed.setdefault(subscription.id, []).extend(left)
            return
        self._ended.add(subscription.id)
        for item in left:
            self.acknowledge(item)

    def receive(self, deliveries: list[f.Delivery], redelivered: frozenset[int] = frozenset()) -> None:
        """Pass deliveries to the matching subscriptions."""
        for delivery in deliveries:
            self._receive(delivery, redelivered=delivery.number in redelivered)
        self._plan_frame()

    def _receive(self, delivery: f.Delivery, *, redelivered: bool) -> None:
        users, unclaimed = [], []
        for id in delivery.subscriptions:
            user = self.subscriptions.get(id)
            if user is not None:
                if user.accepts(delivery):
                    users.append(user)
            elif self._durable and id not in self._ended and id != REPLIES:
                unclaimed.append(id)
        if not self._shared and self._is_repeated(delivery):
            users, unclaimed = [], []
        parts = len(users) + len(unclaimed)
        new = self._outstanding.add(delivery.number, parts)
        self._allowance.receive(new=new and parts > 0)
        if not new:
            return
        item = Item(self._outstanding, delivery, redelivered=redelivered)
        for user in users:
            user.add(item)
        for id in unclaimed:
            self._unclaimed.setdefault(id, []).append(item)
        if unclaimed and self._allowance.open == self._allowance.limit:
            names = ", ".join(map(repr, self._unclaimed))
            logger.warning(
                "no more can be delivered: events wait for subscriptions that the program has not entered: %s", names
            )

    def _is_repeated(self, delivery: f.Delivery) -> bool:
        """Tell whether an earlier node, failed since, has delivered the event, or a later one of its channel.

        Before a later event of the channel, the earlier node has delivered whatever was due. The replica holder may
        have more: it hears of a change of filters later. A node that was only silent passes on late what it has
        delivered long ago: such an event comes under any number.
        """
        if not delivery.sequence:
            return False
        event = delivery.publisher, delivery.by, delivery.sequence
        known = event in self._known
        self._known[event] = None
        if len(self._known) > MOST_EVENTS:
            del self._known[next(iter(self._known))]
        passed = self._note((delivery.publisher, delivery.by), delivery.sequence)
        if delivery.channel_number:
            passed |= self._note(("", type_of(delivery.by)), delivery.channel_number)
        return known or (passed and delivery.number <= self.may_repeat)

    def _note(self, origin: tuple[str, str], number: int) -> bool:
        """Note the last event of a publisher or a channel; tell whether the number was reached before."""
        last = self._last_numbers.pop(origin, -1)
        self._last_numbers[origin] = max(last, number)  # at the end: heard most recently
        if len(self._last_numbers) > MAX_PUBLISHERS:
            del self._last_numbers[next(iter(self._last_numbers))]
        return number <= last

    def acknowledge(self, item: Item) -> None:
        """Note the acknowledgement of a subscription for a delivery."""
        if item.outstanding.acknowledge(item.delivery.number):
            self._allowance.release()
            self._plan_frame()

    def next_frame(self) -> f.Frame | None:
        """Return the next frame to send: credit before acknowledgements, lest the node wait."""
        if self.subscriptions and (more := self._allowance.grant()):
            return f.Credit(more)
        frame = self.acknowledgement()
        if frame is None:
            self.pause = None
        return frame

    def acknowledgement(self) -> f.Acknowledge | None:
        """Return the acknowledgement due now, if any."""
        return self._outstanding.frame()

    def end(self, error: Exception | None) -> None:
        """End all subscriptions, with an error or without; queued deliveries can still be taken."""
        for subscription in self.subscriptions.values():
            subscription.end(error)

    def _plan_frame(self) -> None:
        if self._allowance.is_low:
            self.pause = 0.0
        elif self.pause is None:
            self.pause = MOMENT
