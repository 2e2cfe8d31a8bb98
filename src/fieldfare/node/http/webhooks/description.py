"""The description of a webhook, in the form of the CloudEvents Subscriptions API, and the row that the node stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.python import field
from fieldfare.filters.languages.subscriptions import documents
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.security import EVERYBODY, Principal, Security, with_roles

SESSION: Final = "webhook:"
"""prefix of the names of the webhooks' sessions"""
RATE: Final = 60_000
"""requests a minute that the node asks a sink for, unless the description says otherwise"""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a description; an unknown member is a mistake."""


class Settings(_Part, frozen=True):
    """The `config` of a subscription: attempts, times and rates of the delivery."""

    maxattempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    """attempts before an event becomes a dead letter"""
    backoff: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 1.0
    """seconds before the second attempt; before each further attempt twice as many, up to a minute"""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10.0
    """seconds that a sink has for its answer"""
    rate: Annotated[int, msgspec.Meta(ge=1, le=RATE)] = RATE
    """requests a minute to ask the sink for"""
    validation: Literal["options", "callback"] = "options"
    """`callback`: the sink may agree later, by a call of the URL in WebHook-Request-Callback; until then events wait"""
    deadlettersink: str = ""
    """second sink, for dead letters"""
    since: int | float | str | None = None
    """start of a replay: a position, or a time (seconds, or RFC 3339); only counts when the subscription is made"""


class ProtocolSettings(_Part, frozen=True):
    """The `protocolsettings` of a subscription: method and headers of the requests."""

    headers: dict[str, str] = {}
    method: Literal["POST", "PUT", "PATCH"] = "POST"


class Credential(_Part, frozen=True):
    """The credential for a sink. No answer shows it; the node's folder has it in plain text."""

    credentialtype: Literal["PLAIN", "ACCESSTOKEN"]
    identifier: str = ""
    secret: str = ""
    accesstoken: str = ""
    accesstokentype: str = "Bearer"
    accesstokenexpiresutc: str = ""


Filters: TypeAlias = Annotated[
    list[Any],
    msgspec.Meta(
        description="Objects with one of exact, prefix, suffix, all, any, not, sql (CESQL, whose numbers are integers),"
        " and fieldfare (a filter in the native language, over all fields). All of them must match.",
        examples=[[{"prefix": {"source": "/tills/"}}, {"fieldfare": "data.sum >= 2.5"}]],
    ),
]


class Description(_Part, frozen=True):
    """A subscription with a sink, as a client describes it."""

    sink: str
    protocol: Literal["HTTP"]
    source: str | None = None
    types: list[str] | None = None
    filters: Filters | None = None
    config: Settings = Settings()
    protocolsettings: ProtocolSettings = ProtocolSettings()
    sinkcredential: Credential | None = None


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook as the node stores it: the description, and the facts that the node has found out."""

    id: str
    owner: str
    description: Description = msgspec.field(name="wanted")
    """`wanted` in stored rows, which earlier versions wrote"""
    active: bool
    """the sink has agreed to deliveries"""
    rate: int = RATE
    """requests a minute that the sink accepts"""
    key: str = ""
    """key that a callback must have"""
    private: bool = False
    """the sink may have an address that is not public"""
    roles: tuple[str, ...] | None = None
    """roles of the client that described the webhook last; None in rows of early versions: no check is possible"""
    token: str = ""
    """id of that client's token: while the token is void, events wait"""
    issued: float | None = None
    """time at which that token was issued"""

    def principal(self, security: Security | None) -> Principal:
        """Return the owner with the permissions that the roles have now."""
        if self.roles is None or security is None:
            return EVERYBODY
        return with_roles(self.owner, self.roles, security)._replace(token=self.token, issued=self.issued)

    @property
    def session(self) -> str:
        """The name of the session in which the events wait."""
        return SESSION + self.id


def filter_of(description: Description) -> Filter:
    """Return the filter of a description, `source` and `types` included."""
    filter = documents.parse(list(description.filters or []))
    # Both are strings in every CloudEvent, so plain comparisons suffice: a permission `type = 'sale'` covers them.
    if description.source is not None:
        filter &= field.source == description.source
    if description.types:
        filter &= field.type.isin(description.types)
    if filter.is_empty:
        raise FilterDocumentError("/filters", "nothing can match: they contradict source or types")
    return filter


def headers_of(description: Description) -> Mapping[str, str]:
    """Return the headers for a sink, with `Authorization` from the credential."""
    headers = dict(description.protocolsettings.headers)
    match description.sinkcredential:
        case Credential(credentialtype="PLAIN", identifier=name, secret=password):
            headers["Authorization"] = sinks.basic(name, password)
        case Credential(accesstoken=token, accesstokentype=kind):
            headers["Authorization"] = f"{kind} {token}"
    return headers
