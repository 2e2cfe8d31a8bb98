"""Event patterns of Amazon EventBridge and Event Ruler: `parse` reads a pattern, `render` writes one.

>>> from fieldfare.filters.languages import ruler
>>> ruler.render(ruler.parse({"state": ["open"]}))
{'state': ['open']}
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.filters.languages.ruler.patterns import parse, render

__all__ = ["parse", "render"]
__getattr__ = lazy(
    __name__,
    {
        "patterns": (
            "parse",
            "render",
        )
    },
)
