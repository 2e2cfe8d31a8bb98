"""`PrefixOptions`: the settings of prefix forwarding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from zlib import crc32

Layout: TypeAlias = Literal["alphabet", "popularity", "selectivity"]
"""the order of attributes in a tree: by name; most frequent in filters first; most selective for events first"""

SILENT: Final = 10
"""number of heartbeat periods without a report after which the optimizer forgets a broker"""


@dataclass(frozen=True, slots=True)
class PrefixOptions:
    """The options of trees and tags. All brokers must have the same number of parts."""

    optimizers: tuple[str, ...] = ()
    """brokers that may lead, in order of preference; empty: all brokers may"""
    parts: int = 1
    """number of trees, each with an optimizer, into which filters are divided by their first attribute"""
    depth: int | None = None
    """depth of a tag; a smaller depth gives shorter tags and more unwanted events"""
    threshold: float = 0.3
    """difference of a tree to its last published version, from 0 to 1, above which an update is published"""
    refresh: float = 0.25
    """seconds after which the smallest change is published"""
    layout: Layout = "alphabet"
    beat: float = 2.0
    """seconds between heartbeats of an optimizer"""
    patience: float = 6.0
    """seconds without a heartbeat after which another broker takes over"""
    remember: float = 60.0
    """seconds for which former versions of a tree can be read"""
    blind: bool = False
    """the broker cannot read events: an event with an unreadable tag goes to all interfaces with filters"""

    def wait(self, name: str, part: int) -> float | None:
        """Return a broker's extra wait before a takeover, as a share of the patience.

        None for a broker that may not lead.
        """
        if not self.optimizers:
            return crc32(f"{part} {name}".encode()) / 2**32
        return self.optimizers.index(name) / len(self.optimizers) if name in self.optimizers else None
