from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.certificates import pem, public_pem, self_signed
from tests.examples import few
from tests.matching.strategies import events, filters

from fieldfare.events import Event, Interval
from fieldfare.filters import EVERYTHING, Filter, FilterTooComplex, parse
from fieldfare.filters.branch import MAX_BRANCHES
from fieldfare.node.config import Config, ConfigError, RoleSettings, Secret, SecuritySettings, Tls, load
from fieldfare.node.security import (
    EVERYBODY,
    AccessDenied,
    Principal,
    Role,
    Security,
    Unauthenticated,
    bearer,
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
    subscribable,
    tls_context,
    union,
)
from fieldfare.node.security.tokens import LEEWAY

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


# Who somebody is


def test_without_security_everybody_may_do_everything() -> None:
    assert security_of(Config()) is None
    for token in (None, "", "nonsense"):
        principal = principal_of(token, None, NOW)
        assert principal == EVERYBODY
        may_publish(principal, {"a": 1})
        assert subscribable(principal, EVERYTHING) == EVERYTHING
        may_subscribe(principal, EVERYTHING)
        may_advertise(principal, EVERYTHING)
        may_administer(principal)
        may_join(principal)


def test_a_token_says_who_somebody_is() -> None:
    token = make_token(SECRET, "ana", ["trader", "reader", "unknown", "trader"], 60, NOW)
    principal = principal_of(token, SECURITY, NOW)
    role = Role(QUOTES, True, QUOTES)
    assert principal == Principal("ana", ("reader", "trader"), role, NOW + 60 + LEEWAY, issued=NOW)


def test_no_token_is_the_anonymous_role_or_nothing() -> None:
    with pytest.raises(Unauthenticated, match="a token is needed here"):
        principal_of(None, SECURITY, NOW)
    open_to_readers = Security(SECRET, ("HS256",), ROLES, anonymous="reader")
    principal = principal_of(None, open_to_readers, NOW)
    assert principal == Principal("", ("reader",), Role(subscribe=True))
    with pytest.raises(Unauthenticated):  # a bad token is not taken for none
        principal_of("", open_to_readers, NOW)
    with pytest.raises(AccessDenied, match=r"^a client without a token may not administer"):
        may_administer(principal)


@pytest.mark.parametrize(
    ("after", "accepted"), [(-31, False), (-29, True), (0, True), (60, True), (89, True), (90, False), (1e9, False)]
)
def test_a_token_has_its_time_and_clocks_may_differ_a_little(after: float, accepted: bool) -> None:
    token = make_token(SECRET, "ana", [], 60, NOW)
    if accepted:
        assert principal_of(token, SECURITY, NOW + after).name == "ana"
    else:
        with pytest.raises(Unauthenticated, match=r"expired|not valid yet"):
            principal_of(token, SECURITY, NOW + after)


CLAIMS: list[tuple[Any, str]] = [
    ({}, ""),
    ({"nbf": NOW + 29}, ""),
    ({"nbf": NOW + 31}, "not valid yet"),
    ({"iat": NOW + 31}, "not valid yet"),
    ({"exp": NOW - 29.5}, ""),
    ({"exp": NOW - 30}, "has expired"),
    ({"exp": 10**30}, ""),
    ({"exp": None}, "a claim of the token is missing or wrong: Expected float, got null - at $.exp"),
    ({"exp": "tomorrow"}, "Expected float, got str"),
    ({"exp": True}, "Expected float, got bool"),
    ({"sub": 7}, "Expected str, got int - at $.sub"),
    ({"sub": ""}, "name in the token"),
    ({"sub": "x" * 201}, "name in the token"),
    ({"roles": "boss"}, "Expected array, got str - at $.roles"),
    ({"roles": [1]}, "at $.roles"),
    ({"roles": {}}, "at $.roles"),
    ({"aud": "elsewhere"}, "for a named audience"),
    ({"aud": ["elsewhere"]}, "for a named audience"),
    ({"iss": "anybody", "jti": "1", "more": {"x": 1}}, ""),
]


@pytest.mark.parametrize(("claims", "problem"), CLAIMS, ids=map(str, range(len(CLAIMS))))
def test_what_a_token_says_is_checked(claims: dict[str, Any], problem: str) -> None:
    token = signed(GOOD | claims)
    if problem:
        with pytest.raises(Unauthenticated) as caught:
            principal_of(token, DOUBLE, NOW)
        assert problem in str(caught.value)
    else:
        assert principal_of(token, DOUBLE, NOW).permissions == ROLES["trader"]


