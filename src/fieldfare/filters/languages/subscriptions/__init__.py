"""Filter documents of the CloudEvents Subscriptions API: `parse` reads a document, `render` writes one.

>>> from fieldfare.filters.languages import subscriptions
>>> subscriptions.render(subscriptions.parse({"prefix": {"type": "com."}}))
{'prefix': {'type': 'com.'}}
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.filters.languages.subscriptions.documents import parse
    from fieldfare.filters.languages.subscriptions.printer import render

__all__ = ["parse", "render"]
__getattr__ = lazy(__name__, {"documents": ("parse",), "printer": ("render",)})
