"""The CloudEvents Subscriptions API: `/subscriptions`, for events that the node delivers to a URL.

    curl http://127.0.0.1:7400/subscriptions -H 'Content-Type: application/json' -d '{"sink": "http://127.0.0.1:8000/",
      "protocol": "HTTP", "types": ["sale"], "filters": [{"prefix": {"source": "/tills/"}}]}'

The owner and the administrators of the node may see, change and end a subscription. A subscription outlives the token
of its owner; but the node checks the owner's roles for each event, so the sink gets no more than the roles permit now,
and events wait while the token is void.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from starlette.responses import Response

from fieldfare.filters.filter import Filter
from fieldfare.node import security
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, Handler, answer, read
from fieldfare.node.http.webhooks import (
    Credential,
    Description,
    Filters,
    ProtocolSettings,
    Settings,
    Webhook,
    Webhooks,
    filter_of,
    masks,
)
from fieldfare.node.security.filter_admission import bounded, check_size, permitted, taken, within

RESERVED: Final = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer"}
)
"""headers that only the node sets"""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE: Final = re.compile(r"[\x20-\x7e]{0,4000}")


class State(msgspec.Struct, frozen=True):
    """The state of a subscription; the counters begin with the start of the node."""

    state: str
    """`active`, or `pending` until the sink agrees"""
    waiting: int
    """events that the sink has not accepted yet"""
    delivered: int
    retries: int
    deadletters: int
    problem: str = ""
    """failure of the last attempt; empty after a success"""


class Request(Description, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A subscription in a request. Members that only the node sets are ignored, so a client can send back an answer."""

    id: Any = None
    status: Any = None
    hint: Any = None


class Subscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription in an answer, without the credential."""

    id: str
    sink: str
    protocol: str
    source: str | None = None
    types: list[str] | None = None
    filters: Filters | None = None
    config: Settings = Settings()
    protocolsettings: ProtocolSettings = ProtocolSettings()
    status: State
    hint: str = ""
    """warning about a surprise in the filter"""


HINT: Final = (
    "CESQL has integers only: a comparison with a number never matches a field such as 119.5. To compare"
    ' numbers of all kinds, write {"fieldfare": "price < 120"} instead of {"sql": ...}'
)


def handlers(hooks: Webhooks) -> dict[str, dict[str, Handler]]:
    """Return the handlers by path and method."""

    def seen(call: Call, hook: Webhook, filter: Filter | None = None) -> Subscription:
        found = shown(hooks, hook, by=call.principal.name)
        return msgspec.structs.replace(found, hint=HINT) if filter is not None and "'INT(" in str(filter) else found

    async def show_all(call: Call) -> Response:
        return answer([seen(call, hook) for hook in hooks.all.values() if _mine(call, hook)])

    async def add(call: Call) -> Response:
        description, filter, private = await _read(call)
        id = call.service.node.fresh_name()
        hook = await hooks.add(id, description, filter, principal=call.principal, private=private)
        return answer(seen(call, hook, filter), 201, {"Location": f"/subscriptions/{id}"})

    async def show(call: Call) -> Response:
        return answer(seen(call, _found(hooks, call)))

    async def change(call: Call) -> Response:
        before = _found(hooks, call).description
        description, filter, private = await _read(call, before)
        hook = await hooks.change(_found(hooks, call), description, filter, principal=call.principal, private=private)
        return answer(seen(call, hook, filter))

    async def remove(call: Call) -> Response:
        hook = _found(hooks, call)
        last = seen(call, hook)
        await hooks.remove(hook)
        return answer(last)

    return {
        "/subscriptions": {"get": show_all, "post": add},
        "/subscriptions/{id}": {"get": show, "put": change, "delete": remove},
    }


def confirmation(hooks: Webhooks) -> Handler:
    """Return the handler of a sink's callback; the key in the URL is the permission."""

    async def confirm(call: Call) -> Response:
        key = call.request.query_params.get("key", "")
        rate = call.request.headers.get("webhook-allowed-rate", "")
        await hooks.confirm(call.request.path_params["id"], key, rate)
        return answer({"status": "active"})

    return confirm


def shown(hooks: Webhooks, hook: Webhook, *, by: str) -> Subscription:
    """Return a subscription for the eyes of a caller; for others than the owner without URLs, which may be secret."""
    description, progress = masks.masked(hook.description, own=hook.owner == by), hooks.progress[hook.id]
    session = hooks.session(hook)
    return Subscription(
        id=hook.id,
        sink=description.sink,
        protocol=description.protocol,
        source=description.source,
        types=description.types,
        filters=description.filters,
        config=description.config,
        protocolsettings=description.protocolsettings,
        status=State(
            "active" if hook.active else "pending",
            len(session.pending) if session is not None else 0,
            progress.delivered,
            progress.retries,
            progress.dead,
            progress.problem,
        ),
    )


def _mine(call: Call, hook: Webhook) -> bool:
    return hook.owner == call.principal.name or call.principal.permissions.administer


def _found(hooks: Webhooks, call: Call) -> Webhook:
    id = call.request.path_params["id"]
    hook = hooks.all.get(id)
    if hook is None or not _mine(call, hook):
        raise Problem(404, f"there is no subscription {id[:100]} of yours")
    return hook


async def _read(call: Call, before: Description | None = None) -> tuple[Description, Filter, bool]:
    """Return the description in a request, its filter, and whether the sink may have a private address."""
    permitted(call.principal, "subscribe")
    request = await read(call, Request)
    description = Description(**{name: getattr(request, name) for name in Description.__struct_fields__})
    if before is not None:
        description = masks.unmasked(description, before)
    if description.source == "" or any(not one for one in description.types or ()):
        raise Problem(400, "source and types must not be empty strings: leave them out instead")
    _check_headers(description.protocolsettings)
    _check_credential(description.sinkcredential)
    limits = call.service.node.config.limits
    check_size(len(msgspec.json.encode([description.source, description.types, description.filters])), limits)
    filter = await within(
        lambda: security.subscribable(call.principal, taken(bounded(lambda: filter_of(description)), limits)), limits
    )
    return description, filter, call.principal.permissions.administer


def _check_headers(settings: ProtocolSettings) -> None:
    for name, value in settings.headers.items():
        known = name.lower()
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Problem(
                400, f"{name[:100]!r} with this value is not a valid header", member="protocolsettings.headers"
            )
        if known in RESERVED or known.startswith(("ce-", "webhook-")):
            raise Problem(400, f"only the node sets the header {name}", member="protocolsettings.headers")


def _check_credential(credential: Credential | None) -> None:
    if credential is None:
        return
    needed = ("identifier", "secret") if credential.credentialtype == "PLAIN" else ("accesstoken", "accesstokentype")
    for name in needed:
        text = getattr(credential, name)
        if not text or not (_VALUE.fullmatch(text) or credential.credentialtype == "PLAIN"):
            problem = (
                f"a credential of the type {credential.credentialtype} needs {' and '.join(needed)}, as plain text"
            )
            raise Problem(400, problem, member=f"sinkcredential.{name}")
