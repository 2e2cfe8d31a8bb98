"""Filters × filters: which filters must a neighbour know, and which stored queries and profiles meet?"""

from fieldfare.tables.base import Table, Tests
from fieldfare.tables.doubleforest import DoubleForest
from fieldfare.tables.forests import BalancedForest, NonRedundantForest, PosetForest
from fieldfare.tables.forwarding import Update, apply
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.naive import NaiveTable, minimal_cover
from fieldfare.tables.poset import Poset
from fieldfare.tables.rootmerging import RootMerger, merged

__all__ = [
    "BalancedForest",
    "DoubleForest",
    "IndexedTable",
    "NaiveTable",
    "NonRedundantForest",
    "Poset",
    "PosetForest",
    "RootMerger",
    "Table",
    "Tests",
    "Update",
    "apply",
    "merged",
    "minimal_cover",
]
