"""Pattern messages: how nodes share the detection of patterns.

    node of a pattern                        detecting node of a part
      | ---- MeasurePattern -----------------> |   which such events are published there, from now on?
      | <--- PatternStatistics --------------- |   so many a second, with my load, and my neighbours
      | ---- WantPattern --------------------> |   detect the part; a subscription to the composite events came before
      | <--- PatternRefused ------------------ |   only if the part exceeds the bounds there
      | ---- DropPattern --------------------> |   the pattern has ended

The composite events are ordinary events on ordinary ways. A message is the content of an envelope, so nodes
on the way need not know of patterns.
"""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

import msgspec


class PatternMessage(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Base class of the messages about a pattern, which has a key at the node of the pattern."""

    key: str


class MeasurePattern(PatternMessage, frozen=True):
    """Request to count the events published at the receiver, by filter, until the next maintenance."""

    filters: tuple[str, ...]
    types: tuple[str, ...]
    """Types of composite events that would be of use."""


class PatternStatistics(PatternMessage, frozen=True):
    """Answer: the counts of a node since the request."""

    rates: tuple[float, ...]
    """Events a second, in the order of the filters."""
    load: float
    """Events a second that the detectors of the node look at."""
    neighbours: tuple[str, ...]
    hosted: tuple[str, ...] = ()
    """Those of the types that the node detects already."""


class WantPattern(PatternMessage, frozen=True):
    """Request to detect a part of a pattern; the same request again changes nothing."""

    text: str
    """The part, in canonical form."""
    hosts: dict[str, str] = {}
    """Nodes that detect parts of the part, by type."""


class PatternRefused(PatternMessage, frozen=True):
    """Answer: the part cannot be detected at the sender."""

    reason: str


class DropPattern(PatternMessage, frozen=True):
    """Notice of the end of the need for a part."""

    type: str


AnyPatternMessage: TypeAlias = MeasurePattern | PatternStatistics | WantPattern | PatternRefused | DropPattern
encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AnyPatternMessage).decode
_NAMES: Final = tuple(kind.__name__.encode() for kind in get_args(AnyPatternMessage))


def is_pattern_message(content: bytes) -> bool:
    """Tell from the first bytes whether the content of an envelope is about a pattern.

    >>> is_pattern_message(encode(DropPattern("fraud", "ce:1")))
    True
    """
    return content[5:24].startswith(_NAMES)


def decode(content: bytes) -> AnyPatternMessage:
    """Return the message in the content of an envelope; ValueError if there is none."""
    try:
        message: AnyPatternMessage = _decode(content)
    except msgspec.DecodeError as error:
        raise ValueError(f"no message about a pattern: {error}") from None
    return message
