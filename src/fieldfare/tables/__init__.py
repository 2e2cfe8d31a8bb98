"""Filters × filters: which filters must a neighbour know?"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.tables.base import Table, Tests
    from fieldfare.tables.indexed import IndexedTable
    from fieldfare.tables.merging.roots import RootMerger, merged
    from fieldfare.tables.structures.forest_tables import BalancedForest, NonRedundantForest, PosetForest
    from fieldfare.tables.structures.naive import NaiveTable, minimal_cover
    from fieldfare.tables.structures.poset import Poset
    from fieldfare.tables.updates import TableUpdate, apply

__all__ = [
    "BalancedForest",
    "IndexedTable",
    "NaiveTable",
    "NonRedundantForest",
    "Poset",
    "PosetForest",
    "RootMerger",
    "Table",
    "TableUpdate",
    "Tests",
    "apply",
    "merged",
    "minimal_cover",
]
__getattr__ = lazy(
    __name__,
    {
        "base": (
            "Table",
            "Tests",
        ),
        "indexed": ("IndexedTable",),
        "merging.roots": (
            "RootMerger",
            "merged",
        ),
        "structures.forest_tables": (
            "BalancedForest",
            "NonRedundantForest",
            "PosetForest",
        ),
        "structures.naive": (
            "NaiveTable",
            "minimal_cover",
        ),
        "structures.poset": ("Poset",),
        "updates": (
            "TableUpdate",
            "apply",
        ),
    },
)
