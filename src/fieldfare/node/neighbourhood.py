"""`Neighbourhood`: the open links of a node, and the nodes behind each link.

The overlay must not have cycles. Nodes announce all reachable nodes, and a node does not become a neighbour
of a node with another way between both (see `link_checks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fieldfare.core.domains import AT, address_of, domain_of, is_foreign, visible
from fieldfare.core.inputs import EndLink
from fieldfare.node.node import Node
from fieldfare.node.overviews import Overviews

if TYPE_CHECKING:
    from fieldfare.node.link_connection import LinkConnection


class Neighbourhood:
    """The links of a node."""

    def __init__(self, node: Node) -> None:
        """Begin without open links, for a node."""
        self.node = node
        self.url = ""
        """Address of this node, as announced to others."""
        self.up: dict[str, LinkConnection] = {}
        """Links that are up, by neighbour."""
        node.address = self._address
        self.behind: dict[str, dict[str, str]] = {}
        """By neighbour: the nodes that it reaches without this node, the neighbour included, with their addresses."""
        self.overviews = Overviews(self)

    def reachable(self, without: str = "") -> dict[str, str]:
        """Return the addresses of all reachable nodes and of this node, without the nodes behind a given neighbour.

        The neighbour announces the address of the neighbour; the address of a node further away is announced by
        the longest-known neighbour. Clients follow sessions to the addresses, with tickets. Of other domains, only the
        addresses of the domains are known.
        """
        links, found = self.node.core.links, {self.node.name: self.url}
        for neighbour, nodes in self.behind.items():
            for name, url in nodes.items() if neighbour != without else ():
                if name == neighbour or name not in links:
                    found.setdefault(name, url)
        found = {**{name: "" for name in links if name != without}, **found}
        return {name: found.get(name, "") for name in sorted(visible(found, without, self.domain))}

    def nodes(self) -> dict[str, str]:
        """Return the addresses of the node and of all reachable nodes of the domain."""
        return {name: url for name, url in self.reachable().items() if not is_foreign(name)}

    @property
    def domain(self) -> str:
        """The domain of the node."""
        return self.node.config.federation.domain

    def domains(self, without: str = "") -> dict[str, str]:
        """Return the addresses of this and all other domains that are reached, but not through a given domain."""
        behind = (nodes for neighbour, nodes in self.behind.items() if domain_of(neighbour) != without)
        return {address_of(self.domain): "", **{name: "" for nodes in behind for name in nodes if name.startswith(AT)}}

    def note(self, neighbour: str, nodes: Mapping[str, str], url: str = "") -> dict[str, str]:
        """Note and return the nodes behind a neighbour; of a neighbour in another domain only domains count."""
        own = self.node.name, address_of(self.domain)
        names = {name: to for name, to in nodes.items() if name not in own}
        if is_foreign(neighbour):
            names = {neighbour: url, **{name: "" for name in names if name.startswith(AT)}}
        self.behind[neighbour] = names
        return names

    def _address(self, name: str) -> str:
        """Return the address of a node for clients; empty for an unknown node or a wildcard address."""
        url = self.reachable().get(name, "")
        return "" if "//0.0.0.0:" in url or "//[::]:" in url else url

    def announce_reachable(self) -> None:
        """Send each neighbour the reachable nodes after a change."""
        for link in self.up.values():
            link.wake()

    async def remove(self, name: str) -> None:
        """Remove a neighbour for good, with all waiting messages."""
        link = self.up.get(name)
        if link is not None:
            await link.end("it was told so", forever=True)
        await self.node.submit(EndLink(name))
        self.behind.pop(name, None)
        self.node.counters.links.pop(name, None)
        self.announce_reachable()