@pytest.mark.parametrize("claim", ["sub", "exp"])
def test_a_token_must_have_a_name_and_an_end(claim: str) -> None:
    with pytest.raises(Unauthenticated, match=f"missing required field {claim}"):
        principal_of(signed({key: value for key, value in GOOD.items() if key != claim}), DOUBLE, NOW)


def test_a_token_without_roles_gives_no_rights() -> None:
    principal = principal_of(signed({"sub": "ana", "exp": NOW}), DOUBLE, NOW)
    assert principal == Principal("ana", (), Role(), NOW + LEEWAY)
    with pytest.raises(AccessDenied, match="'ana' may not join as a node: the token has no role that this node knows"):
        may_join(principal)


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"[]", b"\xff", b'{"sub": "ana", "exp": NaN}', b'{"sub": "ana", "exp": Infinity}', b'{"sub": "ana", "exp": 1e999}'],
)  # fmt: skip
def test_what_is_no_claims_is_refused(payload: bytes) -> None:
    with pytest.raises(Unauthenticated):
        principal_of(signed(payload) if payload else "e30..", DOUBLE, NOW)


def test_issuer_and_audience() -> None:
    security = Security(SECRET, ("HS256",), ROLES, issuer="us", audience="here")

    def token(issuer: str, audience: str) -> str:
        return make_token(SECRET, "ana", [], 60, NOW, issuer=issuer, audience=audience)

    assert principal_of(token("us", "here"), security, NOW).name == "ana"
    for issuer, audience, problem in [("them", "here", "by the issuer us"), ("", "here", "by the issuer us"), ("us", "there", "for the audience here"), ("us", "", "for the audience here")]:  # fmt: skip
        with pytest.raises(Unauthenticated, match=problem):
            principal_of(token(issuer, audience), security, NOW)
    several = signed(GOOD | {"iss": "us", "aud": ["there", "here"]})
    with_both = Security(DOUBLE.key, ("HS256",), ROLES, issuer="us", audience="here")
    assert principal_of(several, with_both, NOW).name == "ana"


def unsigned(claims: Mapping[str, Any], algorithm: object) -> str:
    parts = [msgspec.json.encode({"alg": algorithm, "typ": "JWT"}), msgspec.json.encode(claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "..",
        "a.b.c",
        "a.b.c.d",
        "é.b.c",
        "\udc80.b.c",
        "x" * 20_000,
        *(unsigned(GOOD, algorithm) for algorithm in ("none", "None", "", None, ["HS256"], "HS256")),
        *(unsigned(GOOD, algorithm) + "AAAA" for algorithm in ("none", "NONE", "HS256", "RS256", 1)),
        signed(GOOD, "HS512"),
        signed(GOOD, "HS384"),
        signed(GOOD)[:-43],
        signed(GOOD) + "=",
        signed(GOOD) + "\n",
        " " + signed(GOOD),
        signed(GOOD, headers={"crit": ["b64"], "b64": False}),
        signed(GOOD, headers={"crit": ["exp"]}),
    ],
)
def test_what_is_not_signed_as_it_must_be_is_refused(token: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        principal_of(token, DOUBLE, NOW)
    assert len(token) < 5 or token not in str(caught.value)


def test_only_pinned_algorithms_count() -> None:
    strong = Security(DOUBLE.key, ("HS512",), ROLES)
    assert principal_of(signed(GOOD, "HS512"), strong, NOW).name == "ana"
    with pytest.raises(Unauthenticated, match="not signed with HS512, which this node requires"):
        principal_of(signed(GOOD), strong, NOW)
    both = Security(DOUBLE.key, ("HS512", "HS256"), ROLES)
    assert principal_of(signed(GOOD), both, NOW).name == "ana"


tokens = st.builds(
    lambda name, roles, seconds: make_token(SECRET, name, roles, seconds, NOW),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.lists(st.sampled_from([*ROLES, "other"]), max_size=4),
    st.integers(1, 10_000),
)


@given(tokens, st.data())
def test_any_tampered_token_is_refused(token: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(token) - 1))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.="
    how = data.draw(st.sampled_from(["replace", "insert", "delete", "cut"]))
    letter = data.draw(st.sampled_from(alphabet))
    tampered = {
        "replace": token[:place] + letter + token[place + 1 :],
        "insert": token[:place] + letter + token[place:],
        "delete": token[:place] + token[place + 1 :],
        "cut": token[:place],
    }[how]
    assume(tampered != token)
    principal_of(token, SECURITY, NOW)
    with pytest.raises(Unauthenticated) as caught:
        principal_of(tampered, SECURITY, NOW)
    assert len(tampered) < 10 or tampered not in str(caught.value)


