"""`GET /openapi.json`: the HTTP API as a document of OpenAPI 3.1.

The operations are written by hand; the schemas of bodies come from the types that handlers use, so schema and body
cannot differ. A test tries every example: requests against a node, answers against their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from fieldfare.events import binary_mode
from fieldfare.node.http import binding
from fieldfare.node.http.admin import views
from fieldfare.node.http.admin.filters import MOST_FILTERS
from fieldfare.node.http.admin.sessions import LONGEST_PAGE, PAGE
from fieldfare.node.http.errors import PROBLEM, ProblemDetails
from fieldfare.node.http.events import Accepted
from fieldfare.node.http.health import About, Alive, Ready, our_version
from fieldfare.node.http.resource import JSON, Call, answer
from fieldfare.node.http.subscriptions import Request, Subscription
from fieldfare.node.pipeline_reports import PipelineReport, Shown

_REF: Final = "#/components/schemas/{name}"


class Operation(NamedTuple):
    """An operation of OpenAPI: a method at a path."""

    summary: str
    tag: str
    status: int = 200
    gives: Any = None
    """type of the answer; None: no body, or a body of the media type `kind`"""
    kind: str = JSON
    takes: Any = None
    """type of the request body"""
    bodies: Mapping[str, Any] = {}
    """examples of request bodies, by media type"""
    parameters: tuple[dict[str, Any], ...] = ()
    open: bool = False
    """needs no token"""


def _parameter(name: str, about: str, kind: str = "string", place: str = "query") -> dict[str, Any]:
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "description": about, "schema": {"type": kind}, **required}


_CLOUD_EVENT: Final = {
    "specversion": "1.0",
    "id": "1",
    "source": "/tills/7",
    "type": "sale",
    "data": {"sum": 5},
}
_PLAIN: Final = {"symbol": "IBM", "price": 119}
SUBSCRIPTION: Final = {
    "sink": "http://127.0.0.1:8000/hook",
    "protocol": "HTTP",
    "types": ["sale"],
    "filters": [{"prefix": {"source": "/tills/"}}],
    "config": {"maxattempts": 5, "backoff": 0.5},
}
REPORT: Final = {
    "name": "trades",
    "state": "running",
    "batch": 7,
    "time": 1763200000.0,
    "events": 12000,
    "deliveries": 31000,
    "rate": 2400.0,
    "took": 0.8,
    "snapshot": 3,
    "subscriptions": 500,
    "busiest": [{"subscription": "ibm", "owner": "ana", "count": 4100}],
    "fields": [
        {
            "name": "price",
            "kinds": {"number": 12000},
            "present": 1.0,
            "distinct": 840,
            "low": 14.1,
            "high": 702,
            "top": [[119, 60]],
            "histogram": [[0, 400, 9000], [400, 800, 3000]],
        }
    ],
    "history": [[1763199999.0, 2380.0, 6100.0], [1763200000.0, 2400.0, 6200.0]],
}
_ID: Final = _parameter("id", "id of the subscription", place="path")
_SESSION: Final = _parameter("name", "name of the session", place="path")
_PIPELINE: Final = _parameter("name", "name of the pipeline", place="path")
_PAGES: Final = (
    _parameter("offset", "number of entries to skip", "integer"),
    _parameter("limit", f"entries in the answer; {PAGE} by default, {LONGEST_PAGE} at most", "integer"),
    _parameter("search", "part of the text to search for"),
)
_STREAM: Final = (
    _parameter("filter", "filter in the native language; may occur several times"),
    _parameter("filters", "filter document of CloudEvents Subscriptions, as JSON"),
    _parameter("pattern", "pattern of several events, in place of filters"),
    _parameter("since", "position or time: begin with a replay of earlier events"),
    _parameter("session", "name of a durable session"),
    _parameter("format", "cloudevents or plain"),
    _parameter("Last-Event-ID", "POSITION:NUMBER:LIFE, the id of the last message seen", place="header"),
)
_PUBLISH: Final = (
    _parameter("ttl", "seconds after which the events are no longer delivered; or the header TTL", "number"),
    _parameter("replaces", "name under which waiting events replace each other; or the header Replaces"),
)

PATHS: Final[dict[str, dict[str, Operation]]] = {
    "/": {"get": Operation("Links to all parts; browsers get the dashboard", "node", gives=About, open=True)},
    "/health": {"get": Operation("Tell that the process is alive", "node", gives=Alive, open=True)},
    "/ready": {"get": Operation("Tell whether the node accepts requests (503: no)", "node", gives=Ready, open=True)},
    "/metrics": {"get": Operation("Metrics for Prometheus", "node", kind="text/plain")},
    "/openapi.json": {"get": Operation("This document", "node", gives=dict[str, Any], open=True)},
    "/events": {
        "post": Operation(
            "Publish events, all or none. CloudEvents in binary mode have attributes as headers such as ce-type",
            "events",
            202,
            Accepted,
            bodies={
                binary_mode.PLAIN: _PLAIN,
                binding.LINES: _PLAIN,
                binary_mode.STRUCTURED: _CLOUD_EVENT,
                binding.BATCH: [_CLOUD_EVENT],
            },
            parameters=_PUBLISH,
        )
    },
    "/stream": {
        "get": Operation("Events as server-sent events", "events", kind="text/event-stream", parameters=_STREAM)
    },
    "/subscriptions": {
        "get": Operation("Your subscriptions with a sink", "subscriptions", gives=list[Subscription]),
        "post": Operation(
            "Subscribe, with delivery to a sink", "subscriptions", 201, Subscription, takes=Request,
            bodies={JSON: SUBSCRIPTION},
        ),
    },
    "/subscriptions/{id}": {
        "get": Operation("Show a subscription", "subscriptions", gives=Subscription, parameters=(_ID,)),
        "put": Operation(
            "Change a subscription", "subscriptions", gives=Subscription, takes=Request, parameters=(_ID,),
            bodies={JSON: {**SUBSCRIPTION, "types": ["sale", "return"]}},
        ),
        "delete": Operation("End a subscription", "subscriptions", gives=Subscription, parameters=(_ID,)),
    },
    "/subscriptions/{id}/confirm": {
        method: Operation(
            "Callback of a sink that agrees to deliveries", "subscriptions", gives=dict[str, str], open=True,
            parameters=(_ID, _parameter("key", "key from WebHook-Request-Callback")),
        )
        for method in ("get", "post")
    },
    "/admin/overview": {"get": Operation("State of the node at a glance", "admin", gives=views.Overview)},
    "/admin/nodes/{name}": {
        "get": Operation(
            "State of another node of the overlay, asked over the links", "admin", gives=views.Overview,
            parameters=(_parameter("name", "of the node", place="path"),),
        )
    },
    "/admin/sessions": {"get": Operation("Sessions", "admin", gives=views.Sessions, parameters=_PAGES)},
    "/admin/sessions/{name}": {
        "get": Operation(
            "A session with its subscriptions", "admin", gives=views.SessionDetails, parameters=(_SESSION,)
        ),
        "delete": Operation(
            "End a session, or remove one of its devices", "admin", 204,
            parameters=(_SESSION, _parameter("device", "only this device")),
        ),
    },
    "/admin/moves": {
        "post": Operation(
            "Hand a session over to another node; its client follows", "admin", 202, takes=views.ToMove,
            bodies={JSON: {"session": "ana", "to": "rome"}},
        )
    },
    "/admin/channels": {
        "get": Operation("Types of events with one order everywhere", "admin", gives=list[views.ChannelView]),
        "post": Operation(
            "Give a channel another home, while its publishers and subscribers go on", "admin", 202,
            takes=views.ChannelToMove, bodies={JSON: {"type": "quote", "to": "rome"}},
        ),
    },
    "/admin/subscriptions": {
        "get": Operation("Subscriptions of all sessions", "admin", gives=views.Subscriptions, parameters=_PAGES)
    },
    "/admin/table": {
        "get": Operation(
            "Filters of the routing table, with the cover relation", "admin", gives=views.TableView,
            parameters=(_parameter("limit", f"filters in the answer; {MOST_FILTERS} at most", "integer"),),
        )
    },
    "/admin/patterns": {
        "get": Operation(
            "Patterns that stand in the node", "admin", gives=list[views.PatternView],
            parameters=(_parameter("limit", "patterns in the answer; 200 at most", "integer"),),
        )
    },
    "/admin/patterns/{name}": {
        "delete": Operation(
            "End a pattern", "admin", 204, parameters=(_parameter("name", "of the pattern", place="path"),)
        )
    },
    "/admin/links": {"get": Operation("The neighbours", "admin", gives=list[views.LinkView])},
    "/admin/links/{name}": {
        "delete": Operation(
            "Remove a neighbour", "admin", 204, parameters=(_parameter("name", "of the node", place="path"),)
        )
    },
    "/admin/explain": {
        "post": Operation(
            "Normal form of a filter, and its relations to others", "admin", gives=views.Explanation,
            takes=views.ToExplain, bodies={JSON: {"filter": "price < 10"}},
        )
    },
    "/admin/match": {
        "post": Operation(
            "Match an event with a filter, with the reasons", "admin", gives=views.MatchAnswer, takes=views.ToMatch,
            bodies={JSON: {"filter": "price < 10", "event": {"price": 12}}},
        )
    },
    "/admin/pipelines": {"get": Operation("Reports of Spark pipelines", "admin", gives=list[Shown])},
    "/admin/pipelines/{name}": {
        "put": Operation(
            "Report the progress of a pipeline", "admin", 204, takes=PipelineReport, parameters=(_PIPELINE,),
            bodies={JSON: REPORT},
        ),
        "delete": Operation("Forget a pipeline", "admin", 204, parameters=(_PIPELINE,)),
    },
}  # fmt: skip
"""all operations, by path and method"""


def document() -> dict[str, Any]:
    """Return the document; schemas that several operations use are shared components."""
    operations = [one for methods in PATHS.values() for one in methods.values()]
    types = [kind for one in operations for kind in (one.gives, one.takes) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, ProblemDetails], ref_template=_REF)
    forms = dict(zip(map(repr, [*types, ProblemDetails]), schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fieldfare node",
            "version": our_version(),
            "summary": "Publish events, and get those that a filter matches",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "paths": {
            path: {method: _operation(one, path, method, forms) for method, one in methods.items()}
            for path, methods in PATHS.items()
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _operation(one: Operation, path: str, method: str, forms: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if one.gives is not None:
        content = {"content": {one.kind: {"schema": forms[repr(one.gives)]}}}
    elif one.status != 204:
        content = {"content": {one.kind: {"schema": {"type": "string"}}}}
    problem = {"content": {PROBLEM: {"schema": forms[repr(ProblemDetails)]}}}
    words = path.replace("{", "").replace("}", "").replace(".", "/").split("/")
    made: dict[str, Any] = {
        "operationId": method + ("".join(word.capitalize() for word in words) or "Root"),
        "summary": one.summary,
        "tags": [one.tag],
        "responses": {
            str(one.status): {"description": "Done", **content},
            "default": {"description": "Error, as problem details", **problem},
        },
    }
    if one.parameters:
        made["parameters"] = list(one.parameters)
    if one.bodies:
        schema = forms[repr(one.takes)] if one.takes is not None else {}
        made["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": schema, "example": example} for kind, example in one.bodies.items()},
        }
    if one.open:
        made["security"] = [{}]
    return made


async def openapi(_: Call) -> Response:
    """Answer with the OpenAPI document, which is the same for all callers."""
    return answer(document())
