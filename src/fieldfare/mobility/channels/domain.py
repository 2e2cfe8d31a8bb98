"""`Domain`: the common settings of servers: the channel of an event, the host of a channel, the way of events.

The channel of an event is its type, if the type is among the domain's types; all other events share the channel "". A
filter without a condition on types is a filter for every channel.

Channels are found by consistent hashing: each resolution server has many places on a ring, and a name belongs to the
server with the next place, its *home*. A channel may be relocated; then its home knows the new server.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fieldfare.events.event import fields_of
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.routing.overlays.ring import key_of, node_id
from fieldfare.tables.merging.rules import Merging


@dataclass(frozen=True)
class Domain:
    """A set of servers with common settings.

    >>> from fieldfare import parse
    >>> domain = Domain(("r1", "r2"), types=("news", "stock"))
    >>> domain.channel_of({"type": "news"}), domain.channel_of({"a": 1})
    ('news', '')
    >>> domain.channels_of(parse("type = 'news' AND a > 3")), domain.channels_of(parse("a > 3"))
    (('news',), ('news', 'stock', ''))
    """

    servers: tuple[str, ...]
    """the resolution servers"""
    name: str = ""
    types: tuple[str, ...] = ()
    field: str = "type"
    ordered: bool = True
    """events pass through channels, in a single order, with a log; or go straight between access servers, in causal
    order"""
    advertisements: bool = False
    """publishers advertise their events; otherwise an access server advertises everything for them"""
    merging: Merging | None = None
    """merging of the filters which access servers send to channels"""
    log: int = 100
    """number of past events which a channel keeps"""
    limit: int = 1000
    """number of events which a session keeps"""
    half: float = 60.0
    """seconds after which an event counts half in the load of its channel"""
    places: int = 32
    """number of places of each server on the ring"""

    @cached_property
    def _ring(self) -> list[tuple[int, str]]:
        return sorted((node_id(f"{server}#{i}"), server) for server in self.servers for i in range(self.places))

    def home(self, name: str) -> str:
        """Return the resolution server to which a name belongs."""
        place = bisect_left(self._ring, (key_of(name), ""))
        return self._ring[place % len(self._ring)][1]

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """The names of all channels."""
        return (*self.types, "")

    def channel_of(self, event: Mapping[str, object]) -> str:
        """Return the channel of an event."""
        type = fields_of(event).get(self.field)
        return type if isinstance(type, str) and type in self.types else ""

    def channels_of(self, filter: Filter) -> tuple[str, ...]:
        """Return the channels of the events that a filter may match."""
        found: set[str] = set()
        for branch in filter.boxes:
            wanted = branch.on(self.field).values
            names = wanted.strings.points() if isinstance(wanted.strings, Intervals) else None
            others = wanted.atoms or any(kind.name != "STRING" for kind, _ in wanted.kinds())
            if names is None or others:
                return self.channels
            found.update(name if name in self.types else "" for name in names)
        return tuple(channel for channel in self.channels if channel in found)

    def stamp_after(self, clock: int, server: str) -> int:
        """Return the next time on a server's clock: no two servers ever use the same time."""
        count, rank = len(self.servers), self.servers.index(server)
        return clock + 1 + (rank - clock - 1) % count


def by_channel(domain: Domain, filters: Iterable[Filter]) -> dict[str, tuple[Filter, ...]]:
    """Return filters by the channels of their events."""
    found: dict[str, list[Filter]] = {}
    for filter in filters:
        for channel in domain.channels_of(filter):
            found.setdefault(channel, []).append(filter)
    return {channel: tuple(mine) for channel, mine in found.items()}
