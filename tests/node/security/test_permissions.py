"""Permissions: events and filters inside and outside of a role, and the texts of refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.matching.strategies import events, filters
from tests.node.security.principals import DOUBLE, GOOD, NOW, ROLES, allowed, signed, somebody

from fieldfare.events import Event, Interval
from fieldfare.filters import EVERYTHING, Filter, FilterTooComplex, parse
from fieldfare.filters.branch import MAX_BRANCHES
from fieldfare.node.security import (
    AccessDenied,
    Principal,
    Role,
    Security,
    Unauthenticated,
    may_administer,
    may_advertise,
    may_join,
    may_publish,
    may_subscribe,
    principal_of,
    subscribable,
    union,
)


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
