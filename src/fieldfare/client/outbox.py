"""`Window`: published events on their way to safety: numbers, frames, repetition and answers.

Events wait until the connection can send. Then consecutive events with the same options share a frame, and get numbers.
The node accepts a frame as a whole, but events in a frame by chance should not share the fate of the frame: after a
refusal, each submission is sent again in a separate frame. Only a batch stays together.

After a broken connection all unanswered frames are sent again under the same numbers. The node knows accepted events,
and refuses a refused frame again. So an `Accepted` for a later number says nothing about the repeated frames until all
repeated frames are answered. If the node does not know the session any more, the numbers are new.

No I/O here; the time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from fieldfare.protocol.frames import Publish, PublishOptions

T = TypeVar("T")

FRAME_EVENTS: Final = 500
"""events that share a frame by chance, at most"""
FRAME_BYTES: Final = 128 << 10
"""bytes of events that share a frame by chance, at most"""
MARGIN: Final = 512
"""bytes of a frame beside its events and texts of options, at most"""
LONGEST_CHARACTER: Final = 6
"""bytes of a character in JSON, at most"""
PER_EVENT: Final = 1
"""bytes between two events"""
SHORTEST_TTL: Final = 0.001
"""seconds; the time to live of events whose deadline passed before they were sent"""


class Submission(NamedTuple, Generic[T]):
    """Encoded events, to be accepted together or not at all."""

    events: tuple[bytes, ...]
    receipt: T
    """returned by `Window` when the events are safe, or refused"""
    deadline: float | None = None
    """the time after which no subscriber is to get the events"""
    options: PublishOptions = PublishOptions()
    """without a time to live, which counts until the deadline"""
    alone: bool = False
    """whether the events must have a frame of their own"""

    @property
    def size(self) -> int:
        """The bytes of the events in a frame, at most."""
        return sum(map(len, self.events)) + PER_EVENT * len(self.events)

    @property
    def size_alone(self) -> int:
        """The bytes of a frame with these events alone, at most."""
        texts = (value for value in msgspec.structs.astuple(self.options) if isinstance(value, str))
        return self.size + MARGIN + LONGEST_CHARACTER * sum(map(len, texts))


class Window(Generic[T]):
    """All submissions on their way to safety, in order."""

    def __init__(self) -> None:
        self._waiting: deque[Submission[T]] = deque()
        self._sent: dict[int, list[Submission[T]]] = {}
        """the submissions of each frame, by the number of the first event, in order"""
        self._next = 1
        self._uncertain = 0
        """frames up to this number were repeated: some may have been refused, which the client has not heard"""
        self.count = 0
        """events that are not safe"""

    @property
    def waiting(self) -> bool:
        """Tell whether there is a frame to send."""
        return bool(self._waiting)

    def add(self, submission: Submission[T]) -> None:
        """Queue a submission for the next frames."""
        self._waiting.append(submission)
        self.count += len(submission.events)

    def take(self, now: float) -> Publish | None:
        """Return the next frame to send, or None."""
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

    def accept(self, number: int) -> Iterator[Submission[T]]:
        """Yield the submissions now safe, after the node has accepted everything up to a number."""
        while self._sent and number > self._uncertain:
            first, together = next(iter(self._sent.items()))
            length = _length(together)
            if first + length - 1 > number:
                return
            del self._sent[first]
            self.count -= length
            yield from together

    def refuse(self, number: int) -> Submission[T] | None:
        """Return the submission of the frame with a number, which is refused.

        None if submissions share the frame: each submission waits for a separate frame.
        """
        together = self._sent.pop(number, None)
        if together is None:
            return None
        if len(together) == 1:
            self.count -= len(together[0].events)
            return together[0]
        self._waiting.extendleft(submission._replace(alone=True) for submission in reversed(together))
        return None

    def resume(self, accepted: int, now: float) -> list[Publish]:
        """Return all unanswered frames, to repeat to a node with accepted events up to a number."""
        self._next = max(self._next, accepted + 1)
        self._uncertain = accepted
        return [_frame(number, together, now) for number, together in self._sent.items()]

    def renumber(self, accepted: int) -> None:
        """Count on behind a number, for a new session; all unanswered events wait to be sent again."""
        unanswered = [submission for together in self._sent.values() for submission in together]
        self._sent = {}
        self._waiting.extendleft(reversed(unanswered))
        self._next = accepted + 1
        self._uncertain = 0

    def confirm_resumed(self) -> Iterator[Submission[T]]:
        """Yield the submissions now safe, after the node has answered all repeated frames."""
        accepted, self._uncertain = self._uncertain, 0
        return self.accept(accepted)

    def clear(self) -> list[Submission[T]]:
        """Return and forget all unsafe submissions."""
        left = [*(submission for together in self._sent.values() for submission in together), *self._waiting]
        self._sent, self.count = {}, 0
        self._waiting.clear()
        return left


def _length(together: list[Submission[T]]) -> int:
    return sum(len(submission.events) for submission in together)


def _frame(number: int, together: list[Submission[T]], now: float) -> Publish:
    first = together[0]
    # Events that are too late are of no use to any subscriber, but they need their numbers.
    ttl = None if first.deadline is None else max(first.deadline - now, SHORTEST_TTL)
    raws = [msgspec.Raw(event) for submission in together for event in submission.events]
    return Publish(number, raws, **{**msgspec.structs.asdict(first.options), "ttl": ttl})
