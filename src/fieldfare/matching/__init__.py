"""Filters × events: which of many filters does an event match?"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.matching.base import Matcher
    from fieldfare.matching.classic.bdd import DecisionDiagram
    from fieldfare.matching.classic.brute import BruteForce
    from fieldfare.matching.classic.counting import Counting
    from fieldfare.matching.classic.paths import PathMatcher
    from fieldfare.matching.classic.tree import DecisionTree
    from fieldfare.matching.index import Index

__all__ = ["BruteForce", "Counting", "DecisionDiagram", "DecisionTree", "Index", "Matcher", "PathMatcher"]
__getattr__ = lazy(
    __name__,
    {
        "base": ("Matcher",),
        "classic.bdd": ("DecisionDiagram",),
        "classic.brute": ("BruteForce",),
        "classic.counting": ("Counting",),
        "classic.paths": ("PathMatcher",),
        "classic.tree": ("DecisionTree",),
        "index": ("Index",),
    },
)
