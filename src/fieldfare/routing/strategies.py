"""The routing strategies, each a choice of tables. From top to bottom neighbours know less and brokers compute more.

| strategy | a neighbour knows |
|---|---|
| `flooding` | nothing, and gets every event |
| `simple` | every subscription, by name |
| `identity` | every filter, once |
| `covering` | the filters that no other covers |
| `merging` | the same, merged where the union of two filters is a filter |
| `imperfect` | the same, merged also where a few unwanted events may pass |
| `book-merging` | as covering; but each broker merges the filters of an interface in its own table |
| `prefix` | as covering; but events are forwarded by tags, and matched only where they enter |

For overlays with cycles there are `cyclic(strategy)`, which lets any strategy use a tree of links on which brokers
agree, and `SOURCES`: every event takes the tree of shortest ways from its broker.

With advertisements (`with_advertisements`) subscriptions go only where an overlapping event is advertised. Hierarchical
and hybrid routing are no strategies but roles of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.routes import Flooding, LinkRoutes, Routes
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.base import Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.merging.rules import Merging
from fieldfare.tables.shared_index import SharedIndex
from fieldfare.tables.structures.distinct import DistinctTable

MakeTable: TypeAlias = Callable[..., Table[Any]]
"""makes an empty table; `towards` and `index` are passed by name"""


Order: TypeAlias = Literal["causal", "fifo", "none"]
"""causal: an event comes after its causes; fifo: after the earlier events of its publisher; none: in any order"""


@dataclass(frozen=True, slots=True)
class Strategy:
    """The tables, the merging and the overlay by which a broker routes."""

    name: str
    table: MakeTable | None
    """makes the table of subscriptions; None: flood"""
    named: bool = False
    """tell subscriptions apart by name, not by filter"""
    merging: Merging | None = None
    merge_stored: bool = False
    """merge the stored filters of interfaces, not the filters sent to neighbours"""
    advertisements: MakeTable | None = None

    overlay: Literal["acyclic", "tree", "sources", "rendezvous"] = "acyclic"
    """links without cycles; links with cycles and a shared tree, or a tree for each source; or a DHT"""
    field: str = "type"
    """the field by which events are assigned to rendezvous brokers"""

    topics: int = 64
    """the number of topics into which a rendezvous overlay divides the values of the field"""
    replicas: int = 2
    """the number of brokers with a copy of a rendezvous' table"""
    prefix: PrefixOptions | None = None
    """the options of forwarding by tags; None: forward by content"""

    @property
    def order(self) -> Order:
        """The order in which events arrive while links stay up."""
        return "fifo" if self.overlay in ("sources", "rendezvous") else "causal"

    @property
    def crosses_borders(self) -> bool:
        """Whether two domains can meet with the strategy: brokers tell neighbours filters, and nobody else anything."""
        return self.overlay == "acyclic" and self.prefix is None

    def routes(self, name: str, life: int, index: SharedIndex) -> Routes:
        """Return the routing state of a new broker over the index of the broker's filters.

        Each overlay is imported here: a node needs at most one.
        """
        if self.overlay == "sources":
            from fieldfare.routing.overlays.source_trees import SourceTrees  # noqa: PLC0415

            return SourceTrees(name, life, index)
        if self.overlay == "rendezvous":
            from fieldfare.routing.overlays.rendezvous import Rendezvous  # noqa: PLC0415

            return Rendezvous(name, self, life, index)
        if self.prefix is not None:
            from fieldfare.routing.prefix.routes import PrefixRoutes  # noqa: PLC0415 - has brokers inside

            return PrefixRoutes(name, self, life, index)
        routes: LinkRoutes = Flooding() if self.table is None else TableRoutes(self, index)
        if self.overlay == "acyclic":
            return routes
        from fieldfare.routing.overlays.shared_tree import SharedTree  # noqa: PLC0415

        return SharedTree(name, life, routes)


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
    """Return a strategy by name: one of STRATEGIES, perhaps with `+tree`, or `sources`, or `rendezvous`.

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
    """Return the strategy with a table of advertisements, towards which subscriptions are routed."""
    if strategy.table is None:
        raise ValueError("flooding sends no filters: advertisements cannot reduce them")
    return replace(strategy, name=f"{strategy.name}+ads", advertisements=table)


def cyclic(strategy: Strategy) -> Strategy:
    """Return the strategy for an overlay with cycles: brokers agree on a tree, and on another when a link breaks."""
    if strategy.overlay != "acyclic":
        raise ValueError(f"{strategy.name} has its own way with cycles")
    if strategy.prefix is not None:
        raise ValueError(f"{strategy.name} needs an overlay without cycles")
    return replace(strategy, name=f"{strategy.name}+tree", overlay="tree")


SOURCES: Final = replace(SIMPLE, name="sources", overlay="sources")
"""for an overlay with cycles: every broker knows all subscriptions, and events take the shortest ways"""

RENDEZVOUS: Final = replace(COVERING, name="rendezvous", overlay="rendezvous")
"""for brokers that can all reach each other: subscriptions and events of a type meet at a broker found by hashing.
Events of different types take different ways; those of one publisher wait for each other (`publisher_order`)."""

STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for plain in _PLAIN
    for strategy in ([plain] if plain.table is None or plain.merge_stored else [plain, with_advertisements(plain)])
}
"""strategies by name, for overlays without cycles; flooding works in all"""
