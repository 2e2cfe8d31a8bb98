"""`ChannelMap`: the types of events that have a channel, and the resolution of a type to the home of the channel.

All nodes of an overlay have the same map, as they have the same strategy.
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


def resolve(types: Iterable[str], hosts: Iterable[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the home of each type: the `named` one, or else one of the hosts, chosen by hashing.

    The host with the highest hash of host and type is the home (*rendezvous hashing*): a further host takes its share
    of the types, and all other types stay where they are.

    >>> resolve(["quote", "trade"], ["oslo", "rome"], {"trade": "bern"})
    {'quote': 'rome', 'trade': 'bern'}
    """
    known = sorted(hosts)
    hashed = {type: max(known, key=lambda host: _weight(type, host)) for type in types if known}
    return {**hashed, **named}


def _weight(type: str, host: str) -> bytes:
    return blake2b(f"{len(type)} {type} {host}".encode(), digest_size=16).digest()
