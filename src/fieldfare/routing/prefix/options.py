"""`PrefixOptions`: the settings of prefix forwarding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from zlib import crc32

Layout: TypeAlias = Literal["alphabet", "popularity", "selectivity"]
"""which attributes come first in a tree: by name; those that most filters ask about; those that the fewest events
satisfy"""

SILENT: Final = 10
"""a broker that was not heard for so many beats is forgotten by the optimizer"""


@dataclass(frozen=True, slots=True)
class PrefixOptions:
    """How brokers agree on trees, and how exact tags are. All brokers must have the same number of parts."""

    optimizers: tuple[str, ...] = ()
    """the brokers that may be in charge, the first ones rather than the last; none: all may"""
    parts: int = 1
    """into how many trees, each with its optimizer, filters are divided by their first attribute"""
    depth: int | None = None
    """how deep a tag goes; the less, the shorter, and the more events go where nobody wants them"""
    threshold: float = 0.3
    """how different from what was last published a tree may be, from 0 to 1"""
    refresh: float = 0.25
    """seconds after which a change is published, be it ever so small"""
    layout: Layout = "alphabet"
    beat: float = 2.0
    """seconds between signs of life of an optimizer"""
    patience: float = 6.0
    """seconds without one after which another takes over"""
    remember: float = 60.0
    """seconds for which former versions of a tree can be read"""
    blind: bool = False
    """the broker cannot read events: what it cannot forward by its tag goes to all that want anything"""

    def wait(self, name: str, part: int) -> float | None:
        """How much longer than the patience a broker waits, as a share of it, before it takes over; None: for ever."""
        if not self.optimizers:
            return crc32(f"{part} {name}".encode()) / 2**32
        return self.optimizers.index(name) / len(self.optimizers) if name in self.optimizers else None
