"""CloudEvents SQL (CESQL): syntax, evaluation, and translation into filters.

>>> from fieldfare.filters.languages import cesql
>>> print(cesql.parse("type = 'com.sale' AND hop < 3"))
type = 'com.sale' AND CESQL('INT(hop)') < 3
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.filters.languages.cesql.translation import parse

__all__ = ["parse"]
__getattr__ = lazy(__name__, {"translation": ("parse",)})
