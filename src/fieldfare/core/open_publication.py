"""`OpenPublication`: the events of several `Publish` frames of a client, on the way to become one input of the core.

A program that publishes one event after the other sends many frames in a moment. A read brings them together, and an
input, an answer and the books of a publication then cost once what they would cost for each event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.protocol import frames as f

MOST: Final = 64
"""Number of events from which on no more are added: receivers wait for the last event of a publication."""


class Closed(NamedTuple):
    """The frames of an input that is complete, as numbers, and their events."""

    frame: f.Publish
    """The first frame, whose options are those of all."""
    numbers: Sequence[int]
    """Numbers of the frames, each of which is answered on its own if the publication is refused."""
    events: Sequence[Event]


class OpenPublication:
    """Events with consecutive numbers and without options."""

    __slots__ = ("_events", "_frame", "_next", "_numbers")

    def __init__(self, frame: f.Publish, events: list[Event], *, alone: bool) -> None:
        """Begin with the events of a frame; if `alone`, no other frame may follow: events might be refused one by one.

        Frames with options stay alone, too.
        """
        self._frame = frame
        self._events = events
        self._numbers = [frame.number]
        plain = not alone and not frame.has_options
        self._next = frame.number + len(events) if plain else 0
        """Number of the next frame; 0: none may follow."""

    def take(self, frame: f.Publish, events: list[Event]) -> bool:
        """Add the events of the next frame; False if they belong to another publication."""
        if frame.number != self._next or frame.has_options or len(self._events) >= MOST:
            return False
        self._events += events
        self._numbers.append(frame.number)
        self._next += len(events)
        return True

    def closed(self) -> Closed:
        """Return the publication; nothing is added any more."""
        return Closed(self._frame, self._numbers, self._events)
