"""Examples: a simple value that satisfies a constraint."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final

from fieldfare.events.values import MISSING, Kind
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.strings import automaton_of
from fieldfare.filters.valueset import Atom, ValueSet

_ATOMS: Final[tuple[tuple[int, Any], ...]] = (
    (Atom.MISSING, MISSING), (Atom.NULL, None), (Atom.TRUE, True), (Atom.FALSE, False), (Atom.NAN, math.nan),
    (Atom.OBJECT, {}),
)  # fmt: skip
_BOTTOM: Final = {Kind.TIME: datetime.min.replace(tzinfo=UTC), Kind.BYTES: b""}


def example(wanted: Constraint) -> Any:
    """Return a value that satisfies the constraint, MISSING if absence does."""
    single = _of_set(wanted.values)
    if single is not None:
        return single[0]
    return tuple(found[0] for hit in wanted.some or () if (found := _of_set(hit)) is not None)  # only a list will do


def _of_set(values: ValueSet) -> tuple[Any] | None:
    """Return a member of the set in a tuple, or None if the set has only lists."""
    for bit, value in _ATOMS:
        if values.atoms & bit:
            return (value,)
    for kind, part in values.kinds():
        if kind is Kind.STRING:
            return (automaton_of(part).shortest(),)
        assert isinstance(part, Intervals)
        return (_number(part) if kind is Kind.NUMBER else _BOTTOM[kind] if part.start else part.cuts[0][0],)
    return None


def _number(part: Intervals) -> float:
    low, high = next(part.pieces())
    if low is None:
        return -math.inf
    if low[1] == 0:
        return low[0]  # type: ignore[no-any-return]
    above = math.nextafter(low[0], math.inf)
    return above if high is None or (above, 0) < high else low[0]  # between neighbours there is no number to show
