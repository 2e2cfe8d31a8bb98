"""Tables of filters with their interfaces: which filters must a neighbour know, and which interfaces get an event?"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.tables.advertised import AdvertisedTable, as_filter
    from fieldfare.tables.base import Table, Tests
    from fieldfare.tables.cover_graph import CoverGraph
    from fieldfare.tables.covers import minimal_cover
    from fieldfare.tables.indexed import IndexedTable
    from fieldfare.tables.merging.per_interface import MergingTable
    from fieldfare.tables.merging.per_neighbour import NeighbourMerger
    from fieldfare.tables.merging.roots import RootMerger, merged
    from fieldfare.tables.merging.rules import Merging
    from fieldfare.tables.network_index import NetworkIndex
    from fieldfare.tables.shared_index import SharedIndex
    from fieldfare.tables.structures.distinct import DistinctTable
    from fieldfare.tables.structures.forest_tables import BalancedForest, NonRedundantForest, PosetForest
    from fieldfare.tables.structures.naive import NaiveTable
    from fieldfare.tables.structures.poset import Poset
    from fieldfare.tables.updates import TableUpdate, apply, exported

__all__ = [
    "AdvertisedTable",
    "BalancedForest",
    "CoverGraph",
    "DistinctTable",
    "IndexedTable",
    "Merging",
    "MergingTable",
    "NaiveTable",
    "NeighbourMerger",
    "NetworkIndex",
    "NonRedundantForest",
    "Poset",
    "PosetForest",
    "RootMerger",
    "SharedIndex",
    "Table",
    "TableUpdate",
    "Tests",
    "apply",
    "as_filter",
    "exported",
    "merged",
    "minimal_cover",
]
__getattr__ = lazy(
    __name__,
    {
        "advertised": (
            "AdvertisedTable",
            "as_filter",
        ),
        "base": (
            "Table",
            "Tests",
        ),
        "cover_graph": ("CoverGraph",),
        "covers": ("minimal_cover",),
        "indexed": ("IndexedTable",),
        "merging.per_interface": ("MergingTable",),
        "merging.per_neighbour": ("NeighbourMerger",),
        "merging.roots": (
            "RootMerger",
            "merged",
        ),
        "merging.rules": ("Merging",),
        "network_index": ("NetworkIndex",),
        "shared_index": ("SharedIndex",),
        "structures.distinct": ("DistinctTable",),
        "structures.forest_tables": (
            "BalancedForest",
            "NonRedundantForest",
            "PosetForest",
        ),
        "structures.naive": ("NaiveTable",),
        "structures.poset": ("Poset",),
        "updates": (
            "TableUpdate",
            "apply",
            "exported",
        ),
    },
)