@given(st.text(st.characters(codec="ascii"), min_size=32, max_size=60), tokens)
def test_another_secret_opens_nothing(secret: str, token: str) -> None:
    assume(secret != SECRET.reveal())
    with pytest.raises(Unauthenticated, match="signature"):
        principal_of(token, Security(Secret(secret), ("HS256",), ROLES), NOW)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
    st.floats(0.1, 1e8),
)
def test_what_is_made_is_accepted(name: str, roles: list[str], seconds: float) -> None:
    token = make_token(SECRET, name, roles, seconds, NOW)
    principal = principal_of(token, SECURITY, NOW + seconds)
    assert principal.name == name
    assert set(principal.roles) == set(roles) & set(ROLES)
    assert principal.until is not None
    assert 0 <= principal.until - (NOW + seconds + LEEWAY) < 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"secret": "x" * 31}, "at least, and has 31"),
        ({"secret": Secret("x" * 40), "algorithm": "HS512"}, "64 bytes at least"),
        ({"algorithm": "RS256"}, "needs a private key"),
        ({"algorithm": "none"}, "needs a private key"),
        ({"name": ""}, "a name has"),
        ({"name": "x" * 201}, "a name has"),
        ({"seconds": 0}, "some seconds"),
        ({"seconds": float("nan")}, "some seconds"),
        ({"seconds": float("inf")}, "not forever"),
        ({"roles": ["x" * 100] * 200}, "so many roles"),
    ],
)
def test_a_token_that_would_not_do_is_not_made(changes: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {"secret": SECRET, "name": "ana", "roles": ["trader"], "seconds": 60, "now": NOW} | changes
    with pytest.raises(ValueError, match=problem):
        make_token(**given)


@pytest.mark.parametrize(
    ("header", "token"),
    [(None, None), ("", None), ("Bearer a.b.c", "a.b.c"), ("bearer  a.b.c ", "a.b.c"), ("BEARER x", "x"), ("Bearer", ""), ("Basic abc", None), ("Bearerx y", None), ("a.b.c", None)],
)  # fmt: skip
def test_bearer(header: str | None, token: str | None) -> None:
    assert bearer(header) == token


# What they may do


def allowed(question: Callable[..., object], *arguments: object) -> bool:
    try:
        question(*arguments)
    except Unauthenticated:
        raise  # that is for who, not for what
    except AccessDenied:
        return False
    return True


@given(filters(), events())
def test_a_role_with_a_filter_admits_exactly_the_events_that_match(filter: Filter, event: dict[str, object]) -> None:
    principal = somebody(Role(publish=filter))
    assert allowed(may_publish, principal, event) == filter.matches(event, "covers")


def test_an_event_with_an_interval_must_lie_inside() -> None:
    principal = somebody(Role(publish=parse("price < 10")))
    assert allowed(may_publish, principal, {"price": 9})
    assert allowed(may_publish, principal, Event({"price": Interval(1, 9)}))
    assert not allowed(may_publish, principal, Event({"price": Interval(1, 11)}))


@few(50)
@given(filters(), filters(), events())
def test_nothing_outside_a_permission_gets_in_by_a_subscription(
    permission: Filter, wanted: Filter, event: dict[str, object]
) -> None:
    principal = somebody(Role(subscribe=permission, advertise=permission))
    if allowed(may_subscribe, principal, wanted):
        assert subscribable(principal, wanted) == wanted
        assert not wanted.matches(event) or permission.matches(event)
    assert allowed(may_subscribe, principal, wanted) == permission.covers(wanted)
    assert allowed(may_advertise, principal, wanted) == permission.covers(wanted)


@given(filters(), filters())
def test_who_adds_the_conditions_of_the_permission_gets_in(permission: Filter, wanted: Filter) -> None:
    try:
        common = permission & wanted
    except FilterTooComplex:
        return
    assert allowed(may_subscribe, somebody(Role(subscribe=permission)), common)


permissions = st.booleans() | filters()
roles = st.builds(Role, permissions, permissions, permissions, st.booleans(), st.booleans())


@few(50)
@given(st.lists(roles, max_size=3), events(), filters())
def test_several_roles_permit_what_one_of_them_does(
    several: list[Role], event: dict[str, object], wanted: Filter
) -> None:
    try:
        together = somebody(union(several))
    except FilterTooComplex:
        return
    singly = [somebody(role) for role in several]
    points = not any(isinstance(value, Interval) for value in Event(event).fields.values())
    for question in (may_administer, may_join):
        assert allowed(question, together) == any(allowed(question, one) for one in singly)
    if any(allowed(may_publish, one, event) for one in singly):
        assert allowed(may_publish, together, event)
    elif points:  # an interval may lie across two permissions, and inside both together
        assert not allowed(may_publish, together, event)
    if any(allowed(may_subscribe, one, wanted) for one in singly):
        assert allowed(may_subscribe, together, wanted)


def test_together_roles_may_permit_more_than_each() -> None:
    together = somebody(union([Role(subscribe=parse("x < 5")), Role(subscribe=parse("x >= 5"))]))
    may_subscribe(together, parse("x < 10"))


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        (lambda who: may_publish(who, {"type": "news"}), "'ana' may not publish this event: the permission to publish (of the roles trader) is for events that match type = 'quote'"),
        (lambda who: may_subscribe(who, parse("price < 10")), "'ana' may not subscribe to price < 10: the permission to subscribe (of the roles trader) is for what is inside type = 'quote', and that this is cannot be shown; add its conditions: price < 10 AND type = 'quote'"),
        (lambda who: may_subscribe(who, parse("type = 'news'")), "'ana' may not subscribe to type = 'news': the permission to subscribe (of the roles trader) is for what is inside type = 'quote'; the two have nothing in common"),
        (lambda who: may_advertise(who, EVERYTHING), "'ana' may not advertise TRUE: the permission to advertise (of the roles trader) is for what is inside type = 'quote', and that this is cannot be shown; add its conditions: type = 'quote'"),
        (may_administer, "'ana' may not administer this node: none of the roles (trader) has the permission to administer"),
        (may_join, "'ana' may not join as a node: none of the roles (trader) has the permission to join"),
    ],
)  # fmt: skip
def test_a_refusal_says_why(deed: Callable[[Principal], None], message: str) -> None:
    with pytest.raises(AccessDenied) as caught:
        deed(somebody(ROLES["trader"]))
    assert str(caught.value) == message


