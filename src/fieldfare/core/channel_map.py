"""`ChannelMap`: the types of events with a channel, and the resolution of a type to the home of the channel.

All nodes of an overlay have the same map, like the same strategy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.python import field as field_of


class ChannelMap(NamedTuple):
    """The homes of channels, by type."""

    homes: Mapping[str, str] = {}
    field: str = "type"
    """Field of an event with the type."""
    first: int = 1
    """Number of the first event in a new channel."""

    def type_of(self, event: Event) -> str:
        """Return the type of an event with a channel; empty for all other events.

        >>> ChannelMap({"quote": "oslo"}).type_of(Event({"type": "quote", "price": 3}))
        'quote'
        """
        value = event.get(self.field)
        return value if isinstance(value, str) and value in self.homes else ""

    def filter_of(self, type: str) -> Filter:
        """Return the filter of all events of a type."""
        return field_of[self.field] == type


def channel_of(text: str) -> tuple[str, str]:
    """Return the type and the node of a channel in the settings; the node may be empty.

    >>> channel_of("quote=oslo"), channel_of("quote")
    (('quote', 'oslo'), ('quote', ''))
    """
    type, equals, node = text.rpartition("=")
    return (type, node) if equals else (text, "")


def resolve(channels: Iterable[str], hosts: Iterable[str]) -> dict[str, str]:
    """Return the home of each type: the node named with the type, or else one of the hosts, chosen by hashing.

    The host with the highest hash of host and type is the home (*rendezvous hashing*): a further host takes its share
    of the types, and all other types stay where they are.

    >>> resolve(["quote", "trade=bern"], ["oslo", "rome"])
    {'quote': 'oslo', 'trade': 'bern'}
    """
    known = sorted(hosts)
    return {type: node or hashed_home(type, known) for type, node in map(channel_of, channels)}


def hashed_home(type: str, hosts: Iterable[str]) -> str:
    """Return the host of a type by hashing; the order of the hosts has no effect."""
    return max(hosts, key=lambda host: _weight(type, host))


def _weight(type: str, host: str) -> bytes:
    return blake2b(f"{len(type)} {type} {host}".encode(), digest_size=16).digest()
