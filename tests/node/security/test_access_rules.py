"""Access rules from settings: roles, secrets and public keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from tests.certificates import pem, public_pem
from tests.node.security.principals import GOOD, NOW, QUOTES, SECRET, allowed

from fieldfare.filters import EVERYTHING
from fieldfare.node.config import Config, ConfigError, RoleSettings, Secret, SecuritySettings, load
from fieldfare.node.security import (
    Principal,
    Role,
    Unauthenticated,
    joining_token,
    make_token,
    may_administer,
    may_advertise,
    may_join,
    may_publish,
    may_subscribe,
    principal_of,
    role_of,
    security_of,
)
from fieldfare.node.security.tokens import LEEWAY


def settings(**given: Any) -> Config:
    return Config(name="oslo", security=SecuritySettings(**({"secret": SECRET} | given)))


def test_roles_come_from_settings() -> None:
    roles = {"trader": RoleSettings(publish="type = 'quote'", subscribe=True), "quiet": RoleSettings(advertise=True)}
    security = security_of(settings(roles=roles, issuer="us", audience="here", anonymous="quiet"))
    assert security is not None
    assert security.roles == {
        "trader": Role(QUOTES, True, QUOTES),
        "quiet": Role(advertise=True),
    }
    assert (security.issuer, security.audience, security.anonymous) == ("us", "here", "quiet")
    assert security.algorithms == ("HS256",)
    assert SECRET.reveal() not in repr(security)
    assert role_of(RoleSettings()) == Role()


def test_with_a_secret_alone_there_are_standard_roles() -> None:
    config = load(None, {"FIELDFARE_TOKEN_SECRET": SECRET.reveal(), "FIELDFARE_NAME": "oslo"}, {"host": "0.0.0.0"})
    security = security_of(config)
    assert security is not None

    def rights(role: str) -> list[bool]:
        who = principal_of(make_token(SECRET, "ana", [role], 60, NOW), security, NOW)
        return [
            allowed(may_publish, who, {}),
            *(allowed(question, who, EVERYTHING) for question in (may_subscribe, may_advertise)),
            *(allowed(question, who) for question in (may_administer, may_join)),
        ]

    assert rights("admin") == [True, True, True, True, False]
    assert rights("client") == [True, True, True, False, False]
    assert rights("node") == [False, False, False, False, True]
    assert rights("other") == [False] * 5


def test_a_node_shows_no_more_than_is_needed_to_join() -> None:
    """A node that is joined could else use the token of the one that joins to administer others."""
    roles = {
        "boss": RoleSettings(publish=True, subscribe=True, administer=True, join=True),
        "all": RoleSettings(publish=True, subscribe=True, join=True),
        "node": RoleSettings(join=True),
    }
    for names, expected in ((("boss", "all", "node"), "node"), (("boss", "all"), "all"), (("boss",), "boss")):
        config = Config(
            name="oslo", security=SecuritySettings(secret=SECRET, roles={name: roles[name] for name in names})
        )
        security = security_of(config)
        assert principal_of(joining_token(config, NOW), security, NOW).roles == (expected,)


def test_nodes_that_share_a_secret_may_join_each_other() -> None:
    config = settings(issuer="us", audience="here", algorithms=("HS256",))
    who = principal_of(joining_token(config, NOW), security_of(config), NOW)
    assert (who.name, who.roles) == ("oslo", ("node",))
    may_join(who)
    assert joining_token(Config(), NOW) is None
    assert joining_token(Config(join_token=Secret("abc")), NOW) == "abc"


@pytest.mark.parametrize("secret", ["-----BEGIN PUBLIC KEY-----\nabcdefghijklmnop\n-----END PUBLIC KEY-----\n"])
def test_a_public_key_is_no_secret(secret: str) -> None:
    with pytest.raises(ConfigError, match=r"^security.secret: this is not a key for HS256") as caught:
        security_of(settings(secret=Secret(secret)))
    assert "abcdef" not in str(caught.value)


def key_settings(file: Path, algorithm: str) -> Config:
    return Config(
        security=SecuritySettings(
            public_key=str(file), algorithms=(algorithm,), roles={"trader": RoleSettings(publish=True)}
        )
    )


def test_a_public_key_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    with pytest.raises(ConfigError, match="cannot be read"):
        security_of(key_settings(file, "EdDSA"))
    file.write_text("-----BEGIN PRIVATE KEY-----")
    with pytest.raises(ConfigError, match="this is the private key"):
        security_of(key_settings(file, "EdDSA"))
    file.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"needs the package cryptography|this is not a key for EdDSA"):
        security_of(key_settings(file, "EdDSA"))


@pytest.mark.parametrize(
    ("algorithm", "make"),
    [
        ("EdDSA", ed25519.Ed25519PrivateKey.generate),
        ("RS256", lambda: rsa.generate_private_key(65537, 2048)),
        ("ES256", lambda: ec.generate_private_key(ec.SECP256R1())),
    ],
)
def test_tokens_by_a_pair_of_keys(tmp_path: Path, algorithm: str, make: Callable[[], PrivateKeyTypes]) -> None:
    private, public = make(), tmp_path / "public.pem"
    public.write_bytes(public_pem(private.public_key()))
    security = security_of(key_settings(public, algorithm))
    token = jwt.PyJWS().encode(msgspec.json.encode(GOOD), pem(private).decode(), algorithm)
    assert principal_of(token, security, NOW) == Principal("ana", ("trader",), Role(True, False, True), GOOD["exp"] + LEEWAY)  # fmt: skip
    with pytest.raises(Unauthenticated):
        principal_of(token[:-4] + "AAAA", security, NOW)
    with pytest.raises(ConfigError, match=f"this is not a key for {'RS256' if algorithm != 'RS256' else 'ES256'}"):
        security_of(key_settings(public, "RS256" if algorithm != "RS256" else "ES256"))


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "public.pem").write_bytes(public_pem(rsa.generate_private_key(65537, 1024).public_key()))
    with pytest.raises(ConfigError, match="too short"):
        security_of(key_settings(tmp_path / "public.pem", "RS256"))
