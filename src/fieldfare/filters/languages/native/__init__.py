"""The native filter language: SQL-like conditions over the fields of an event.

>>> from fieldfare.filters.languages import native
>>> print(native.parse("price < :limit", limit=5))
price < 5
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.filters.languages.native.translation import parse

__all__ = ["parse"]
__getattr__ = lazy(__name__, {"translation": ("parse",)})
