"""`Inbox`: what the node delivers, to be given to those who subscribed, and who is done with what.

A session that survives may have subscriptions that nobody uses (yet). What comes for them is not done with, so it waits
here, and uses up credit. What still comes for a subscription that is over is done with at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from fieldfare.client.acknowledgements import Allowance, Outstanding
from fieldfare.client.request_reply import INBOX
from fieldfare.client.subscription import AnySubscription, Item
from fieldfare.protocol import frames as f

MOST: Final = 100_000
"""publishers whose last events are remembered"""
MOMENT: Final = 0.02
"""seconds for which acknowledgements wait for more of them"""

logger = logging.getLogger("fieldfare.client")


class Inbox:
    """All deliveries of a client that it is not done with."""

    def __init__(self, credit: int, wake: Callable[[], None], *, durable: bool) -> None:
        """Nothing came yet; `wake` is called when there is something to say to the node."""
        if credit < 1:
            raise ValueError("credit is at least 1: with less, nothing could be delivered")
        self.subscriptions: dict[str, AnySubscription] = {}
        self._wake = wake
        self._durable = durable
        self._book = Outstanding()
        self._allowance = Allowance(credit)
        self._held: dict[str, list[Item]] = {}
        """by the ids of subscriptions that nobody uses"""
        self._ended: set[str] = set()
        """ids of subscriptions that are over"""
        self.doubt = 0
        """up to which number deliveries may be events that came before under other numbers"""
        self._had: dict[tuple[str, str], int] = {}
        """by publisher: its last event that came, if the node says how it counts them"""
        self._timer: asyncio.TimerHandle | None = None

    def credit(self) -> int:
        """How many deliveries may come on a new connection."""
        return self._allowance.begin() if self.subscriptions else self._allowance.wait()

    @property
    def seen(self) -> int:
        """The number of the last delivery that came."""
        return self._book.seen

    def resume(self, acknowledged: int, *, anew: bool, void: int = 0) -> None:
        """There is a new connection, and perhaps a new session, of which the node knows that so much is done with.

        Numbers from `void` on that came before mean other events now.
        """
        if anew:
            self._book = Outstanding()
        elif 0 < void <= self._book.seen:
            forgotten = self._book.seen - void + 1
            logger.warning("the node has forgotten %d deliveries that came before: it went back in time", forgotten)
            self._book = self._book.cut(void)
        self._book.resume(acknowledged)

    def add(self, subscription: AnySubscription) -> None:
        """Somebody subscribed."""
        self.subscriptions[subscription.id] = subscription
        self._ended.discard(subscription.id)
        for item in self._held.pop(subscription.id, ()):
            subscription.put(item)

    def remove(self, subscription: AnySubscription, *, keep: bool) -> None:
        """Somebody does not want any more; what he is not done with is dropped, or waits for another one."""
        del self.subscriptions[subscription.id]
        subscription.end()
        left = subscription.left()
        if keep:
            if left:
                self._held.setdefault(subscription.id, []).extend(left)
            return
        self._ended.add(subscription.id)
        for item in left:
            self.finish(item)

    def take(self, deliveries: list[f.Delivery]) -> None:
        """Something came."""
        for delivery in deliveries:
            self._take(delivery)
        self._speak_soon()

    def _take(self, delivery: f.Delivery) -> None:
        users, held = [], []
        for id in delivery.subscriptions:
            user = self.subscriptions.get(id)
            if user is not None:
                if user.wants(delivery):
                    users.append(user)
            elif self._durable and id not in self._ended and id != INBOX:
                held.append(id)
        if not self._is_new(delivery):
            users, held = [], []
        parts = len(users) + len(held)
        new = self._book.came(delivery.number, parts)
        self._allowance.came(new=new and parts > 0)
        if not new:
            return
        item = Item(self._book, delivery)
        for user in users:
            user.put(item)
        for id in held:
            self._held.setdefault(id, []).append(item)
        if held and self._allowance.here == self._allowance.limit:
            names = ", ".join(map(repr, self._held))
            logger.warning("no more can be delivered: subscribe to what waits for this session under %s", names)

    def _is_new(self, delivery: f.Delivery) -> bool:
        """Whether it did not come before, from a node that has failed since."""
        if not delivery.sequence:
            return True
        publisher = delivery.publisher, delivery.by
        last = self._had.pop(publisher, -1)
        self._had[publisher] = max(last, delivery.sequence)  # behind the others: the first is the longest ago
        if len(self._had) > MOST:
            del self._had[next(iter(self._had))]
        return delivery.number > self.doubt or delivery.sequence > last

    def finish(self, item: Item) -> None:
        """A subscription is done with something."""
        if item.book.finish(item.delivery.number):
            self._allowance.went()
            self._speak_soon()

    def next_frame(self) -> f.Frame | None:
        """What there is to say to the node."""
        if self.subscriptions and (more := self._allowance.more()):
            return f.Credit(more)
        return self.acknowledgement()

    def acknowledgement(self) -> f.Acknowledge | None:
        """What was not acknowledged yet."""
        number = self._book.due()
        return f.Acknowledge(number) if number else None

    def end(self, error: Exception | None) -> None:
        """Nothing comes any more."""
        if self._timer is not None:
            self._timer.cancel()
        for subscription in self.subscriptions.values():
            subscription.end(error)

    def _speak_soon(self) -> None:
        if self._allowance.pressing:
            self._wake()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MOMENT, self._speak)

    def _speak(self) -> None:
        self._timer = None
        self._wake()
