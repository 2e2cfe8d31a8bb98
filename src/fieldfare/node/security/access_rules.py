"""`Security`: the access rules of a node, made from its settings: the key of tokens, and the roles.

Without a `[security]` section there is no `Security`, and everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jwt

from fieldfare.node.config import STANDARD_ROLES, Config, ConfigError, Secret, SecuritySettings
from fieldfare.node.security.revocations import Revocations
from fieldfare.node.security.roles import Role, role_of


@dataclass(frozen=True, slots=True)
class Security:
    """The rules by which a node checks tokens, and the permissions of the roles in them."""

    key: Secret
    """the secret, or the public key"""
    algorithms: tuple[str, ...]
    roles: Mapping[str, Role]
    issuer: str = ""
    audience: str = ""
    anonymous: str = ""
    """role of clients without a token; empty: refuse them"""
    revocations: Revocations | None = None


def security_of(config: Config) -> Security | None:
    """Return the access rules of a node, None without `[security]`; ConfigError if the key does not fit."""
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


def _public_key(file: str) -> Secret:
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(file, "security.public_key", "cannot be read as a text in PEM") from None
    if "PRIVATE KEY" in text:
        raise ConfigError(file, "security.public_key", "this is the private key; a node needs only the public one")
    return Secret(text)


def _check_key(key: Secret, algorithm: str, settings: SecuritySettings) -> None:
    place = "security.public_key" if settings.public_key else "security.secret"
    try:
        known = jwt.get_algorithm_by_name(algorithm)
        prepared = known.prepare_key(key.reveal())
        weakness = known.check_key_length(prepared) if hasattr(known, "check_key_length") else None  # since PyJWT 2.11
    except NotImplementedError:
        raise ConfigError("", "security.algorithms", f"{algorithm} needs the package cryptography") from None
    except (jwt.PyJWTError, ValueError, TypeError):  # the messages of these may quote the key
        raise ConfigError(settings.public_key, place, f"this is not a key for {algorithm}") from None
    if weakness:
        raise ConfigError(settings.public_key, place, f"this key is too short for {algorithm}")
