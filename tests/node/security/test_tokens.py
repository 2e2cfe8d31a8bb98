"""Tokens: signatures, times, claims, and tokens of our own."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.node.security.principals import DOUBLE, GOOD, NOW, QUOTES, ROLES, SECRET, SECURITY, signed

from fieldfare.filters import EVERYTHING
from fieldfare.node.config import Config, Secret
from fieldfare.node.security import (
    EVERYBODY,
    AccessDenied,
    Principal,
    Role,
    Security,
    Unauthenticated,
    bearer,
    make_token,
    may_administer,
    may_advertise,
    may_join,
    may_publish,
    may_subscribe,
    principal_of,
    security_of,
    subscribable,
)
from fieldfare.node.security.tokens import LEEWAY


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
