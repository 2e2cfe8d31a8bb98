"""Sigma: detection rules for log events, read as filters. `parse` reads a rule, a `LogSchema` says how events look.

>>> from fieldfare.filters.languages import sigma
>>> detection = {"selection": {"Image|endswith": "cmd.exe"}, "condition": "selection"}
>>> print(sigma.parse({"logsource": {"product": "windows"}, "detection": detection}))
ANY Image ILIKE '%cmd.exe' AND logsource.product = 'windows'
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.filters.languages.sigma.rules import documents, parse
    from fieldfare.filters.languages.sigma.schema import LogSchema, Source

__all__ = ["LogSchema", "Source", "documents", "parse"]
__getattr__ = lazy(__name__, {"rules": ("documents", "parse"), "schema": ("LogSchema", "Source")})
