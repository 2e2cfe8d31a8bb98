from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Route
from tests.node.http.helpers import api, is_problem, sink

from fieldfare.node.http import openapi, routes
from fieldfare.node.http.resource import Resource


def test_every_route_is_described() -> None:
    async def main() -> None:
        async with api() as (service, _):
            found = {
                (re.sub(r":path}", "}", route.path), method.lower())
                for route in routes(service)
                if isinstance(route, Route)
                for method in (route.endpoint.handlers if isinstance(route.endpoint, Resource) else ["?"])
            }
            described = {(path, method) for path, methods in openapi.PATHS.items() for method in methods}
            assert found == described

    asyncio.run(main())


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [one for value in node.values() for one in references(value)]
    return [one for value in node for one in references(value)] if isinstance(node, list) else []


def test_the_document_holds_together(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in operations]
    assert len(set(ids)) == len(ids)
    for path, methods in document["paths"].items():
        for one in methods.values():
            placed = {p["name"] for p in one.get("parameters", []) if p["in"] == "path"}
            assert placed == set(re.findall(r"{(\w+)}", path))


def test_examples_are_true() -> None:
    """Each is sent to a node, and what comes back has the form that the document says."""

    async def main() -> None:
        async with api() as (_, client), sink() as to:
            id = ""
            for path, methods in openapi.PATHS.items():
                for method, operation in methods.items():
                    if (
                        path in ("/stream", "/metrics")
                        or operation.status == 204
                        or "confirm" in path
                        or path in ("/admin/moves", "/admin/nodes/{name}")  # there is one node only
                        or (path, method) == ("/admin/channels", "post")  # and no channel
                    ):
                        continue
                    where = path.replace("{id}", id).replace("{name}", "~http")
                    for kind, example in operation.bodies.items() or [("", None)]:
                        body = (
                            {**example, "sink": to.url} if isinstance(example, dict) and "sink" in example else example
                        )
                        content = msgspec.json.encode(body) if kind else None
                        headers = {"content-type": kind} if kind else {}
                        response = await client.request(method.upper(), where, content=content, headers=headers)
                        assert response.status_code == operation.status, (path, method, response.text)
                        assert operation.gives is not None
                        msgspec.json.decode(response.content, type=operation.gives, strict=True)
                        if path == "/subscriptions" and method == "post":
                            id = response.json()["id"]

    asyncio.run(main())


jsonish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["x < 1", "x <", "TRUE"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "filter",
                    "event",
                    "all",
                    "any",
                    "not",
                    "exact",
                    "prefix",
                    "sql",
                    "sink",
                    "protocol",
                    "filters",
                    "config",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(
    st.sampled_from(["/admin/explain", "/admin/match", "/subscriptions"]),
    jsonish.map(msgspec.json.encode) | st.binary(max_size=30),
)
def test_whatever_is_posted_there_is_a_clear_answer(client: httpx.Client, path: str, content: bytes) -> None:
    response = client.post(path, content=content, headers={"content-type": "application/json"})
    if response.status_code != 200:
        is_problem(response, (400, 413, 422))


@pytest.mark.parametrize("path", ["/events", "/admin/explain", "/admin/match", "/subscriptions"])
@pytest.mark.parametrize("depth", [60, 900, 100_000])
@pytest.mark.parametrize("piece", ['{"not":', "["])
def test_what_is_nested_deep_is_refused(client: httpx.Client, path: str, depth: int, piece: str) -> None:
    closing = "".join({"{": "}", "[": "]"}[sign] for sign in reversed(piece) if sign in "{[")
    inner = piece * depth + "1" + closing * depth
    for text in (inner, f'{{"filter": {inner}, "event": {{"x": {inner}}}}}', f'{{"filters": {inner}}}'):
        response = client.post(path, content=text, headers={"content-type": "application/json"})
        if response.status_code not in (200, 202):
            is_problem(response, (400, 413))


@settings(max_examples=15)
@given(st.text(max_size=12), st.sampled_from(["GET", "PUT", "DELETE", "PATCH", "POST", "OPTIONS"]))
def test_whatever_is_named_there_is_a_clear_answer(client: httpx.Client, name: str, method: str) -> None:
    for path in ("/admin/sessions", "/admin/links", "/subscriptions", "/admin/table?limit="):
        response = client.request(method, f"{path}/{quote(name)}" if "?" not in path else path + "x")
        assert response.status_code < 500
        if response.status_code >= 400 and response.headers["content-type"] != "text/plain; charset=utf-8":
            is_problem(response, (400, 404, 405, 409, 415))


@pytest.mark.parametrize("path", ["/events", "/subscriptions", "/admin/overview"])
def test_options(client: httpx.Client, path: str) -> None:
    response = client.options(path)
    assert response.status_code == 204
    methods = response.headers["allow"].split(", ")
    assert "OPTIONS" in methods
    assert all(a != b for a, b in pairwise(methods))
