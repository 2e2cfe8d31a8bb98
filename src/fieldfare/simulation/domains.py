"""Domains of simulated nodes: members and borders, and the part of a trace for the eyes of a domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.domains import Federation, address_of, seen_from_outside
from fieldfare.filters import EVERYTHING
from fieldfare.filters.filter import Filter
from fieldfare.simulation.trace import Delivered, Published, Record, Subscribed, Trace, Unsubscribed


class Domains(NamedTuple):
    """The domain of each node; the other nodes are in a domain without a name."""

    of: Mapping[str, str] = MappingProxyType({})
    share: Filter = EVERYTHING
    """Filter of the events for all domains."""

    def domain(self, node: str) -> str:
        """Return the domain of a node."""
        return self.of.get(node, "")

    def near(self, node: str, other: str) -> bool:
        """Tell whether two nodes have the same domain."""
        return self.domain(node) == self.domain(other)

    def name(self, other: str, node: str) -> str:
        """Return the name of another node for a node."""
        return other if self.near(node, other) else seen_from_outside(other, self.domain(other))

    def federation(self, node: str, edges: Iterable[tuple[str, str]]) -> Federation:
        """Return the borders of a node; a node without any needs not know of domains."""
        others = {one for edge in edges if node in edge for one in edge if not self.near(node, one)}
        if not others:
            return Federation()
        return Federation(self.domain(node), dict.fromkeys(map(self.domain, others), self.share))

    def channels(self, node: str, known: ChannelMap) -> ChannelMap:
        """Return the homes of channels in the settings of a node: of another domain, the address alone."""
        homes = {
            type: home if self.near(node, home) else address_of(self.domain(home)) for type, home in known.homes.items()
        }
        return known._replace(homes=homes)

    def seen_from(self, domain: str, trace: Trace) -> list[Record]:
        """Return a trace without the clients of other domains, and without private events of other domains."""
        found: list[Record] = []
        for record in trace:
            if isinstance(record, Delivered | Subscribed | Unsubscribed | Published):
                shared = isinstance(record, Published) and self.share.matches(record.event)
                if self.domain(record.broker) != domain and not shared:
                    continue
            found.append(record)
        return found
