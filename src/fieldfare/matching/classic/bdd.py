"""Binary decision diagrams: all filters as a single Boolean circuit, evaluated once for each event.

A node tests a predicate, a constraint on a dimension, and leads to `high` if the predicate holds and to `low` if not;
all ways end at the terminals 1 and 0. A filter is a node: the event matches if the way from the node ends at 1.
Predicates are numbered, and numbers rise along every way, so that equal functions are equal nodes (Bryant 1986). All
filters share nodes: no two nodes have the same predicate, high and low, and no node has high = low.

A node is made after the nodes below. A single pass over the nodes in the order of creation therefore gives all values:
`value = value[high] if predicate else value[low]`. (The book's text, not its code, has high and low the wrong way
round.) Every predicate is evaluated at most once, every node exactly once.

The price is size: a filter can need exponentially many nodes. A filter beyond the limit is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from fieldfare.events.event import fields_of
from fieldfare.filters import Filter, FilterTooComplex
from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.matching.classic.counting import PredicateIndex
from fieldfare.matching.matcher import Id, Matcher, as_filter

FALSE: Final = 0
TRUE: Final = 1
MAX_NODES: Final = 250_000

Triple: TypeAlias = tuple[int, int, int]


class Diagram:
    """Shared nodes over numbered predicates. A Boolean function is the number of its node."""

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self._nodes: list[Triple] = []
        """predicate, high and low, from node 2 on"""
        self._numbers: dict[Triple, int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, predicate: int, high: int, low: int) -> int:
        """Return the node "if the predicate holds high, else low"."""
        if high == low:
            return high
        key = (predicate, high, low)
        number = self._numbers.get(key)
        if number is None:
            if len(self._nodes) >= self.limit:
                raise FilterTooComplex(f"the decision diagram would have more than {self.limit} nodes")
            number = self._numbers[key] = len(self._nodes) + 2
            self._nodes.append(key)
        return number

    def all_of(self, predicates: Iterable[int]) -> int:
        """Return the conjunction of predicates."""
        result = TRUE
        for predicate in sorted(predicates, reverse=True):
            result = self.node(predicate, result, FALSE)
        return result

    def either(self, a: int, b: int) -> int:
        """Return the node of "a or b"."""
        return self.choose(a, TRUE, b)

    def both(self, a: int, b: int) -> int:
        """Return the node of "a and b"."""
        return self.choose(a, b, FALSE)

    def negated(self, a: int) -> int:
        """Return the node of "not a": the same diagram with swapped terminals."""
        return self.choose(a, FALSE, TRUE)

    def choose(self, condition: int, high: int, low: int) -> int:
        """Return "if the condition holds high, else low": the operation that all others use.

        Splits on the first predicate of the three and works on both halves, each distinct half once. A stack instead of
        recursion, since a filter may have more predicates than Python has frames.
        """
        wanted = (condition, high, low)
        known: dict[Triple, int] = {}
        ahead = [wanted]
        while ahead:
            now = ahead[-1]
            result = _plain(*now)
            if result is None:
                first = min(self._nodes[node - 2][0] for node in now if node > TRUE)
                holds, fails = self._halves(now, first)
                if holds in known and fails in known:
                    result = self.node(first, known[holds], known[fails])
                elif len(known) > self.limit:
                    raise FilterTooComplex(f"combining decision diagrams takes more than {self.limit} steps")
                else:
                    ahead += [half for half in (holds, fails) if half not in known]
            if result is not None:
                known[ahead.pop()] = result
        return known[wanted]

    def _halves(self, triple: Triple, predicate: int) -> tuple[Triple, Triple]:
        """Return three nodes under a true predicate and under a false one; no node may have an earlier predicate."""
        pairs = []
        for node in triple:
            first, high, low = self._nodes[node - 2] if node > TRUE else (None, node, node)
            pairs.append((high, low) if first == predicate else (node, node))
        (a, x), (b, y), (c, z) = pairs
        return (a, b, c), (x, y, z)

    def values(self, holds: Sequence[int]) -> list[bool]:
        """Return the value of every node, terminals first, given the truth of the predicates."""
        values = [False, True]
        for predicate, high, low in self._nodes:
            values.append(values[high] if holds[predicate] else values[low])
        return values

    def sweep(self, kept: Iterable[int]) -> tuple[dict[int, int], list[int]]:
        """Drop all nodes that serve no kept node, and close the gaps in the numbers of nodes and predicates.

        Returns the new number of each node that stays, and the old numbers of the predicates that stay, in order.
        """
        live = set(kept)
        for number in range(len(self._nodes) + 1, TRUE, -1):
            if number in live:
                live.update(self._nodes[number - 2][1:])
        staying = [(number, node) for number, node in enumerate(self._nodes, start=2) if number in live]
        predicates = sorted({node[0] for _, node in staying})
        ranks = {predicate: rank for rank, predicate in enumerate(predicates)}
        self._nodes, self._numbers = [], {}
        renumbered = {FALSE: FALSE, TRUE: TRUE}
        for number, (predicate, high, low) in staying:
            renumbered[number] = self.node(ranks[predicate], renumbered[high], renumbered[low])
        return renumbered, predicates


def _plain(condition: int, high: int, low: int) -> int | None:
    """Return the result of a choice that needs no split, else None."""
    if condition == TRUE or high == low:
        return high
    if condition == FALSE:
        return low
    return condition if (high, low) == (TRUE, FALSE) else None


class DecisionDiagram(Matcher[Id]):
    """A matcher that evaluates a single shared diagram.

    Args:
        limit: the number of nodes allowed; a filter that needs more is refused with `FilterTooComplex`.

    >>> matcher = DecisionDiagram[str]()
    >>> matcher.add("cheap", "price < 10 AND symbol = 'IBM'")
    >>> matcher.match({"price": 5, "symbol": "IBM"}), matcher.match({"price": 5})
    (['cheap'], [])
    """

    def __init__(self, limit: int = MAX_NODES) -> None:
        self._diagram = Diagram(limit)
        self._outputs: dict[Id, int] = {}
        """the node of each filter"""
        self._predicates: list[tuple[Dimension, Constraint]] = []
        self._numbers: PredicateIndex[int] = PredicateIndex()
        self._removed = 0
        """filters removed since the last sweep"""

    def add(self, id: Id, filter: Filter | str) -> None:
        """Make the node of the filter."""
        if id in self._outputs:
            raise KeyError(id)
        self._outputs[id] = self._built(as_filter(filter))

    def update(self, id: Id, filter: Filter | str) -> None:
        """Replace a filter; the old filter stays if there is no room for the new."""
        output = self._built(as_filter(filter))
        replaced = id in self._outputs
        self._outputs[id] = output
        if replaced:
            self._forget_one()

    def remove(self, id: Id) -> None:
        """Drop the node of the filter; nodes without use are swept when there are many."""
        del self._outputs[id]
        self._forget_one()

    def _forget_one(self) -> None:
        self._removed += 1
        if self._removed > len(self._outputs):
            self._sweep()

    def _built(self, wanted: Filter) -> int:
        try:
            return self._build(wanted)
        except FilterTooComplex:
            self._sweep()  # nodes of removed filters may take the room
        try:
            return self._build(wanted)
        except FilterTooComplex:
            self._sweep()
            raise

    def _build(self, wanted: Filter) -> int:
        output = FALSE
        for branch in wanted.branches:
            output = self._diagram.either(output, self._diagram.all_of(map(self._number, branch.items())))
        return output

    def _number(self, predicate: tuple[Dimension, Constraint]) -> int:
        number = self._numbers.setdefault(*predicate, len(self._predicates))
        if number == len(self._predicates):
            self._predicates.append(predicate)
        return number

    def _sweep(self) -> None:
        renumbered, predicates = self._diagram.sweep(self._outputs.values())
        self._outputs = {id: renumbered[output] for id, output in self._outputs.items()}
        staying = [self._predicates[number] for number in predicates]
        self._predicates, self._numbers = [], PredicateIndex()
        for predicate in staying:
            self._number(predicate)
        self._removed = 0

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Evaluate the predicates, then all nodes; return the ids of the true ones."""
        holds = bytearray(len(self._predicates))
        for number in self._numbers.satisfied(fields_of(event), mode):
            holds[number] = True
        values = self._diagram.values(holds)
        return [id for id, output in self._outputs.items() if values[output]]

    def __len__(self) -> int:
        return len(self._outputs)

    def __contains__(self, id: object) -> bool:
        return id in self._outputs
