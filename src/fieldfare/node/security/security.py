"""Who may do what at a node: tokens say who somebody is and which roles they have, roles say what is permitted.

A permission is all, nothing, or a filter. Its holder may publish the events that match the filter, and subscribe to
what lies *inside* it: the filter must cover the subscription. Covering is decided for the filters, not for the events
that there happen to be, and where it cannot be exact it errs towards "not covered". So a subscription that is inside
but cannot be proven to be is refused; one that is not inside never passes. The message says which permission it was,
and what to ask for instead: with the conditions of the permission added, a subscription lies inside.

`subscribable` alone decides about subscriptions. Today it gives the same filter or refuses; a policy that restricts
instead of refusing would give a smaller one.

Without a `[security]` section there is no `Security`, and everybody may do everything.
"""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import jwt
import msgspec

from fieldfare.filters import Filter, FilterTooComplex, parse
from fieldfare.node.config.config import (
    STANDARD_ROLES,
    Config,
    ConfigError,
    RoleSettings,
    Secret,
    SecuritySettings,
    least_bytes,
)
from fieldfare.node.security.revocations import Credential, Revocations

LEEWAY: Final = 30.0
"""seconds by which the clocks of issuers may differ from ours"""
LONGEST_TOKEN: Final = 16_384
LONGEST_NAME: Final = 200

Permission: TypeAlias = Filter | bool
"""all, nothing, or what is inside a filter"""


class AccessDenied(ValueError):
    """Somebody may not do what they want; says why. HTTP calls it 403."""


class Unauthenticated(AccessDenied):
    """It is not known who somebody is: there is no token, or none that counts. HTTP calls it 401."""


class Role(NamedTuple):
    """What somebody may do."""

    publish: Permission = False
    subscribe: Permission = False
    advertise: Permission = False
    administer: bool = False
    join: bool = False
    """be a neighbour of this node"""
    interest: bool = False
    """ask what others subscribe to, as far as it is what they may publish themselves"""


class Principal(NamedTuple):
    """Somebody, and all that their roles permit together."""

    name: str
    """empty: nobody in particular. Tokens have names, so nobody can take this one."""
    roles: tuple[str, ...]
    """the roles that count here; a token may have others"""
    permissions: Role
    until: float | None = None
    """when the token ends, leeway included: who stays connected longer is to be sent away"""
    token: str = ""
    """the id of the token (`jti`), if it has one"""
    issued: float | None = None

    @property
    def credential(self) -> Credential:
        """By which the token may be void."""
        return Credential(self.name, self.token, self.issued)


EVERYBODY: Final = Principal("", (), Role(True, True, True, administer=True, join=True, interest=True))
"""where there is no security"""


@dataclass(frozen=True, slots=True)
class Security:
    """How tokens are checked, and what roles permit."""

    key: Secret
    """the secret, or the public key"""
    algorithms: tuple[str, ...]
    roles: Mapping[str, Role]
    issuer: str = ""
    audience: str = ""
    anonymous: str = ""
    revocations: Revocations | None = None


def security_of(config: Config) -> Security | None:
    """The security of a node with these settings; ConfigError if its key is no good."""
    settings = config.security
    if settings is None:
        return None
    key = settings.secret if not settings.secret.is_empty else _public_key(settings.public_key)
    algorithms = settings.algorithms or ("HS256",)
    for algorithm in algorithms:
        _check_key(key, algorithm, settings)
    return Security(
        key,
        algorithms,
        {name: role_of(role) for name, role in (settings.roles or STANDARD_ROLES).items()},
        settings.issuer,
        settings.audience,
        settings.anonymous,
        Revocations(settings.void) if settings.void else None,
    )


