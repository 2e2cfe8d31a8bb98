"""`Federation`: the domain of a node, and the events for neighbouring domains.

Domains are overlays without knowledge of each other's nodes. Two domains meet at a *border*: a link between two nodes,
each of which knows the other as `NODE@DOMAIN`. Other nodes know another domain by its *address*, `@DOMAIN`, as if a
domain were a single node behind the border. Domains and borders form a tree, as nodes and links do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from fieldfare.filters.filter import Filter

AT: Final = "@"
"""Between the names of a node and of a domain; no name of a node contains the sign."""


class Federation(NamedTuple):
    """The domain of a node with borders; without a name, the node has none."""

    domain: str = ""
    shares: Mapping[str, Filter] = MappingProxyType({})
    """By neighbouring domain: the events for both sides of the border."""

    @property
    def address(self) -> str:
        """The address of the own domain for others; empty without a domain."""
        return address_of(self.domain) if self.domain else ""


def address_of(domain: str) -> str:
    """Return the address of a domain.

    >>> address_of("north")
    '@north'
    """
    return AT + domain


def is_foreign(name: str) -> bool:
    """Tell whether a name is of a node in another domain, or the address of a domain.

    >>> is_foreign("oslo"), is_foreign("oslo@north"), is_foreign("@north")
    (False, True, True)
    """
    return AT in name


def domain_of(name: str) -> str:
    """Return the domain in the name of a foreign node, or in an address.

    >>> domain_of("oslo@north"), domain_of("@north"), domain_of("oslo")
    ('north', 'north', '')
    """
    return name.partition(AT)[2]


def seen_from_outside(name: str, domain: str) -> str:
    """Return the name of a node for other domains; a foreign name stays.

    >>> seen_from_outside("oslo", "north"), seen_from_outside("rome@south", "north")
    ('oslo@north', 'rome@south')
    """
    return name if is_foreign(name) else f"{name}{AT}{domain}"


def visible(names: Iterable[str], neighbour: str, domain: str) -> set[str]:
    """Return the names for a neighbour, of all nodes and domains in reach of a node.

    >>> sorted(visible(["oslo", "rome@south", "@south"], "bern", "north"))
    ['@south', 'oslo']
    >>> sorted(visible(["oslo", "bern", "@east"], "rome@south", "north"))
    ['@east', '@north']
    """
    known = set(names)
    addresses = {name for name in known if name.startswith(AT)}
    if is_foreign(neighbour):
        return addresses | {address_of(domain)}
    return addresses | {name for name in known if not is_foreign(name)}
