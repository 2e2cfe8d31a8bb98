"""`LookedAt`: the fields that the filters of a store look at, so that decoders can leave the others out.

Columns are the fields that entries look at. A filter that entries describe inexactly may look at more when it is
verified; such filters wait here until somebody asks, since most stores are never asked. Fields are only ever added.
"""

from __future__ import annotations

import threading

from fieldfare.filters.elements import Selection, computed
from fieldfare.filters.filter import Filter
from fieldfare.filters.paths import Path
from fieldfare.matching.store.columns import Columns


class LookedAt:
    """The fields of some columns and of some filters."""

    def __init__(self, columns: Columns) -> None:
        self._attributes = columns.attributes
        self._waiting: dict[int, Filter] = {}
        self._fields: set[str] = set()
        self._everything = self._by_prefix = False
        self._lock = threading.Lock()

    def add(self, number: int, wanted: Filter) -> None:
        """Add a filter that will be verified."""
        self._waiting[number] = wanted

    def remove(self, number: int) -> None:
        """Forget a filter, if nobody has asked since the filter was added."""
        self._waiting.pop(number, None)

    def version(self) -> int:
        """Return a number that grows when there are more fields."""
        if self._waiting:
            self._draw()
        return len(self._attributes) + len(self._fields) + self._everything + self._by_prefix

    def _draw(self) -> None:
        with self._lock:
            while self._waiting:
                _, wanted = self._waiting.popitem()
                self._fields |= wanted.fields()
                for dimension in computed(wanted):
                    self._everything |= isinstance(dimension, Path)
                    self._by_prefix |= isinstance(dimension, Selection)

    def paths(self) -> frozenset[str] | None:
        """Return all fields; None if a filter looks at whatever fields there are."""
        return None if self._everything else frozenset([*self._attributes, *self._fields])

    @property
    def by_prefix(self) -> bool:
        """Tell whether a filter looks at all that is below a field, also by dots in names."""
        return self._by_prefix
