"""Errors over HTTP, as problem details of RFC 9457 (`application/problem+json`).

Handlers raise the usual errors: `EventError` names a field, `FilterSyntaxError` a place in a text, `AccessDenied` the
reason. `problem_of` turns each into an answer, with the place as further members beside `detail`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.responses import Response

from fieldfare.core.state import RequestRefused
from fieldfare.events.limits import EventError
from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError
from fieldfare.node.node import NodeStopped
from fieldfare.node.security import AccessDenied, Unauthenticated
from fieldfare.node.security.filter_admission import TooMuch

PROBLEM: Final = "application/problem+json"

logger = logging.getLogger("fieldfare.node.http")


class Problem(ValueError):
    """An error with its answer: a status, a detail, and perhaps the place of the mistake."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **place: object) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.place = place
        """members beside `detail`, such as `event` and `field`"""


class ProblemDetails(msgspec.Struct, frozen=True):
    """The form of every error; further members may name the place (`event`, `field`, `position`, `line`, `column`)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def problem_of(error: Exception) -> Problem:
    """Return the answer for an error of a handler; unexpected errors are logged, and answered with 500."""
    match error:
        case Problem():
            return error
        case Unauthenticated():
            return Problem(401, str(error), {"WWW-Authenticate": 'Bearer realm="fieldfare"'})
        case AccessDenied():
            return Problem(403, str(error))
        case EventError():
            return Problem(400, str(error), field=error.field)
        case FilterSyntaxError():
            return Problem(
                400, str(error), problem=error.problem, position=error.position, line=error.line, column=error.column
            )
        case FilterDocumentError():
            return Problem(400, str(error), problem=error.problem, path=error.path)
        case msgspec.ValidationError():
            return Problem(400, str(error).replace("`", ""))
        case TooMuch():
            return Problem(413, str(error))
        case RequestRefused():
            return Problem(409, str(error))
        case NodeStopped():
            detail = (
                f"{error}; the request may have had its effect all the same"  # if the events were in the log already
            )
            return Problem(503, detail, {"Retry-After": "5"})
        case ValueError():
            return Problem(400, str(error))
        case RecursionError():
            return Problem(400, "the body is nested too deep")
    logger.error("a request failed", exc_info=error)
    return Problem(500, "the node failed: see its log")


def respond(problem: Problem) -> Response:
    """Return the response of a problem."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        **problem.place,
    }
    return Response(_encode(body), problem.status, problem.headers, PROBLEM)


def _encode(body: object) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # the detail quotes a text of the request that is not Unicode
        return msgspec.json.encode(_clean(body))


def _clean(body: object) -> object:
    if isinstance(body, str):
        return body.encode(errors="backslashreplace").decode()
    return {name: _clean(value) for name, value in body.items()} if isinstance(body, dict) else body
