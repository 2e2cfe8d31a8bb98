"""Tokens, roles and principals that the tests of security share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jwt
import msgspec

from fieldfare.filters import parse
from fieldfare.node.config import Secret
from fieldfare.node.security import (
    AccessDenied,
    Principal,
    Role,
    Security,
    Unauthenticated,
)

SECRET = Secret("correct-horse-battery-staple-xyzzy")
NOW = 1_000_000.0
QUOTES = parse("type = 'quote'")
ROLES = {"trader": Role(QUOTES, QUOTES, QUOTES), "reader": Role(subscribe=True), "boss": Role(administer=True)}
SECURITY = Security(SECRET, ("HS256",), ROLES)


def signed(claims: Mapping[str, Any] | bytes, algorithm: str = "HS256", headers: dict[str, Any] | None = None) -> str:
    """A token with any claims at all."""
    payload = claims if isinstance(claims, bytes) else msgspec.json.encode(claims)
    return jwt.PyJWS().encode(payload, SECRET.reveal() * 2, algorithm, headers)


DOUBLE = Security(Secret(SECRET.reveal() * 2), ("HS256",), ROLES)
"""long enough for every algorithm"""
GOOD: dict[str, Any] = {"sub": "ana", "exp": NOW + 60, "roles": ["trader"]}


def somebody(role: Role) -> Principal:
    return Principal("ana", ("trader",), role)


def allowed(question: Callable[..., object], *arguments: object) -> bool:
    try:
        question(*arguments)
    except Unauthenticated:
        raise  # that is for who, not for what
    except AccessDenied:
        return False
    return True
