"""Access control of a node: tokens name a principal and its roles, roles have permissions, and each request is checked.

Modules beside these names: `filter_admission` parses filters within bounds, `tickets` let a client follow its session
to another node, `rights` checks the subscriptions and waiting events of a session again, `quotas` counts sessions.
"""

from fieldfare.node.security.access_rules import Security, security_of
from fieldfare.node.security.errors import AccessDenied, Unauthenticated
from fieldfare.node.security.permissions import (
    may_administer,
    may_advertise,
    may_ask,
    may_join,
    may_publish,
    may_subscribe,
    subscribable,
)
from fieldfare.node.security.principals import EVERYBODY, Principal, is_void, principal_of, watch, with_roles
from fieldfare.node.security.revocations import Credential, Revocations
from fieldfare.node.security.roles import Permission, Role, role_of, union
from fieldfare.node.security.tls import tls_context
from fieldfare.node.security.tokens import bearer, joining_token, make_token

__all__ = [
    "EVERYBODY",
    "AccessDenied",
    "Credential",
    "Permission",
    "Principal",
    "Revocations",
    "Role",
    "Security",
    "Unauthenticated",
    "bearer",
    "is_void",
    "joining_token",
    "make_token",
    "may_administer",
    "may_advertise",
    "may_ask",
    "may_join",
    "may_publish",
    "may_subscribe",
    "principal_of",
    "role_of",
    "security_of",
    "subscribable",
    "tls_context",
    "union",
    "watch",
    "with_roles",
]
