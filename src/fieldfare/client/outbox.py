"""What was published and is not safe yet: how it is numbered, put into frames, said again, and answered.

Events wait until somebody can send them. Then those that follow each other with the same options share a frame, and
get their numbers. A frame is taken all or none, and events that share one by chance should not share its fate: if it
is refused, each of them is said again on its own. Only what belongs together stays together.

After a pause all that was not answered is said again, under the same numbers. What the node has accepted it knows
already; what it has refused, it refuses again. So that it has accepted something later tells nothing about what is said
again, until all of that is answered. If the node does not know the session any more, there are new numbers.

No I/O here; the time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from fieldfare.protocol.frames import Publish

T = TypeVar("T")

FRAME_EVENTS: Final = 500
"""events that share a frame by chance, at most"""
FRAME_BYTES: Final = 128 << 10
MARGIN: Final = 512
"""bytes of a frame that are not events, at most, but for `replaces`"""
PER_EVENT: Final = 1
"""bytes between two events"""
SOON: Final = 0.001


class Posting(NamedTuple, Generic[T]):
    """Events that belong together."""

    events: tuple[bytes, ...]
    ticket: T
    """who wants to know when they are safe"""
    deadline: float | None = None
    """when nobody is to get them any more"""
    replaces: str = ""
    alone: bool = False
    """whether it must have a frame of its own"""

    @property
    def size(self) -> int:
        """Bytes in a frame, at most."""
        return sum(map(len, self.events)) + PER_EVENT * len(self.events)


class Window(Generic[T]):
    """All that was published and is not safe."""

    def __init__(self) -> None:
        """Nothing was published yet."""
        self._waiting: deque[Posting[T]] = deque()
        self._sent: dict[int, list[Posting[T]]] = {}
        """what shares a frame, by the number of its first event; in order"""
        self._next = 1
        self._doubtful = 0
        """a number up to which some was refused, perhaps, and we have not heard of it"""
        self.count = 0
        """events that are not safe"""

    @property
    def waiting(self) -> bool:
        """Is there something to send?"""
        return bool(self._waiting)

    def add(self, posting: Posting[T]) -> None:
        """There is something to publish."""
        self._waiting.append(posting)
        self.count += len(posting.events)

    def take(self, now: float) -> Publish | None:
        """The next frame to send, or None."""
        if not self._waiting:
            return None
        together = [self._waiting.popleft()]
        first = together[0]
        if not first.alone:
            events, size = len(first.events), first.size
            while self._waiting:
                other = self._waiting[0]
                events, size = events + len(other.events), size + other.size
                fits = events <= FRAME_EVENTS and size <= FRAME_BYTES
                if not fits or other.alone or other[2:4] != first[2:4]:
                    break
                together.append(self._waiting.popleft())
        number = self._next
        self._next += _length(together)
        self._sent[number] = together
        return _frame(number, together, now)

    def accepted(self, number: int) -> Iterator[Posting[T]]:
        """All up to a number is safe: who wants to know."""
        while self._sent and number > self._doubtful:
            first, together = next(iter(self._sent.items()))
            length = _length(together)
            if first + length - 1 > number:
                return
            del self._sent[first]
            self.count -= length
            yield from together

    def refused(self, number: int) -> Posting[T] | None:
        """The frame that began with a number is refused: who wants to know; None if its parts are to be said again."""
        together = self._sent.pop(number, None)
        if together is None:
            return None
        if len(together) == 1:
            self.count -= len(together[0].events)
            return together[0]
        self._waiting.extendleft(posting._replace(alone=True) for posting in reversed(together))
        return None

    def resume(self, accepted: int, now: float) -> list[Publish]:
        """All frames that were not answered, to be said again to a node that has accepted something up to a number."""
        self._next = max(self._next, accepted + 1)
        self._doubtful = accepted
        return [_frame(number, together, now) for number, together in self._sent.items()]

    def renumber(self, accepted: int) -> None:
        """Begin to count behind a number; all that was not answered waits to be sent again."""
        again = [posting for together in self._sent.values() for posting in together]
        self._sent = {}
        self._waiting.extendleft(reversed(again))
        self._next = accepted + 1
        self._doubtful = 0

    def resumed(self) -> Iterator[Posting[T]]:
        """The node has answered all that was said again: what it did not refuse is safe."""
        accepted, self._doubtful = self._doubtful, 0
        return self.accepted(accepted)

    def clear(self) -> list[Posting[T]]:
        """All that is not safe, and will not be."""
        left = [*(posting for together in self._sent.values() for posting in together), *self._waiting]
        self._sent, self.count = {}, 0
        self._waiting.clear()
        return left


def _length(together: list[Posting[T]]) -> int:
    return sum(len(posting.events) for posting in together)


def _frame(number: int, together: list[Posting[T]], now: float) -> Publish:
    first = together[0]
    # What came too late to be sent in time is of no use to anybody, but it has its number.
    ttl = None if first.deadline is None else max(first.deadline - now, SOON)
    raws = [msgspec.Raw(event) for posting in together for event in posting.events]
    return Publish(number, raws, ttl, first.replaces)
