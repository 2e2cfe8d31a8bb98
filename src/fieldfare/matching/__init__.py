"""Matching: which of many filters an event satisfies, and which stored filters cover or overlap a filter."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.matching.classic.bdd import DecisionDiagram
    from fieldfare.matching.classic.brute import BruteForce
    from fieldfare.matching.classic.counting import Counting
    from fieldfare.matching.classic.paths import PathMatcher
    from fieldfare.matching.classic.tree import DecisionTree
    from fieldfare.matching.index import Index
    from fieldfare.matching.matcher import Matcher
    from fieldfare.matching.stats import Stats
    from fieldfare.matching.store.snapshot import SnapshotError

__all__ = [
    "BruteForce",
    "Counting",
    "DecisionDiagram",
    "DecisionTree",
    "Index",
    "Matcher",
    "PathMatcher",
    "SnapshotError",
    "Stats",
]
__getattr__ = lazy(
    __name__,
    {
        "classic.bdd": ("DecisionDiagram",),
        "classic.brute": ("BruteForce",),
        "classic.counting": ("Counting",),
        "classic.paths": ("PathMatcher",),
        "classic.tree": ("DecisionTree",),
        "index": ("Index",),
        "matcher": ("Matcher",),
        "stats": ("Stats",),
        "store.snapshot": ("SnapshotError",),
    },
)
