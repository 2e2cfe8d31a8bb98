"""Profiles and queries that last: the double forest, temporal subspaces, and collections that track objects."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.profiles.collections import TrackingService
    from fieldfare.profiles.double_forest import DoubleForest
    from fieldfare.profiles.indexed import IndexedPairing
    from fieldfare.profiles.pairs import Pairing
    from fieldfare.profiles.temporal import TimedPairing

__all__ = ["DoubleForest", "IndexedPairing", "Pairing", "TimedPairing", "TrackingService"]
__getattr__ = lazy(
    __name__,
    {
        "collections": ("TrackingService",),
        "double_forest": ("DoubleForest",),
        "indexed": ("IndexedPairing",),
        "pairs": ("Pairing",),
        "temporal": ("TimedPairing",),
    },
)
