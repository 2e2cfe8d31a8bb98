"""Filters over the texts of attributes, and the same filters over the attributes.

The CloudEvents dialects compare texts: a document is a filter over dimensions `CESQL('STRING(x)')`, each of which is a
string or missing. This filter has a single normal form, however the document was written. But an index, and other
filters, know the attribute `x`: the sides are therefore moved to `x` where a set of values has the same meaning. Where
no set has, since some kind of values has texts inside and outside, both forms are kept, `x STARTS WITH 'com' OR
CESQL('STRING(x)') STARTS WITH 'com'`. The second part alone is exact; the first part, which omits the odd kinds, exists
so that filters on `x` are covered.
"""

from __future__ import annotations

from collections.abc import Iterator

from fieldfare.events.values import MISSING
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.cesql.casts import values_of
from fieldfare.filters.languages.cesql.expression import Cesql
from fieldfare.filters.languages.cesql.syntax import Attribute, Call
from fieldfare.filters.predicates import conjunction
from fieldfare.filters.strings import StringSet
from fieldfare.filters.valueset import ValueSet


def text_in(strings: StringSet, *, missing: bool) -> ValueSet:
    """Return the texts in the set and, if `missing`, every value that is no string."""
    return ~ValueSet(strings=~strings) if missing else ValueSet(strings=strings)


def attribute_of(dimension: Dimension) -> str | None:
    """Return the attribute whose text a dimension is, or None."""
    match dimension:
        case Cesql(Call("STRING", (Attribute(name),))):
            return name
    return None


def on_attributes(filter: Filter) -> Filter:
    """Return the filter with conditions on texts moved to the attributes.

    >>> from fieldfare.filters import parse
    >>> print(on_attributes(parse("CESQL('STRING(type)') STARTS WITH 'com.' AND CESQL('STRING(hop)') = '5'")))
    hop IN (5, '5') AND type STARTS WITH 'com.'
    """
    return Filter(box for branch in filter.boxes for part in _moved(branch) for box in part.boxes)


def _moved(branch: Branch) -> Iterator[Filter]:
    sides = [_side(dimension, wanted) for dimension, wanted in branch.items()]
    yield conjunction(surely for surely, _ in sides)
    if any(exactly is not surely for surely, exactly in sides):
        yield conjunction(exactly for _, exactly in sides)


def _side(dimension: Dimension, wanted: Constraint) -> tuple[Filter, Filter]:
    """Return a side of a box as sets of values, without the odd kinds; and exactly, as the text if there are any."""
    name = attribute_of(dimension)
    if name is None:
        return (same := Filter.where(dimension, wanted)), same
    missing = MISSING in wanted.values
    inside, odd = values_of((~wanted.values if missing else wanted.values).strings)
    surely = Filter.where(name, Constraint(~(inside | odd) if missing else inside))
    return surely, surely if odd.is_empty else Filter.where(dimension, wanted)
