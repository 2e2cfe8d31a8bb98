"""`Principal`: the holder of a token, with the permissions of all roles in the token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from fieldfare.filters import FilterTooComplex
from fieldfare.node.security import tokens
from fieldfare.node.security.access_rules import Security
from fieldfare.node.security.errors import AccessDenied, Unauthenticated
from fieldfare.node.security.revocations import Credential
from fieldfare.node.security.roles import Role, union


class Principal(NamedTuple):
    """A client or node that is known by its token, or an anonymous one."""

    name: str
    """empty: anonymous. The name in a token is never empty, so no token can claim this one."""
    roles: tuple[str, ...]
    """the roles of the token that this node knows"""
    permissions: Role
    until: float | None = None
    """end of the token, leeway included: the node ends the connection at this time"""
    token: str = ""
    """the id of the token (`jti`), if there is one"""
    issued: float | None = None

    @property
    def credential(self) -> Credential:
        """The marks by which the file of void tokens may name the token."""
        return Credential(self.name, self.token, self.issued)


EVERYBODY: Final = Principal("", (), Role(True, True, True, administer=True, join=True, interest=True))
"""every caller, where there is no security"""


def principal_of(token: str | None, security: Security | None, now: float) -> Principal:
    """Return the principal of a token, or the anonymous one for None; Unauthenticated if neither is accepted."""
    if security is None:
        return EVERYBODY
    if token is None:
        if not security.anonymous:
            raise Unauthenticated("a token is needed here: Authorization: Bearer TOKEN")
        return Principal("", (security.anonymous,), security.roles[security.anonymous])
    claims = tokens.verify(token, security, now)
    roles = _known(claims.roles, security)
    permissions = _together(roles, security)
    principal = Principal(claims.sub, roles, permissions, claims.exp + tokens.LEEWAY, claims.jti, claims.iat)
    if is_void(principal.credential, security):
        raise Unauthenticated("the token is void: get a new one")
    return principal


def with_roles(name: str, roles: Iterable[str], security: Security | None, until: float | None = None) -> Principal:
    """Return a principal from stored role names; roles that no longer exist permit nothing."""
    if security is None:
        return EVERYBODY
    known = _known(roles, security)
    return Principal(name, known, _together(known, security), until)


def is_void(credential: Credential, security: Security | None) -> bool:
    """Tell whether the file of void tokens names a token."""
    return security is not None and security.revocations is not None and security.revocations.is_void(credential)


def watch(principal: Principal, security: Security | None, end: Callable[[], None]) -> Callable[[], None]:
    """Call `end` when the token becomes void; return a function that stops the watch."""
    if security is None or security.revocations is None:
        return lambda: None
    return security.revocations.watch(principal.credential, end)


def _known(roles: Iterable[str], security: Security) -> tuple[str, ...]:
    return tuple(sorted({role for role in roles if role in security.roles}))


def _together(names: tuple[str, ...], security: Security) -> Role:
    try:
        return union(security.roles[name] for name in names)
    except FilterTooComplex:
        raise AccessDenied(
            f"the filters of the roles {', '.join(names)} are too many to combine: use a token with fewer roles"
        ) from None
