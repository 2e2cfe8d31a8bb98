"""`Envelopes`: messages to any node, neighbour or not, sent from link to link and in order.

Without a known way to the receiver, an envelope waits here until a neighbour reaches the receiver. A neighbour that has
just restarted may not know for a moment which nodes are behind it: the last known way counts until there is another, so
that no later envelope overtakes an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from fieldfare.core.domains import address_of, domain_of, is_foreign
from fieldfare.core.link_table import LinkTable
from fieldfare.core.step import StepBuffer
from fieldfare.core.watchers import LinkWatcher
from fieldfare.protocol import handover, wire
from fieldfare.protocol.channels import AnyChannelMessage
from fieldfare.protocol.handover import AnyHandoverMessage
from fieldfare.protocol.journal import Row, StoredRows
from fieldfare.protocol.messages import Envelope
from fieldfare.protocol.patterns import AnyPatternMessage
from fieldfare.protocol.versions import OLDEST, lacking

UNKNOWN: Final[Mapping[str, int]] = MappingProxyType({})
"""Versions of nodes, if nothing is known of them."""


class Envelopes(LinkWatcher):
    """The ways to other nodes, and the waiting envelopes."""

    def __init__(self, name: str, links: LinkTable, buffer: StepBuffer) -> None:
        """Begin without any known way, at the node of a name."""
        self._name = name
        self._links = links
        self._buffer = buffer
        self._behind: dict[str, set[str]] = {}
        """By neighbour: the nodes that are reached through it."""
        self._former: dict[str, str] = {}
        """Nodes that no neighbour reaches at present, each with the last neighbour that did."""
        self._versions: dict[str, int] = {}
        """Versions that nodes speak, as last heard; no row has them."""
        self._parked: dict[int, Envelope] = {}
        """Envelopes that wait, by the number of their row."""
        self._count = 0
        self.at_border: Callable[[str, Envelope], Envelope | None] = lambda _, envelope: envelope
        """Returns an envelope for a neighbour in another domain as that domain may read it; None: it may not."""

    def send(self, to: str, message: AnyHandoverMessage | AnyChannelMessage | AnyPatternMessage) -> None:
        """Send a message to a node, unless the node's version lacks the kind of message."""
        if not lacking(self.version_of(to), message):
            self.forward(Envelope(to, self._name, handover.encode(message)))

    def version_of(self, node: str) -> int:
        """Return the version that can be spoken with another node, as last heard."""
        return self._links[node].version if node in self._links else self._versions.get(node, OLDEST)

    def forward(self, envelope: Envelope, via: str = "") -> None:
        """Pass an envelope to the next neighbour on the way; without a known way the envelope waits.

        An envelope never goes back to the last neighbour: two nodes may each see the way through the other,
        for a moment or because a third node lies, and would pass the envelope to and fro for ever.
        """
        way = self.way(envelope.to, via)
        if way is not None:
            leaving = self.at_border(way, envelope) if is_foreign(way) else envelope
            if leaving is not None:
                self._links.send(way, leaving)
            return
        self._count += 1
        self._parked[self._count] = envelope
        self._buffer.store(Row("parked", (self._count,), [envelope.to, envelope.origin, envelope.content]))

    def way(self, node: str, but: str = "") -> str | None:
        """Return the neighbour, but for one, by which a node is reached, or was last; None if no way is known.

        The way to a node of another domain is the way to that domain.
        """
        links, node = self._links.keys() - {but}, _goal(node)
        if node in links:
            return node
        way = next((one for one, nodes in self._behind.items() if node in nodes and one in links), None)
        return way or next((one for one in (self._former.get(node),) if one in links), None)

    def assume(self, node: str, neighbour: str) -> None:
        """Let a neighbour that knows more of a node be the way to the node, while there is no other."""
        if node != self._name and self.way(node) is None:
            self._former[node] = neighbour
            self._buffer.store(Row("former_way", (node,), neighbour))

    def reached(self) -> set[str]:
        """Return all other nodes of this domain that are reached, as far as is known here."""
        found = set(self._links).union(*self._behind.values())
        return {node for node in found if not is_foreign(node)}

    def knows(self, node: str) -> bool:
        """Tell whether a way is known to a node of this domain, or to the address of another domain."""
        named = node == _goal(node)
        return named and (node in self._links or any(node in nodes for nodes in self._behind.values()))

    def set_reachable(self, neighbour: str, nodes: Iterable[str], versions: Mapping[str, int] = UNKNOWN) -> None:
        """Note the nodes behind a neighbour and their versions, and send the envelopes for any of those nodes."""
        nodes = list(nodes)
        self._versions.update({node: versions.get(node, OLDEST) for node in nodes})
        known = set(nodes) | {neighbour}
        before = self._behind.get(neighbour, set())
        if before != known:
            self._behind[neighbour] = known
            self._buffer.store(Row("reach", (neighbour,), sorted(known)))
        for node in before - known:
            self._former[node] = neighbour
            self._buffer.store(Row("former_way", (node,), neighbour))
        for node in known & self._former.keys():
            del self._former[node]
            self._buffer.store(Row("former_way", (node,)))
        parked, self._parked = self._parked, {}
        for number, envelope in parked.items():
            self._buffer.store(Row("parked", (number,)))
            self.forward(envelope)

    def link_ended(self, neighbour: str, outbox: Iterable[bytes | int]) -> None:
        """Forget a former neighbour; the envelopes in the outbox have to find another way."""
        if self._behind.pop(neighbour, None) is not None:
            self._buffer.store(Row("reach", (neighbour,)))
        for node in [node for node, way in self._former.items() if way == neighbour]:
            del self._former[node]
            self._buffer.store(Row("former_way", (node,)))
        for what in outbox:
            message = wire.decode(what) if isinstance(what, bytes) else None
            if isinstance(message, Envelope):
                self.forward(message)

    def restore(self, stored: StoredRows) -> None:
        """Recover the ways and the waiting envelopes from stored rows."""
        for (neighbour,), nodes in stored.get("reach", {}).items():
            self._behind[str(neighbour)] = set(nodes)
        self._former = {str(node): str(way) for (node,), way in stored.get("former_way", {}).items()}
        for (number,), (to, origin, content) in sorted(stored.get("parked", {}).items()):
            self._parked[int(number)] = Envelope(to, origin, content)
            self._count = int(number)


def _goal(node: str) -> str:
    """Return the address of the domain of a foreign node; any other node stands for itself."""
    return address_of(domain_of(node)) if is_foreign(node) else node
