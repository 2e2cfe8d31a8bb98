"""`PeerVersions`: the versions that this node can speak with others."""

from __future__ import annotations

from collections.abc import Iterable

from fieldfare.core.envelopes import Envelopes
from fieldfare.core.state import PeerTooOld
from fieldfare.protocol.versions import OLDEST, has, refusal


class PeerVersions:
    """The versions of all nodes, as far as they are known; an unknown node speaks the oldest."""

    def __init__(self, name: str, speaks: int, envelopes: Envelopes, address: str = "") -> None:
        """Begin at a node that `speaks` a version, and hears of the others by `envelopes`.

        Other domains ask for the version of the `address` of this domain.
        """
        self._name, self._address = name, address
        self._envelopes = envelopes
        self.speaks = speaks
        """Highest version of what is sent and stored; see `protocol.versions`."""

    def of(self, node: str) -> int:
        """Return the version that can be spoken with a node, neighbour or not; this node speaks with itself, too."""
        return self.speaks if node in (self._name, self._address) else self._envelopes.version_of(node)

    def newer(self, nodes: Iterable[str]) -> dict[str, int]:
        """Return the versions of nodes, without those that speak no more than the oldest version."""
        return {node: version for node in nodes if (version := self.of(node)) > OLDEST}

    def has(self, node: str, kind: str) -> bool:
        """Tell whether a node has a kind of message."""
        return has(self.of(node), kind)

    def require(self, kind: str, *nodes: str) -> None:
        """Refuse what needs a kind of message, unless this node and all the given nodes have the kind."""
        for node in (self._name, *nodes):
            version = self.of(node)
            if not has(version, kind):
                raise PeerTooOld(refusal(node, version, kind))
