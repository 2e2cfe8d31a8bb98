"""Profiles and queries that last: the double forest, temporal subspaces, and collections that track objects."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.profiles.collections import AccessError, Rule, TrackingService, View
    from fieldfare.profiles.double_forest import DoubleForest
    from fieldfare.profiles.event_profile import profile_of
    from fieldfare.profiles.indexed import IndexedPairing
    from fieldfare.profiles.pairs import NaivePairing, Pairing
    from fieldfare.profiles.temporal import TimedPairing

__all__ = [
    "AccessError",
    "DoubleForest",
    "IndexedPairing",
    "NaivePairing",
    "Pairing",
    "Rule",
    "TimedPairing",
    "TrackingService",
    "View",
    "profile_of",
]
__getattr__ = lazy(
    __name__,
    {
        "collections": (
            "AccessError",
            "Rule",
            "TrackingService",
            "View",
        ),
        "double_forest": ("DoubleForest",),
        "event_profile": ("profile_of",),
        "indexed": ("IndexedPairing",),
        "pairs": (
            "NaivePairing",
            "Pairing",
        ),
        "temporal": ("TimedPairing",),
    },
)
