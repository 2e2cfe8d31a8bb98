"""Filters: what a subscriber accepts, the exact algebra of value sets beneath, and the languages that lead to them."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy
from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter, Merger
from fieldfare.filters.languages.native.translation import parse
from fieldfare.filters.valueset import ValueSet

if TYPE_CHECKING:
    from fieldfare.filters.admission import admit
    from fieldfare.filters.advertisement import Advertisement
    from fieldfare.filters.diagnosis import diagnose
    from fieldfare.filters.dialects import Dialect
    from fieldfare.filters.type_hierarchy import instance_of

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Advertisement",
    "Dialect",
    "Filter",
    "FilterDocumentError",
    "FilterSyntaxError",
    "FilterTooComplex",
    "Merger",
    "ValueSet",
    "admit",
    "diagnose",
    "instance_of",
    "parse",
]
__getattr__ = lazy(
    __name__,
    {
        "admission": ("admit",),
        "advertisement": ("Advertisement",),
        "diagnosis": ("diagnose",),
        "dialects": ("Dialect",),
        "type_hierarchy": ("instance_of",),
    },
)
