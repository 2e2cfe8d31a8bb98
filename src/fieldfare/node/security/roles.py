"""Roles: the permissions that a token brings to its holder.

A permission is all, nothing, or a filter. The holder may publish the events that match the filter, and subscribe to
whatever lies *inside* the filter: see `permissions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple, TypeAlias

from fieldfare.filters import Filter, parse
from fieldfare.node.config import RoleSettings

Permission: TypeAlias = Filter | bool
"""all, nothing, or the inside of a filter"""


class Role(NamedTuple):
    """The permissions of one role, or of several together."""

    publish: Permission = False
    subscribe: Permission = False
    advertise: Permission = False
    administer: bool = False
    join: bool = False
    """be a neighbour of this node"""
    interest: bool = False
    """learn what others subscribe to, as far as it lies inside `publish`"""


def role_of(settings: RoleSettings) -> Role:
    """Return a role from its settings, with the filters parsed.

    >>> role = role_of(RoleSettings(publish="type = 'quote'", subscribe=True))
    >>> role.publish, role.subscribe, role.advertise, role.administer
    (parse("type = 'quote'"), True, parse("type = 'quote'"), False)
    """
    publish = _permission(settings.publish)
    advertise = publish if settings.advertise is None else _permission(settings.advertise)
    return Role(
        publish, _permission(settings.subscribe), advertise, settings.administer, settings.join, settings.interest
    )


def _permission(written: bool | str) -> Permission:
    return parse(written) if isinstance(written, str) else written


def union(roles: Iterable[Role]) -> Role:
    """Return the permissions of several roles together; FilterTooComplex if their filters are too many.

    >>> union([Role(publish=parse("x = 1")), Role(publish=parse("x = 2"), administer=True)]).publish
    parse('x IN (1, 2)')
    """
    return reduce(
        lambda some, more: Role(
            _either(some.publish, more.publish),
            _either(some.subscribe, more.subscribe),
            _either(some.advertise, more.advertise),
            some.administer or more.administer,
            some.join or more.join,
            some.interest or more.interest,
        ),
        roles,
        Role(),
    )


def _either(some: Permission, more: Permission) -> Permission:
    if isinstance(some, bool):
        return some or more
    if isinstance(more, bool):
        return more or some
    return some | more
