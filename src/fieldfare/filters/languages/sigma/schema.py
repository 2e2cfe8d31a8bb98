"""`LogSchema`: how log events look, since a rule says only where its events come from: `product: windows`.

Without a schema, the field `logsource` of an event is an object that says the same: `logsource.product = 'windows'`. A
schema says instead which events a source means (`Channel = 'Security'`), which fields have other names, which fields a
search without a field looks at, and which values placeholders have.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fieldfare import toml
from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.expressions import Literal
from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.filters.languages import native
from fieldfare.filters.predicates import compared, conjunction

_KEYS: Final = ("category", "product", "service")


@dataclass(frozen=True)
class Source:
    """The events of a source of logs: those that the filter matches. A key that is None stands for every value."""

    filter: Filter
    category: str | None = None
    product: str | None = None
    service: str | None = None

    def serves(self, wanted: Mapping[str, Any]) -> bool:
        """Tell whether a rule with this `logsource` means the events of this source."""
        return all(getattr(self, key) in (None, wanted.get(key)) for key in _KEYS)


@dataclass(frozen=True)
class LogSchema:
    """The fields of log events in terms of rules."""

    sources: tuple[Source, ...] | None = None
    """the first source that serves a rule counts; a rule that none serves is refused. None: the field `logsource`"""
    fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """paths in events by the names in rules; other names are paths themselves"""
    keywords: tuple[str, ...] = ("message",)
    """paths of the texts that a search without a field looks at"""
    placeholders: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    """the values of each `%name%` of the modifier `expand`"""

    @classmethod
    def read(cls, text: str, source: str = "schema") -> LogSchema:
        """Return the schema of a TOML text; TomlError for a mistake.

        >>> LogSchema.read('fields = {Image = "process.path"}').path("Image")
        'process.path'
        """
        table = toml.decode(text, _Table, source=source)
        sources = None if table.sources is None else tuple(_source(one) for one in table.sources)
        return cls(sources, table.fields, table.keywords, table.placeholders)

    def path(self, name: str) -> str:
        """Return the path of a field."""
        return self.fields.get(name, name)

    def events(self, wanted: Mapping[str, Any]) -> Filter:
        """Return the filter of a rule's `logsource`."""
        given = {key: wanted[key] for key in _KEYS if wanted.get(key) is not None}
        if self.sources is None:
            return conjunction(compared(f"logsource.{key}", "=", Literal(str(value))) for key, value in given.items())
        for source in self.sources:
            if source.serves(given):
                return source.filter
        said = ", ".join(f"{key} {value}" for key, value in given.items())
        raise FilterDocumentError("/logsource", f"the schema has no source for {said or 'a rule without a source'}")


class _Source(msgspec.Struct, forbid_unknown_fields=True):
    filter: str = ""
    category: str | None = None
    product: str | None = None
    service: str | None = None


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    sources: tuple[_Source, ...] | None = None
    fields: dict[str, str] = {}
    keywords: tuple[str, ...] = ("message",)
    placeholders: dict[str, tuple[str, ...]] = {}


def _source(table: _Source) -> Source:
    meaning = _filter(table.filter) if table.filter else EVERYTHING
    return Source(meaning, table.category, table.product, table.service)


_filter = functools.lru_cache(maxsize=256)(native.parse)