def test_too_many_filters_are_refused_and_not_cut() -> None:
    def many(field: str) -> Role:
        return Role(publish=parse(" OR ".join(f"({field}1 = {i} AND {field}2 = {i})" for i in range(MAX_BRANCHES - 1))))

    security = Security(DOUBLE.key, ("HS256",), {"a": many("a"), "b": many("b")})
    assert principal_of(signed(GOOD | {"roles": ["a"]}), security, NOW).permissions == security.roles["a"]
    with pytest.raises(AccessDenied, match="roles a, b are too many to combine") as caught:
        principal_of(signed(GOOD | {"roles": ["a", "b"]}), security, NOW)
    assert not isinstance(caught.value, Unauthenticated)


# From settings


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


# TLS


def certificate(folder: Path, name: str) -> Tls:
    """A certificate that vouches for itself."""
    files = {"certificate": str(folder / f"{name}.pem"), "key": str(folder / f"{name}.key")}
    self_signed(Path(files["certificate"]), Path(files["key"]), name)
    return Tls(**files, authorities=files["certificate"])


def handshake(client: ssl.SSLContext, server: Tls) -> None:
    """Let a client and a server meet, in memory."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.certificate, server.key)
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(here, there, server_hostname="localhost"), context.wrap_bio(there, here, server_side=True)]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass


def test_a_client_trusts_the_given_authorities_only(tmp_path: Path) -> None:
    assert tls_context(Config()) is None
    oslo, rome = certificate(tmp_path, "oslo"), certificate(tmp_path, "rome")
    context = tls_context(Config(tls=oslo))
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    handshake(context, oslo)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, rome)
    machine = tls_context(Config(tls=Tls()))
    assert machine is not None
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(machine, oslo)


def test_files_that_hold_no_certificates_are_named(tmp_path: Path) -> None:
    oslo, rome = certificate(tmp_path, "oslo"), certificate(tmp_path, "rome")
    locked = tmp_path / "locked.key"
    locked.write_bytes(pem(serialization.load_pem_private_key(Path(oslo.key).read_bytes(), None), b"abcd"))
    (tmp_path / "empty.pem").touch()
    for tls, problem in [
        (Tls(authorities=str(tmp_path / "empty.pem")), "tls.authorities: contains no certificates"),
        (Tls(authorities=oslo.key), "tls.authorities: contains no certificates"),
        (Tls(certificate=oslo.certificate, key=rome.key), "must be a pair in PEM"),
        (Tls(certificate=oslo.certificate, key=str(locked)), "without a passphrase"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            tls_context(Config(tls=tls))
