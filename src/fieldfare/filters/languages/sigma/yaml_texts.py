"""YAML as rules are written in: only values that JSON has too, no aliases, and no name twice in a map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # of a type that is found at run time
    """A loader with unique names; a date stays a text."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Refuse a name that is in the map already."""
        found: set[object] = set()
        for key, _ in node.value:
            if key.value in found:
                raise yaml.MarkedYAMLError(None, None, f"the name {key.value!r} occurs twice", key.start_mark)
            found.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_all(text: str | bytes) -> Iterator[Any]:
    """Yield the documents of a text; FilterSyntaxError names line and column of a mistake."""
    try:
        written = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise FilterDocumentError("/", f"not UTF-8: {error.reason}") from None
    try:
        for event in yaml.parse(written, _Loader):
            if isinstance(event, yaml.AliasEvent):  # a small text could become a large value
                mark: Any = event.start_mark  # of the loader in C, or of the one in Python
                raise yaml.MarkedYAMLError(None, None, "aliases are not supported", mark)
        for document in yaml.load_all(written, _Loader):
            if document is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FilterSyntaxError(written, mark.index if mark else 0, f"YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise FilterDocumentError("/", f"not YAML: {error}") from None
