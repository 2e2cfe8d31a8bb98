"""Tokens (JWT): a verified token gives the claims; a node with a secret also signs tokens.

No error text contains a token or a key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

import jwt
import msgspec

from fieldfare.node.config import STANDARD_ROLES, Config, RoleSettings, Secret
from fieldfare.node.config.checks import least_bytes
from fieldfare.node.security.access_rules import Security
from fieldfare.node.security.errors import Unauthenticated

LEEWAY: Final = 30.0
"""seconds by which the clocks of issuers may differ from ours"""
LONGEST_TOKEN: Final = 16_384
"""characters"""
LONGEST_NAME: Final = 200
"""characters of `sub`"""


class Claims(msgspec.Struct):
    """The claims of a token, by their names in JWT."""

    sub: str
    exp: float
    jti: str = ""
    roles: list[str] = []
    nbf: float | None = None
    iat: float | None = None
    iss: str | None = None
    aud: str | list[str] = []


_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
"""without padding, which PyJWT would accept: each token should have one form only"""


def bearer(header: str | None) -> str | None:
    """Return the token in an `Authorization` header; None if the header is absent or of another scheme.

    >>> bearer("Bearer abc.def.ghi"), bearer("Basic c2VjcmV0"), bearer(None)
    ('abc.def.ghi', None, None)
    """
    scheme, _, token = (header or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def verify(token: str, security: Security, now: float) -> Claims:
    """Return the claims of a token after a check of signature, times, issuer, audience and name; Unauthenticated."""
    claims = _signed(token, security)
    _check_time(claims, now)
    _check_parties(claims, security)
    if not 0 < len(claims.sub) <= LONGEST_NAME:
        raise Unauthenticated(f"the name in the token (sub) must have 1 to {LONGEST_NAME} characters")
    return claims


def _signed(token: str, security: Security) -> Claims:
    if len(token) > LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        raise Unauthenticated("the token is not a JWT: three parts in base64url with dots between them")
    try:
        # Only our algorithms are registered, so "none" fails, and so does a public key used as a secret.
        payload = jwt.PyJWS(algorithms=security.algorithms).decode(
            token, security.key.reveal(), list(security.algorithms), {"verify_signature": True}
        )
    except jwt.InvalidAlgorithmError:
        expected = " or ".join(security.algorithms)
        raise Unauthenticated(f"the token is not signed with {expected}, which this node requires") from None
    except jwt.InvalidSignatureError:
        raise Unauthenticated("the signature of the token is wrong") from None
    except (jwt.PyJWTError, ValueError, TypeError):  # the messages of these may quote the token
        raise Unauthenticated("the token cannot be read") from None
    try:
        return msgspec.json.decode(payload, type=Claims)
    except msgspec.ValidationError as error:  # its message has types and names of claims only
        raise Unauthenticated(f"a claim of the token is missing or wrong: {str(error).replace('`', '')}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unauthenticated("the token cannot be read") from None


def _check_time(claims: Claims, now: float) -> None:
    if claims.exp <= now - LEEWAY:
        raise Unauthenticated("the token has expired: get a new one")
    if any(start is not None and start > now + LEEWAY for start in (claims.nbf, claims.iat)):
        raise Unauthenticated("the token is not valid yet: are the clocks right?")


def _check_parties(claims: Claims, security: Security) -> None:
    if security.issuer and claims.iss != security.issuer:
        raise Unauthenticated(f"the token must be by the issuer {security.issuer} (iss)")
    audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if security.audience and security.audience not in audiences:
        raise Unauthenticated(f"the token must be for the audience {security.audience} (aud)")
    if audiences and not security.audience:
        raise Unauthenticated("the token is for a named audience (aud), and this node has none: set security.audience")


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
    """Return a token signed with a secret; ValueError if no node would accept the token.

    >>> from fieldfare.node.security import Role, principal_of
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
    """Return the token for the nodes that this node joins: `join_token`, or one signed with the secret of both."""
    if not config.join_token.is_empty:
        return config.join_token.reveal()
    settings = config.security
    if settings is None or settings.secret.is_empty:
        return None
    joining = {name: role for name, role in (settings.roles or STANDARD_ROLES).items() if role.join}
    # The role with the fewest other permissions: the other node could use the token for all of them.
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
    """Return a rough measure of the permissions; `administer` weighs more than all others together."""
    wide = sum(one is True for one in (role.publish, role.subscribe, role.advertise))
    some = sum(bool(one) for one in (role.publish, role.subscribe, role.advertise, role.interest))
    return 100 * role.administer + 10 * wide + some
