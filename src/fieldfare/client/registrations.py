"""`Registration`: a subscription or an advertisement inside the engine of a client.

A registration remembers whether the node has answered, and how to ask again after a broken connection. No I/O here,
and no clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from fieldfare.client.acknowledgements import Outstanding, SeparateOutstanding
from fieldfare.client.errors import Refused
from fieldfare.protocol import frames as f

Since = int | float | str | None
Answer = Callable[[Exception | None], None]
"""called with None when the node has done what was requested, else with the error"""

REPLIES: Final = "~inbox"
"""the id of the subscription to the replies of other clients; see `request_reply`"""
NO_SUBSCRIPTION: Final = "~nobody"
"""an id that no subscription has: to unsubscribe from this id only asks whether all earlier frames are answered"""


@runtime_checkable
class AnyPattern(Protocol):
    """A pattern of `fieldfare.patterns`, which stands on a higher floor."""

    @property
    def text(self) -> str:
        """The pattern as a text."""

    @property
    def expression(self) -> object:
        """The events of the pattern, and how they follow each other."""


class WrittenPattern(str):
    """The text of a pattern, where other subscriptions have a filter."""

    __slots__ = ()


class Item:
    """A delivery, and the count of deliveries in which the delivery is open."""

    __slots__ = ("delivery", "outstanding", "redelivered")

    def __init__(
        self, outstanding: Outstanding | SeparateOutstanding, delivery: f.Delivery, *, redelivered: bool = False
    ) -> None:
        self.outstanding = outstanding
        self.delivery = delivery
        self.redelivered = redelivered


class Registration:
    """A filter, known to the node under an id from `opened` until `closed`."""

    def __init__(self, id: str, filter: object) -> None:
        self.id = id
        self.filter = filter
        self.opened = False
        """whether the client has asked the node for this registration"""
        self.closed = False
        """whether the program has left its block; the node may not know yet"""
        self._answer: Answer | None = None

    @property
    def pending(self) -> bool:
        """Tell whether the first answer of the node is still missing."""
        return self._answer is not None

    def open(self, answer: Answer) -> None:
        """Wait for the first answer of the node."""
        self.opened = True
        self._answer = answer

    def resolve(self, error: Exception | None) -> None:
        """Take an answer of the node. A refusal after the first answer ends the registration."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(error)
        elif isinstance(error, Refused):
            self.end(error)

    def frame(self, request: int, *, anew: bool) -> f.Frame:
        """Return the request to the node; `anew` if the node does not know the registration yet."""
        raise NotImplementedError

    def end(self, error: Exception | None = None) -> None:
        """Note the end of the registration at the node."""


class AdvertisementRegistration(Registration):
    """An advertisement. If the node drops the advertisement, the next publication is refused, so `end` does nothing."""

    def frame(self, request: int, *, anew: bool) -> f.Advertise:
        """Return the request, which is the same each time."""
        del anew
        return f.Advertise(request, self.id, self.filter)


class SubscriptionRegistration(Registration):
    """A subscription with its open deliveries: queued, or taken by the program and not acknowledged."""

    def __init__(
        self, id: str, filter: object, since: Since, *, keep: bool, on_change: Callable[[], None] = lambda: None
    ) -> None:
        """Make a subscription; `on_change` is called when there is a delivery to take, and at the end."""
        super().__init__(id, filter)
        self.keep = keep
        """whether the session keeps the subscription when the program leaves its block"""
        self.on_change = on_change
        self.queue: deque[Item] = deque()
        """deliveries that the program has not taken"""
        self.ended: Exception | None = None
        """why no delivery will follow: an error, or StopAsyncIteration"""
        self._taken: dict[Item, None] = {}
        """deliveries that the program has taken and not acknowledged"""
        self._since = since
        self._last = (0.0, 0)
        """time and position of the last delivery"""
        self._moved = False
        """whether the subscription goes on at another node, which has other times and positions"""

    def frame(self, request: int, *, anew: bool) -> f.Frame:
        """Return the request; a node without the subscription (`anew`) is asked for the events since the last."""
        time, position = self._last
        since = self._since if anew else None
        if since is not None and position:
            since = time
        if isinstance(self.filter, WrittenPattern):  # whatever it began with is in the state of the node
            return f.SubscribePattern(request, self.id, str(self.filter), self._since)
        return f.Subscribe(request, self.id, self.filter, since)

    def accepts(self, delivery: f.Delivery) -> bool:
        """Tell whether a delivery is new.

        A replay comes twice if the connection broke before the node could answer. Times and positions of another
        node cannot be compared, so all its deliveries are accepted.
        """
        time, position = self._last
        return self._since is None or self._moved or delivery.time > time or delivery.position > position

    def move(self) -> None:
        """Note a move of the session to another node, which does not replay the past again."""
        self._moved = self.opened and not self.pending

    def add(self, item: Item) -> None:
        """Queue a delivery for the program."""
        self._last = item.delivery.time, item.delivery.position
        self.queue.append(item)
        self.on_change()

    def take(self) -> Item:
        """Return the next delivery, which the program now has to acknowledge."""
        item = self.queue.popleft()
        self._taken[item] = None
        return item

    def release(self, item: Item) -> bool:
        """Forget an acknowledged delivery; return False for a second acknowledgement."""
        if item not in self._taken:
            return False
        del self._taken[item]
        return True

    def end(self, error: Exception | None = None) -> None:
        """End the subscription; queued deliveries can still be taken."""
        if self.ended is None:
            self.ended = error or StopAsyncIteration()
        self.on_change()

    def clear(self) -> list[Item]:
        """Return and forget all open deliveries."""
        left = [*self._taken, *self.queue]
        self._taken = {}
        self.queue.clear()
        return left