def role_of(settings: RoleSettings) -> Role:
    """A role, from how it is written.

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


def _public_key(file: str) -> Secret:
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(file, "security.public_key", "cannot be read as a text in PEM") from None
    if "PRIVATE KEY" in text:
        raise ConfigError(file, "security.public_key", "this is the private key; a node needs only the public one")
    return Secret(text)


def _check_key(key: Secret, algorithm: str, settings: SecuritySettings) -> None:
    where = "security.public_key" if settings.public_key else "security.secret"
    try:
        known = jwt.get_algorithm_by_name(algorithm)
        prepared = known.prepare_key(key.reveal())
        weakness = (
            known.check_key_length(prepared) if hasattr(known, "check_key_length") else None
        )  # PyJWT 2.10 has not
    except NotImplementedError:
        raise ConfigError("", "security.algorithms", f"{algorithm} needs the package cryptography") from None
    except (jwt.PyJWTError, ValueError, TypeError):  # whose messages may quote the key
        raise ConfigError(settings.public_key, where, f"this is no key for {algorithm}") from None
    if weakness:
        raise ConfigError(settings.public_key, where, f"this key is too short for {algorithm}")


# Who somebody is


class _Claims(msgspec.Struct):
    """What a token says."""

    sub: str
    exp: float
    jti: str = ""
    roles: list[str] = []
    nbf: float | None = None
    iat: float | None = None
    iss: str | None = None
    aud: str | list[str] = []


_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
"""no padding, as PyJWT would bear: nobody makes such tokens, and each should have one form"""


def bearer(header: str | None) -> str | None:
    """The token in an `Authorization` header, if there is one.

    >>> bearer("Bearer abc.def.ghi"), bearer("Basic c2VjcmV0"), bearer(None)
    ('abc.def.ghi', None, None)
    """
    scheme, _, token = (header or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def principal_of(token: str | None, security: Security | None, now: float) -> Principal:
    """Who comes with a token, or with none; Unauthenticated if that is not enough. Messages never have the token."""
    if security is None:
        return EVERYBODY
    if token is None:
        if not security.anonymous:
            raise Unauthenticated("a token is needed here: Authorization: Bearer TOKEN")
        return Principal("", (security.anonymous,), security.roles[security.anonymous])
    claims = _verified(token, security)
    _check_time(claims, now)
    _check_parties(claims, security)
    if not 0 < len(claims.sub) <= LONGEST_NAME:
        raise Unauthenticated(f"the name in the token (sub) must have 1 to {LONGEST_NAME} characters")
    roles = tuple(sorted({role for role in claims.roles if role in security.roles}))
    permissions = _together(roles, security)
    principal = Principal(claims.sub, roles, permissions, claims.exp + LEEWAY, claims.jti, claims.iat)
    if is_void(principal.credential, security):
        raise Unauthenticated("the token is void: get a new one")
    return principal


def is_void(credential: Credential, security: Security | None) -> bool:
    """Was a token declared void?"""
    return security is not None and security.revocations is not None and security.revocations.is_void(credential)


def watch(principal: Principal, security: Security | None, end: Callable[[], None]) -> Callable[[], None]:
    """Call somebody when a token becomes void; gives what to call when nobody needs to know any more."""
    if security is None or security.revocations is None:
        return lambda: None
    return security.revocations.watch(principal.credential, end)


def with_roles(name: str, roles: Iterable[str], security: Security | None, until: float | None = None) -> Principal:
    """Somebody of whom it is known which roles they had; those that there are no more permit nothing."""
    if security is None:
        return EVERYBODY
    known = tuple(sorted({role for role in roles if role in security.roles}))
    return Principal(name, known, _together(known, security), until)


def _verified(token: str, security: Security) -> _Claims:
    """What a token says, if it is signed as it must be."""
    if len(token) > LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        raise Unauthenticated("the token is no JWT: three parts in base64url with dots between them")
    try:
        # It knows no algorithm but ours, so neither "none" nor a public key taken for a secret gets anywhere.
        payload = jwt.PyJWS(algorithms=security.algorithms).decode(
            token, security.key.reveal(), list(security.algorithms), {"verify_signature": True}
        )
    except jwt.InvalidAlgorithmError:
        expected = " or ".join(security.algorithms)
        raise Unauthenticated(f"the token is not signed with {expected}, as it must be here") from None
    except jwt.InvalidSignatureError:
        raise Unauthenticated("the signature of the token is wrong") from None
    except (jwt.PyJWTError, ValueError, TypeError):  # whose messages may quote it
        raise Unauthenticated("the token cannot be read") from None
    try:
        return msgspec.json.decode(payload, type=_Claims)
    except msgspec.ValidationError as error:  # says types and names of claims only
        raise Unauthenticated(f"the token lacks something: {str(error).replace('`', '')}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unauthenticated("the token cannot be read") from None


def _check_time(claims: _Claims, now: float) -> None:
    if claims.exp <= now - LEEWAY:
        raise Unauthenticated("the token has expired: get a new one")
    if any(start is not None and start > now + LEEWAY for start in (claims.nbf, claims.iat)):
        raise Unauthenticated("the token is not valid yet: are the clocks right?")


def _check_parties(claims: _Claims, security: Security) -> None:
    if security.issuer and claims.iss != security.issuer:
        raise Unauthenticated(f"the token must be by the issuer {security.issuer} (iss)")
    audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if security.audience and security.audience not in audiences:
        raise Unauthenticated(f"the token must be for the audience {security.audience} (aud)")
    if audiences and not security.audience:
        raise Unauthenticated("the token is for a named audience (aud), and this node has none: set security.audience")


def _together(names: tuple[str, ...], security: Security) -> Role:
    try:
        return union(security.roles[name] for name in names)
    except FilterTooComplex:
        raise AccessDenied(
            f"the filters of the roles {', '.join(names)} are too many to hold together: use a token with fewer"
        ) from None


def union(roles: Iterable[Role]) -> Role:
    """What several roles permit together: all that one of them does.

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


