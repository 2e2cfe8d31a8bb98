"""The routing strategies, each a choice of tables. From top to bottom neighbours know less and brokers think more.

| strategy | a neighbour knows |
|---|---|
| `flooding` | nothing, and gets every event |
| `simple` | every subscription, by name |
| `identity` | every filter, once |
| `covering` | the filters that no other covers |
| `merging` | the same, merged where two are exactly one |
| `imperfect` | the same, merged also where that lets a few events pass unasked |
| `book-merging` | as covering; but each broker merges what an interface has told it, in its own table |
| `prefix` | as covering; but events are forwarded by tags, and matched only where they enter |

For overlays with cycles there are `cyclic(strategy)`, which lets any of them use a tree of links that brokers agree on,
and `SOURCES`: every event on the tree of shortest ways from where it was published.

With advertisements (`with_advertisements`) subscriptions go only where something they overlap is advertised. Whether
routing is peer-to-peer, hierarchical or hybrid is not a matter of the strategy but of the roles of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from fieldfare.matching.index import Index
from fieldfare.routing.overlays.rendezvous import Rendezvous
from fieldfare.routing.overlays.shared_tree import SharedTree
from fieldfare.routing.overlays.source_trees import SourceTrees
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.routes import Flooding, LinkRoutes, Routes
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.base import MakeIndex, Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.merging.rules import Merging
from fieldfare.tables.structures.distinct import DistinctTable

MakeTable: TypeAlias = Callable[..., Table[Any]]
"""an empty table; its `towards` and `index` come by name"""


Order: TypeAlias = Literal["causal", "fifo", "none"]
"""an event after those that may have caused it; after those that its publisher published before; or neither"""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How to route."""

    name: str
    table: MakeTable | None
    """of subscriptions; None: flood"""
    named: bool = False
    """tell subscriptions apart by name"""
    merging: Merging | None = None
    merge_stored: bool = False
    """merge what interfaces have told us, not what we tell neighbours"""
    advertisements: MakeTable | None = None

    overlay: Literal["acyclic", "tree", "sources", "rendezvous"] = "acyclic"
    """links form no cycles; or they may, and a tree of them is used, or one for each source; or there is a DHT"""
    field: str = "type"
    """by which events are given to rendezvous"""

    topics: int = 64
    """into which a rendezvous overlay divides the values of that field"""
    replicas: int = 2
    """how many brokers keep copies for a rendezvous"""
    prefix: PrefixOptions | None = None
    """forward events by tags, with these settings"""

    @property
    def order(self) -> Order:
        """The order that is kept while links stay as they are."""
        return "fifo" if self.overlay in ("sources", "rendezvous") else "causal"

    def routes(self, name: str, life: int = 0, index: MakeIndex = Index) -> Routes:
        """The routing state of a new broker."""
        if self.overlay == "sources":
            return SourceTrees(name, life)
        if self.overlay == "rendezvous":
            return Rendezvous(name, self, life, index)
        if self.prefix is not None:
            from fieldfare.routing.prefix.routes import PrefixRoutes  # noqa: PLC0415 - which has brokers inside

            return PrefixRoutes(name, self, life, index)
        routes: LinkRoutes = Flooding() if self.table is None else TableRoutes(self, index)
        return routes if self.overlay == "acyclic" else SharedTree(name, life, routes)


FLOODING: Final = Strategy("flooding", None)
SIMPLE: Final = Strategy("simple", DistinctTable, named=True)
IDENTITY: Final = Strategy("identity", DistinctTable)
COVERING: Final = Strategy("covering", IndexedTable)
MERGING: Final = Strategy("merging", IndexedTable, merging=Merging())
IMPERFECT: Final = Strategy("imperfect", IndexedTable, merging=Merging(imperfect=True, budget=0.25))
BOOK_MERGING: Final = Strategy("book-merging", IndexedTable, merging=Merging(), merge_stored=True)
PREFIX: Final = Strategy("prefix", IndexedTable, prefix=PrefixOptions())

_PLAIN: Final = (FLOODING, SIMPLE, IDENTITY, COVERING, MERGING, IMPERFECT, BOOK_MERGING, PREFIX)


def by_name(name: str) -> Strategy:
    """A strategy by name: one of STRATEGIES, perhaps with `+tree`, or `sources`, or `rendezvous`.

    >>> by_name("merging+ads+tree").overlay
    'tree'
    """
    known = {**STRATEGIES, **{other.name: other for other in (SOURCES, RENDEZVOUS)}}
    plain, tree, rest = name.partition("+tree")
    bears = {name: strategy for name, strategy in STRATEGIES.items() if strategy.prefix is None}
    if plain not in known or rest or (tree and plain not in bears):
        raise ValueError(
            f"there is no strategy {name!r}; there are {', '.join(known)}; and with +tree {', '.join(bears)}"
        )
    return cyclic(known[plain]) if tree else known[plain]


def with_advertisements(strategy: Strategy, table: MakeTable = IndexedTable) -> Strategy:
    """The same, but subscriptions go only towards advertisements, which are routed by a table of their own."""
    if strategy.table is None:
        raise ValueError("flooding tells nobody anything: advertisements cannot narrow that")
    return replace(strategy, name=f"{strategy.name}+ads", advertisements=table)


def cyclic(strategy: Strategy) -> Strategy:
    """The same for an overlay with cycles, over a tree that brokers agree on, and another when a link breaks."""
    if strategy.overlay != "acyclic":
        raise ValueError(f"{strategy.name} has its own way with cycles")
    if strategy.prefix is not None:
        raise ValueError(f"{strategy.name} needs an overlay without cycles")
    return replace(strategy, name=f"{strategy.name}+tree", overlay="tree")


SOURCES: Final = replace(SIMPLE, name="sources", overlay="sources")
"""for an overlay with cycles: every broker knows all subscriptions, and events take the shortest ways"""

RENDEZVOUS: Final = replace(COVERING, name="rendezvous", overlay="rendezvous")
"""for brokers that can all reach each other: subscriptions and events of a type meet at a broker found by hashing.
Events of different types take different ways; those of one publisher wait for each other (`turns`)."""

STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for plain in _PLAIN
    for strategy in ([plain] if plain.table is None or plain.merge_stored else [plain, with_advertisements(plain)])
}
"""by name, for overlays without cycles; flooding works in all"""
