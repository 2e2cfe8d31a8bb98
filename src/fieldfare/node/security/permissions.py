"""The questions of access control: may this principal publish, subscribe, advertise, administer, join?

A subscription is permitted if the filter of the permission *covers* it. Covering is decided for the filters, not for
the events at hand, and errs towards "not covered" where the decision cannot be exact. So a subscription that lies
inside without a proof is refused, and a subscription that lies outside never passes. The error text names the
permission and a remedy: with the conditions of the permission added, a subscription lies inside.

`subscribable` alone decides about subscriptions. Today the result is the same filter, or a refusal; a policy that
restricts instead of refusing would return a smaller filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from fieldfare.filters import Filter, FilterTooComplex
from fieldfare.matching.match.single_filter import check_of
from fieldfare.node.security.errors import AccessDenied
from fieldfare.node.security.principals import Principal
from fieldfare.node.security.roles import Permission

Verb: TypeAlias = Literal["publish", "subscribe", "advertise", "administer", "join", "interest"]


def may_publish(principal: Principal, event: Mapping[str, object]) -> None:
    """Raise AccessDenied unless an event may be published; an event with intervals must match throughout them."""
    permission = principal.permissions.publish
    if permission is True:
        return
    if permission is False or not check_of(permission, "covers")(event):
        raise AccessDenied(_refusal(principal, "publish", "publish this event", "events that match"))


def may_subscribe(principal: Principal, filter: Filter) -> None:
    """Raise AccessDenied unless the whole of a filter may be subscribed to."""
    subscribable(principal, filter)


def subscribable(principal: Principal, filter: Filter) -> Filter:
    """Return the filter that a subscriber gets for a requested one: the same filter; AccessDenied if not permitted."""
    _check_inside(principal, "subscribe", filter)
    return filter


def may_advertise(principal: Principal, filter: Filter) -> None:
    """Raise AccessDenied unless the whole of a filter may be advertised."""
    _check_inside(principal, "advertise", filter)


def may_administer(principal: Principal) -> None:
    """Raise AccessDenied unless a role has the permission to administer."""
    if not principal.permissions.administer:
        raise AccessDenied(_refusal(principal, "administer", "administer this node"))


def may_join(principal: Principal) -> None:
    """Raise AccessDenied unless a role permits to be a neighbour of this node."""
    if not principal.permissions.join:
        raise AccessDenied(_refusal(principal, "join", "join as a node"))


def may_ask(principal: Principal) -> None:
    """Raise AccessDenied unless a role permits to learn what others subscribe to."""
    if not principal.permissions.interest:
        raise AccessDenied(_refusal(principal, "interest", "ask what others subscribe to"))


def _check_inside(principal: Principal, verb: Literal["subscribe", "advertise"], filter: Filter) -> None:
    permission: Permission = getattr(principal.permissions, verb)
    if permission is True or (isinstance(permission, Filter) and permission.covers(filter)):
        return
    deed = "subscribe to" if verb == "subscribe" else "advertise"
    reason = _refusal(principal, verb, f"{deed} {filter}", "what is inside")
    if isinstance(permission, Filter):
        reason += _remedy(permission, filter)
    raise AccessDenied(reason)


def _remedy(permission: Filter, filter: Filter) -> str:
    """Return the advice for a refused filter: the conditions to add, or that none help."""
    try:
        common = permission & filter
    except FilterTooComplex:
        return "; add its conditions to yours"
    if common.is_empty:
        return "; the two have nothing in common"
    return f", and that this is cannot be shown; add its conditions: {common}"


def _refusal(principal: Principal, verb: Verb, deed: str, bound: str = "") -> str:
    who = repr(principal.name) if principal.name else "a client without a token"
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
