"""Subscriptions of simulated clients to patterns, and the names of detections in a trace."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from fieldfare.core.standing_pattern import PUBLISHER
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.patterns import composite_type, parse_pattern

TEXTS: Final = (
    "a: [x = 1] b: [x = 2] (a followed by b) within 2 seconds select b.x as x, a.y as y",
    "a: [x >= 1] (a{2}) within 1 second for each y select y as y",
    "a: [x = 2] b: [x = 1] a followed by not b within 50 ms limit 5 select a.x as x, a.y as y",
    "a: [x = 0] b: [y >= 1] (a followed by b) within 1 second after match past last event select b.y as y",
    "a: [x >= 2] b: [y < 2] (a and b) within 1 second",
    "a: [x >= 1] b: [x < 3] a followed by b limit 3 select b.x as x",
)


class Detections(NamedTuple):
    """A subscription to the detections of a pattern, as requested by a client."""

    id: str
    text: str

    @property
    def filter(self) -> Filter:
        """The filter of the detections of all such patterns: the client does not know yet which node detects."""
        return _of_type(self.text)


class Detector(Struct, frozen=True):
    """A word of the node about the detector of a subscription, perhaps at another node."""

    about: Detections
    filter: Filter
    """of its detections alone"""


@lru_cache(maxsize=1000)
def _of_type(text: str) -> Filter:
    return parse(f"type = '{composite_type(parse_pattern(text).text)}'")


def traced_name(publisher: str, by: str) -> str:
    """Return the name of a publisher in a trace: a pattern that begins anew counts from 1 again.

    >>> traced_name("ana", "ana@1"), traced_name("~pattern:fraud", "life:7:fraud")
    ('ana', '~pattern:fraud of life:7:fraud')
    """
    return f"{publisher} of {by}" if publisher.startswith(PUBLISHER) else publisher
