"""`Advertisement`: the events that a publisher announces, under a closed-world assumption.

A filter leaves a field without a constraint free; an advertisement states that such a field does not occur. An
advertisement *determines* an event if every field of the event is mentioned and has a value in the advertised set. An
advertisement *intersects* a subscription if every predicate of the subscription shares a value with the advertised set
of the same field. As sets: a field that is mentioned may also be missing, and a field without mention must be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fieldfare.events.event import fields_of
from fieldfare.filters import constraint
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter

CONTEXT: Final = frozenset({"id", "source", "type", "time", "specversion", "subject", "datacontenttype", "dataschema"})
"""fields that any event may have without mention in an advertisement"""


@dataclass(frozen=True, slots=True)
class Advertisement:
    """A filter of one branch, read as the announcement of a publisher.

    >>> from fieldfare.filters import parse
    >>> quotes = Advertisement(parse("symbol = 'IBM' AND price > 0"))
    >>> quotes.determines({"symbol": "IBM", "price": 5}), quotes.determines({"symbol": "IBM", "volume": 5})
    (True, False)
    >>> quotes.intersects(parse("price < 10")), quotes.intersects(parse("volume > 5"))
    (True, False)
    """

    filter: Filter

    def __post_init__(self) -> None:
        if len(self.filter.branches) != 1:
            # In a closed world `a = 1` does not make `a = 1 AND b = 1` superfluous, as among filters.
            raise ValueError(f"advertise each alternative on its own, not {self.filter}")
        for dimension in self._branch:
            if not isinstance(dimension, str):
                raise ValueError(f"an advertisement constrains fields only, not {dimension.text}")

    @property
    def _branch(self) -> Branch:
        return self.filter.branches[0]

    def determines(self, event: Mapping[str, object]) -> bool:
        """Tell whether the publisher may publish an event."""
        return all(self.advertised(path).matches(value) for path, value in fields_of(event).items())

    def intersects(self, subscription: Filter) -> bool:
        """Tell whether an event within the advertisement can match the subscription. A "no" is always right."""
        return any(
            all(
                wanted.overlaps(self.advertised(dimension))
                for dimension, wanted in branch.items()
                if isinstance(dimension, str)
            )
            for branch in subscription.branches
        )

    def covers(self, other: Advertisement) -> bool:
        """Tell whether every event within the other advertisement is within this advertisement."""
        paths = {path for path in (*self._branch, *other._branch) if isinstance(path, str)}
        return all(self.advertised(path) >= other.advertised(path) for path in paths)

    def advertised(self, path: str) -> Constraint:
        """Return the values that a field may have, absence included."""
        if path in self._branch:
            return self._branch[path].union(constraint.ABSENT) or constraint.FULL
        return constraint.FULL if path in CONTEXT or self._around(path) else constraint.ABSENT

    def _around(self, path: str) -> bool:
        """Tell whether the path is an object around a mentioned field, or a field inside a mentioned object."""
        return any(
            isinstance(named, str) and (named.startswith(f"{path}.") or path.startswith(f"{named}."))
            for named in self._branch
        )

    def __str__(self) -> str:
        return str(self.filter)
