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

With advertisements (`with_advertisements`) subscriptions go only where something they overlap is advertised. Whether
routing is peer-to-peer, hierarchical or hybrid is not a matter of the strategy but of the roles of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from fieldfare.routing.filtered import Filtered
from fieldfare.routing.routes import Flooding, Routes
from fieldfare.tables.base import Table
from fieldfare.tables.distinct import DistinctTable
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.merging import Merging

MakeTable: TypeAlias = Callable[..., Table[Any]]
"""an empty table; its `towards` comes by name"""


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

    def routes(self) -> Routes:
        """The routing state of a new broker."""
        return Flooding() if self.table is None else Filtered(self)


FLOODING: Final = Strategy("flooding", None)
SIMPLE: Final = Strategy("simple", DistinctTable, named=True)
IDENTITY: Final = Strategy("identity", DistinctTable)
COVERING: Final = Strategy("covering", IndexedTable)
MERGING: Final = Strategy("merging", IndexedTable, merging=Merging())
IMPERFECT: Final = Strategy("imperfect", IndexedTable, merging=Merging(imperfect=True, budget=0.25))
BOOK_MERGING: Final = Strategy("book-merging", IndexedTable, merging=Merging(), merge_stored=True)

_PLAIN: Final = (FLOODING, SIMPLE, IDENTITY, COVERING, MERGING, IMPERFECT, BOOK_MERGING)


def with_advertisements(strategy: Strategy, table: MakeTable = IndexedTable) -> Strategy:
    """The same, but subscriptions go only towards advertisements, which are routed by a table of their own."""
    if strategy.table is None:
        raise ValueError("flooding tells nobody anything: advertisements cannot narrow that")
    return replace(strategy, name=f"{strategy.name}+ads", advertisements=table)


STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for plain in _PLAIN
    for strategy in ([plain] if plain.table is None or plain.merge_stored else [plain, with_advertisements(plain)])
}
"""by name"""
