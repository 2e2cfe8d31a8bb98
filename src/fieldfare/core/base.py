"""`Base`: what every part of a core stands on.

The parts of a core form a hierarchy: each gets the base and the parts below it, and none knows the core. A part that
must follow another part's changes is one of its *watchers* (`watchers`).
"""

from __future__ import annotations

from typing import NamedTuple

from fieldfare.core.envelopes import Envelopes
from fieldfare.core.journal import Journal
from fieldfare.core.link_table import LinkTable
from fieldfare.core.peer_versions import PeerVersions
from fieldfare.core.step import StepBuffer
from fieldfare.routing.broker import Broker


class Base(NamedTuple):
    """The broker, the step in progress, the end of the log, the neighbours, and the ways to all other nodes."""

    broker: Broker
    buffer: StepBuffer
    journal: Journal
    links: LinkTable
    envelopes: Envelopes
    versions: PeerVersions

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.broker.name
