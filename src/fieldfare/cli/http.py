"""Requests to a node's HTTP interface, and the options and errors that all commands for a node share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Annotated, Any, Final, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import typer

from fieldfare.cli.errors import InputError
from fieldfare.client.errors import ConnectionRefused
from fieldfare.protocol.addresses import is_exposed

DEFAULT_NODE: Final = "ws://127.0.0.1:7400"
PATIENCE: Final = 10.0
"""seconds that a node has for an answer"""
_warned: Final[set[str]] = set()
"""addresses of nodes for which the warning was printed already"""

NodeOption: TypeAlias = Annotated[
    str, typer.Option("--node", "-n", metavar="URL", envvar="FIELDFARE_NODE", help="Address of the node.")
]
TokenOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="TOKEN",
        envvar="FIELDFARE_TOKEN",
        help="Your token, for a node with security.",
        show_default=False,
    ),
]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine of a command; Ctrl-C ends the command without a traceback."""
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except ConnectionRefused as error:
        raise InputError("the node refuses", error) from None
    except (OSError, TimeoutError) as error:
        raise InputError("", f"{error}. {_advice(str(error))}") from None


def _advice(problem: str) -> str:
    if "certificate" in problem.lower():
        return "Let SSL_CERT_FILE name the authority that has signed it"
    return "Is there a node? Start one: fieldfare up"


def web_address(node: str) -> str:
    """Return the address at which a node answers HTTP.

    >>> web_address("ws://127.0.0.1:7400/")
    'http://127.0.0.1:7400'
    """
    address = node.rstrip("/")
    if address.startswith(("ws://", "wss://")):
        return address.replace("ws", "http", 1)
    return address if address.startswith(("http://", "https://")) else f"http://{address}"


def client_address(node: str) -> str:
    """Return the address at which a node accepts clients.

    >>> client_address("http://127.0.0.1:7400"), client_address("127.0.0.1:7400")
    ('ws://127.0.0.1:7400', 'ws://127.0.0.1:7400')
    """
    return web_address(node).replace("http", "ws", 1)


def fetch(node: str, path: str, token: str = "", *, method: str = "GET", body: object = None) -> Any:
    """Send a request to a node and return the decoded JSON answer; InputError tells why the request failed."""
    address = web_address(node) + path
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data=data, method=method)  # noqa: S310 - its scheme was checked
    request.add_header("Accept", "application/json")
    if data is not None:
        request.add_header("Content-Type", "application/json")
    if token:
        if is_exposed(address) and web_address(node) not in _warned:
            _warned.add(web_address(node))
            typer.echo(
                f"warning: over {web_address(node)} everybody on the way can read your token: use wss://", err=True
            )
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - the same
            text = answer.read()
    except HTTPError as error:
        problem = error.read()
        try:
            detail = json.loads(problem).get("detail", error.reason)
        except ValueError:
            detail = error.reason
        raise InputError(address, f"{error.code}: {detail}") from None
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(address, f"{reason}. Is there a node? Start one: fieldfare up") from None
    return json.loads(text) if text else None


def quoted(name: str) -> str:
    """Return a name as a part of an address: slashes and other special characters become %XX."""
    return quote(name, safe="")
