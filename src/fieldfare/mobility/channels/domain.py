"""`Domain`: what all its servers must agree on. Which channel an event belongs to, who hosts it, how events travel.

An event's channel is its type, if that is one of the domain's types; all others share one channel, "". A filter that
does not say which types it wants is a filter for every channel.

Channels are found by consistent hashing: each resolution server has many places on a ring, and a name belongs to the
server whose place comes next. That is its *home*. A channel may be relocated; then its home knows where it is.
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
    """A set of servers and what they agree on.

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
    """through the channels, in one order, with a log; or straight from access server to access server, causal"""
    advertisements: bool = False
    """whether publishers promise what they publish; otherwise an access server promises all for them"""
    merging: Merging | None = None
    """how access servers merge the filters that they tell channels"""
    log: int = 100
    """how many events a channel keeps for those who come late"""
    limit: int = 1000
    """how many events a session keeps"""
    half: float = 60.0
    """seconds after which an event counts for half as much in the load of its channel"""
    places: int = 32
    """of each server on the ring"""

    @cached_property
    def _ring(self) -> list[tuple[int, str]]:
        return sorted((node_id(f"{server}#{i}"), server) for server in self.servers for i in range(self.places))

    def home(self, name: str) -> str:
        """The resolution server to which a name belongs."""
        place = bisect_left(self._ring, (key_of(name), ""))
        return self._ring[place % len(self._ring)][1]

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """All channels."""
        return (*self.types, "")

    def channel_of(self, event: Mapping[str, object]) -> str:
        """The channel of an event."""
        type = fields_of(event).get(self.field)
        return type if isinstance(type, str) and type in self.types else ""

    def channels_of(self, filter: Filter) -> tuple[str, ...]:
        """The channels of the events that a filter may match."""
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
        """The next time on a server's clock: no two servers ever say the same."""
        count, rank = len(self.servers), self.servers.index(server)
        return clock + 1 + (rank - clock - 1) % count


def by_channel(domain: Domain, filters: Iterable[Filter]) -> dict[str, tuple[Filter, ...]]:
    """Filters, by the channels that they concern."""
    found: dict[str, list[Filter]] = {}
    for filter in filters:
        for channel in domain.channels_of(filter):
            found.setdefault(channel, []).append(filter)
    return {channel: tuple(mine) for channel, mine in found.items()}