# What they may do


def may_publish(principal: Principal, event: Mapping[str, object]) -> None:
    """AccessDenied if somebody may not publish an event. One with intervals must match wherever in them it is."""
    permission = principal.permissions.publish
    if permission is True:
        return
    if permission is False or not permission.matches(event, "covers"):
        raise AccessDenied(_refusal(principal, "publish", "publish this event", "events that match"))


def may_subscribe(principal: Principal, filter: Filter) -> None:
    """AccessDenied if somebody may not subscribe to all that a filter says."""
    subscribable(principal, filter)


def subscribable(principal: Principal, filter: Filter) -> Filter:
    """What somebody who asks for a filter is to get: the same filter. AccessDenied if they may not have it."""
    _check_inside(principal, "subscribe", filter)
    return filter


def may_advertise(principal: Principal, filter: Filter) -> None:
    """AccessDenied if somebody may not promise what a filter says."""
    _check_inside(principal, "advertise", filter)


def may_administer(principal: Principal) -> None:
    """AccessDenied if somebody may not administer the node."""
    if not principal.permissions.administer:
        raise AccessDenied(_refusal(principal, "administer", "administer this node"))


def may_join(principal: Principal) -> None:
    """AccessDenied if somebody may not be a neighbour of this node."""
    if not principal.permissions.join:
        raise AccessDenied(_refusal(principal, "join", "join as a node"))


def may_ask(principal: Principal) -> None:
    """AccessDenied if somebody may not know what others subscribe to."""
    if not principal.permissions.interest:
        raise AccessDenied(_refusal(principal, "interest", "ask what others subscribe to"))


Verb: TypeAlias = Literal["publish", "subscribe", "advertise", "administer", "join", "interest"]


def _check_inside(principal: Principal, verb: Literal["subscribe", "advertise"], filter: Filter) -> None:
    permission: Permission = getattr(principal.permissions, verb)
    if permission is True or (isinstance(permission, Filter) and permission.covers(filter)):
        return
    what = "subscribe to" if verb == "subscribe" else "advertise"
    reason = _refusal(principal, verb, f"{what} {filter}", "what is inside")
    if isinstance(permission, Filter):
        reason += _way_in(permission, filter)
    raise AccessDenied(reason)


def _way_in(permission: Filter, filter: Filter) -> str:
    """What to ask for instead."""
    try:
        common = permission & filter
    except FilterTooComplex:
        return "; add its conditions to yours"
    if common.is_empty:
        return "; the two have nothing in common"
    return f", and that this is cannot be shown; add its conditions: {common}"


