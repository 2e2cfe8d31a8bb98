"""`GET /openapi.json`: this API as a document of OpenAPI 3.1.

Operations are written down here by hand; the forms of bodies come from the types that handlers use, so they cannot
differ from what is sent. Every example is tried by a test: requests against a node, answers against their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

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
    """What one can do at a path."""

    summary: str
    tag: str
    status: int = 200
    gives: Any = None
    """the type of the answer; None: it has none, or is described by `kind`"""
    kind: str = JSON
    takes: Any = None
    """the type of the body"""
    bodies: Mapping[str, Any] = {}
    """bodies by media type, each with an example"""
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
_ID: Final = _parameter("id", "of the subscription", place="path")
_SESSION: Final = _parameter("name", "of the session", place="path")
_PIPELINE: Final = _parameter("name", "of the pipeline", place="path")
_PAGES: Final = (
    _parameter("offset", "how many to leave out", "integer"),
    _parameter("limit", f"how many at most; {PAGE} if not said, {LONGEST_PAGE} at most", "integer"),
    _parameter("search", "a part of the text to look for"),
)
_STREAM: Final = (
    _parameter("filter", "a filter in the native language; may be given several times"),
    _parameter("filters", "a filter document of CloudEvents' subscriptions, as JSON"),
    _parameter("since", "a position, or a time: also events that happened already"),
    _parameter("session", "the name of a session that survives"),
    _parameter("format", "cloudevents or plain"),
    _parameter("Last-Event-ID", "POSITION:NUMBER:LIFE of the last message that was seen", place="header"),
)
_PUBLISH: Final = (
    _parameter("ttl", "seconds after which nobody is to get the events any more; or the header TTL", "number"),
    _parameter("replaces", "events under such a name replace each other while they wait; or the header Replaces"),
)

PATHS: Final[dict[str, dict[str, Operation]]] = {
    "/": {"get": Operation("Where everything is; for browsers the dashboard", "node", gives=About, open=True)},
    "/health": {"get": Operation("Is the process alive?", "node", gives=Alive, open=True)},
    "/ready": {"get": Operation("Does the node take requests? If not, 503", "node", gives=Ready, open=True)},
    "/metrics": {"get": Operation("Figures for Prometheus", "node", kind="text/plain")},
    "/openapi.json": {"get": Operation("This document", "node", gives=dict[str, Any], open=True)},
    "/events": {
        "post": Operation(
            "Publish events, all or none. CloudEvents in binary mode have attributes as headers such as ce-type",
            "events",
            202,
            Accepted,
            bodies={
                binding.PLAIN: _PLAIN,
                binding.LINES: _PLAIN,
                binding.STRUCTURED: _CLOUD_EVENT,
                binding.BATCH: [_CLOUD_EVENT],
            },
            parameters=_PUBLISH,
        )
    },
    "/stream": {
        "get": Operation("Events as server-sent events", "events", kind="text/event-stream", parameters=_STREAM)
    },
    "/subscriptions": {
        "get": Operation("All subscriptions of yours", "subscriptions", gives=list[Subscription]),
        "post": Operation(
            "Let events be brought to a sink", "subscriptions", 201, Subscription, takes=Request,
            bodies={JSON: SUBSCRIPTION},
        ),
    },
    "/subscriptions/{id}": {
        "get": Operation("A subscription", "subscriptions", gives=Subscription, parameters=(_ID,)),
        "put": Operation(
            "Let it be another one", "subscriptions", gives=Subscription, takes=Request, parameters=(_ID,),
            bodies={JSON: {**SUBSCRIPTION, "types": ["sale", "return"]}},
        ),
        "delete": Operation("End it", "subscriptions", gives=Subscription, parameters=(_ID,)),
    },
    "/subscriptions/{id}/confirm": {
        method: Operation(
            "The callback of a sink that agrees", "subscriptions", gives=dict[str, str], open=True,
            parameters=(_ID, _parameter("key", "as it was in WebHook-Request-Callback")),
        )
        for method in ("get", "post")
    },
    "/admin/overview": {"get": Operation("The node at a glance", "admin", gives=views.Overview)},
    "/admin/nodes/{name}": {
        "get": Operation(
            "Another node of the overlay at a glance, asked over the links", "admin", gives=views.Overview,
            parameters=(_parameter("name", "of the node", place="path"),),
        )
    },
    "/admin/sessions": {"get": Operation("Sessions", "admin", gives=views.Sessions, parameters=_PAGES)},
    "/admin/sessions/{name}": {
        "get": Operation(
            "A session with all it wants", "admin", gives=views.SessionDetails, parameters=(_SESSION,)
        ),
        "delete": Operation("End a session", "admin", 204, parameters=(_SESSION,)),
    },
    "/admin/moves": {
        "post": Operation(
            "Let a session go to another node, and its client with it", "admin", 202, takes=views.ToMove,
            bodies={JSON: {"session": "ana", "to": "rome"}},
        )
    },
    "/admin/subscriptions": {
        "get": Operation("Subscriptions of all sessions", "admin", gives=views.Subscriptions, parameters=_PAGES)
    },
    "/admin/table": {
        "get": Operation(
            "The routing table, and which of its filters cover which", "admin", gives=views.TableView,
            parameters=(_parameter("limit", f"filters at most; {MOST_FILTERS} at most", "integer"),),
        )
    },
    "/admin/links": {"get": Operation("The neighbours", "admin", gives=list[views.LinkView])},
    "/admin/links/{name}": {
        "delete": Operation(
            "Be no neighbour any more", "admin", 204, parameters=(_parameter("name", "of the node", place="path"),)
        )
    },
    "/admin/explain": {
        "post": Operation(
            "What a filter says, and how it stands to those here", "admin", gives=views.Explanation,
            takes=views.ToExplain, bodies={JSON: {"filter": "price < 10"}},
        )
    },
    "/admin/match": {
        "post": Operation(
            "Whether an event matches a filter, and why", "admin", gives=views.MatchAnswer, takes=views.ToMatch,
            bodies={JSON: {"filter": "price < 10", "event": {"price": 12}}},
        )
    },
    "/admin/pipelines": {"get": Operation("How Spark pipelines do that report here", "admin", gives=list[Shown])},
    "/admin/pipelines/{name}": {
        "put": Operation(
            "A pipeline reports", "admin", 204, takes=PipelineReport, parameters=(_PIPELINE,), bodies={JSON: REPORT}
        ),
        "delete": Operation("Forget a pipeline", "admin", 204, parameters=(_PIPELINE,)),
    },
}  # fmt: skip
"""all operations, by path and method"""


def document() -> dict[str, Any]:
    """The whole document."""
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
            "default": {"description": "What is wrong, and where", **problem},
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
    """Show it."""
    return answer(document())
