"""Public names of a package that Python imports at the first use of a name.

Some public names are slow to import, or need an extra: `from fieldfare.client import connect` loads WebSockets, but
`import fieldfare.client` does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from fieldfare.extras import advice


def lazy(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Make the `__getattr__` of a package from a table of modules and their names.

    If a module of an extra is missing, the error names the extra.

    >>> lazy("fieldfare.events", {"values": ("KINDS",)})("NOTHING")
    Traceback (most recent call last):
    AttributeError: module 'fieldfare.events' has no attribute 'NOTHING'
    """
    places = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(advice(error) or str(error), name=error.name) from None

    return get