def _refusal(principal: Principal, verb: Verb, deed: str, bound: str = "") -> str:
    who = repr(principal.name) if principal.name else "somebody without a token"
    permission = getattr(principal.permissions, verb)
    roles = ", ".join(principal.roles)
    if not principal.roles:
        why = "the token has no role that this node knows"
    elif permission is False:
        what = "of interest" if verb == "interest" else f"to {verb}"
        why = f"none of the roles ({roles}) has the permission {what}"
    else:
        why = f"the permission to {verb} (of the roles {roles}) is for {bound} {permission}"
    return f"{who} may not {deed}: {why}"


# Tokens and certificates of our own


def make_token(
    secret: Secret | str,
    name: str,
    roles: Iterable[str],
    seconds: float,
    now: float,
    *,
    issuer: str = "",
    audience: str = "",
    algorithm: str = "HS256",
    id: str = "",
) -> str:
    """A token for somebody, signed with a secret; ValueError if that would not be accepted.

    >>> secret = Secret("an example that is long enough: 32 bytes")
    >>> token = make_token(secret, "ana", ["client"], seconds=3600, now=1000.0)
    >>> security = Security(secret, ("HS256",), {"client": Role(subscribe=True)})
    >>> principal_of(token, security, now=2000.0).name
    'ana'
    """
    key = secret if isinstance(secret, Secret) else Secret(secret)
    if not algorithm.startswith("HS"):
        raise ValueError(f"tokens are made with a secret, and {algorithm} needs a private key: ask its issuer")
    if key.size < least_bytes(algorithm):
        raise ValueError(f"the secret must have {least_bytes(algorithm)} bytes at least, and has {key.size}")
    if not 0 < len(name) <= LONGEST_NAME:
        raise ValueError(f"a name has 1 to {LONGEST_NAME} characters")
    if not 0 < seconds <= 1e10:
        raise ValueError("a token is valid for some seconds, and not forever")
    claims: dict[str, object] = {"sub": name, "roles": list(roles), "iat": int(now), "exp": math.ceil(now + seconds)}
    claims |= {claim: value for claim, value in (("iss", issuer), ("aud", audience), ("jti", id)) if value}
    token = jwt.PyJWS().encode(msgspec.json.encode(claims), key.reveal(), algorithm)
    if len(token) > LONGEST_TOKEN:
        raise ValueError(f"with so many roles the token has {len(token)} characters, more than {LONGEST_TOKEN}")
    return token


def joining_token(config: Config, now: float, seconds: float = 300.0) -> str | None:
    """What this node shows to one that it joins: the token it was given, or one made with the secret that both have."""
    if not config.join_token.is_empty:
        return config.join_token.reveal()
    settings = config.security
    if settings is None or settings.secret.is_empty:
        return None
    joining = {name: role for name, role in (settings.roles or STANDARD_ROLES).items() if role.join}
    # The role that permits the least besides: whoever is at the other end could use the token for all of it.
    roles = sorted(joining, key=lambda name: _weight(joining[name]))[:1]
    return make_token(
        settings.secret,
        config.name,
        roles,
        seconds,
        now,
        issuer=settings.issuer,
        audience=settings.audience,
        algorithm=(settings.algorithms or ("HS256",))[0],
    )


def _weight(role: RoleSettings) -> int:
    """How much a role permits, roughly; to administer is more than all else."""
    wide = sum(one is True for one in (role.publish, role.subscribe, role.advertise))
    some = sum(bool(one) for one in (role.publish, role.subscribe, role.advertise, role.interest))
    return 100 * role.administer + 10 * wide + some


def tls_context(config: Config) -> ssl.SSLContext | None:
    """How this node connects to others: it trusts the given authorities only, and shows its certificate if asked.

    None: there is no `[tls]` section, and the machine's own authorities count.
    """
    tls = config.tls
    if tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=tls.authorities or None)
    except (ssl.SSLError, OSError):
        raise ConfigError(tls.authorities, "tls.authorities", "holds no certificates in PEM") from None
    if tls.certificate:
        try:
            # An empty passphrase: OpenSSL would otherwise ask for one at the terminal, and wait.
            context.load_cert_chain(tls.certificate, tls.key, password="")
        except (ssl.SSLError, OSError):
            raise ConfigError(
                tls.certificate, "tls.certificate", "this and tls.key must be a pair in PEM, without a passphrase"
            ) from None
    return context
