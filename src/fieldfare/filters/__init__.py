"""What is wanted: filters, the exact algebra of value sets beneath them, and the languages that lead to them."""

from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter, Merger
from fieldfare.filters.languages.native.translation import parse
from fieldfare.filters.valueset import ValueSet

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Filter",
    "FilterDocumentError",
    "FilterSyntaxError",
    "FilterTooComplex",
    "Merger",
    "ValueSet",
    "parse",
]
