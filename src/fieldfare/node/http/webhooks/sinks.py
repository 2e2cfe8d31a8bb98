"""Sinks of webhooks: the check of a URL, the agreement of a sink, and the requests with events.

Before the first delivery the node asks a sink by OPTIONS for its agreement, and for the rate of requests (*abuse
protection*, section 4 of CloudEvents' http-webhook.md). A sink can agree at once, or later by a callback.

A subscriber makes the node send requests to any address. So the node speaks only http and https, follows no redirects,
and uses no proxies of the environment. Where the node has `[security]`, a sink must have public addresses only, unless
its subscriber may administer the node: see `addresses`. A URL can be a secret, so others see only its host (`masked`).
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from fieldfare.node.http.binding import Message
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.webhooks import addresses
from fieldfare.node.http.webhooks.addresses import SinkError
from fieldfare.retry import Backoff

LONGEST_URL: Final = 2000
RESPONSE: Final = 64 << 10
"""bytes of an answer that are read, so that the connection can be used for the next request"""
LONGEST_PAUSE: Final = 3600.0
"""seconds; no Retry-After can make the node wait longer"""
LONGEST_BACKOFF: Final = 60.0
"""seconds between two attempts, unless the sink asks for more; a quarter more or less by chance"""
MASK: Final = "***"
"""the text in place of a secret"""
RETRIED: Final = frozenset({408, 425, 429})
"""statuses after which another attempt may succeed, besides all from 500 on"""
logging.getLogger("httpx").setLevel(
    logging.WARNING
)  # it would log each request with its URL, which may contain a secret


class Outcome(NamedTuple):
    """The result of an attempt to deliver."""

    status: int
    """status of HTTP; 0: no answer"""
    problem: str = ""
    pause: float | None = None
    """seconds to wait, by the Retry-After of the sink"""

    @property
    def delivered(self) -> bool:
        """True if the sink has accepted the event."""
        return 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """True if the sink wants no further events, ever."""
        return self.status == 410

    @property
    def again(self) -> bool:
        """True if another attempt may succeed."""
        return self.status == 0 or self.status in RETRIED or self.status >= 500

    def delay(self, failed: int, backoff: Backoff) -> float:
        """Return the seconds before the next attempt: the wish of the sink, or else the delay of `backoff`."""
        return backoff.delay(failed) if self.pause is None else self.pause


def make_client(*, public: bool, connections: int) -> httpx.AsyncClient:
    """Return an HTTP client for sinks; `public`: a client that connects to public addresses only."""
    transport = httpx.AsyncHTTPTransport(trust_env=False, limits=httpx.Limits(max_connections=connections))
    # The pool calls the backend for each new connection: the checked address is the one used. httpx has no option.
    transport._pool._network_backend = addresses.Backend(public=public)
    return httpx.AsyncClient(follow_redirects=False, trust_env=False, transport=transport, timeout=LONGEST_PAUSE)


def check_url(sink: str) -> None:
    """Raise SinkError if a URL cannot be a sink."""
    try:
        parts = urlsplit(sink)
        host, _ = parts.hostname, parts.port
        httpx.URL(sink)
    except (ValueError, httpx.InvalidURL) as error:
        raise SinkError(f"the sink is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host or len(sink) > LONGEST_URL or not sink.isprintable():
        raise SinkError(f"a sink is an http:// or https:// URL of at most {LONGEST_URL} characters")
    if parts.username is not None or parts.password is not None:
        raise SinkError("a sink has no name or password in its URL: use sinkcredential")
    if parts.fragment:
        raise SinkError("a sink has no fragment (#) in its URL")


async def check_public(sink: str) -> None:
    """Raise SinkError unless all addresses of a sink are public; an early check, as `make_client` checks anyway."""
    parts = urlsplit(sink)
    await addresses.resolved(parts.hostname or "", parts.port or 443, public=True)


def masked(sink: str) -> str:
    """Return a sink for the eyes of others: path and query can be as good as a password.

    >>> masked("https://hooks.example.org/services/T0/secret?token=1"), masked("http://127.0.0.1:8000/")
    ('https://hooks.example.org/***', 'http://127.0.0.1:8000/')
    """
    parts = urlsplit(sink)
    if not sink or (parts.path in ("", "/") and not parts.query):
        return sink
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{MASK}"


async def agreed_rate(
    client: httpx.AsyncClient, sink: str, origin: str, rate: int, headers: Mapping[str, str], *, callback: str = ""
) -> int | None:
    """Ask a sink for its agreement; return the requests a minute that it accepts, or None if the sink may agree later.

    Problem 422 if the sink does not agree; only with a `callback` can a sink agree later.
    """
    asked = {**headers, "WebHook-Request-Origin": origin, "WebHook-Request-Rate": str(rate)}
    if callback:
        asked["WebHook-Request-Callback"] = callback
    try:
        async with asyncio.timeout(10), client.stream("OPTIONS", sink, headers=asked) as response:
            allowed = response.headers.get("webhook-allowed-origin", "")
            granted = response.headers.get("webhook-allowed-rate", "*")
    except (httpx.HTTPError, httpx.InvalidURL, SinkError, OSError, TimeoutError) as error:
        problem = f"the sink {masked(sink)} cannot be asked for its agreement: {_named(error)}"
        raise Problem(422, problem, member="sink") from None
    if allowed.strip() in ("*", origin):
        return granted_rate(granted, rate)
    if callback:
        return None
    said = f"allows {allowed!r}" if allowed else "has no such header"
    raise Problem(
        422,
        f"the sink {masked(sink)} does not agree to deliveries: the answer to OPTIONS must have WebHook-Allowed-Origin:"
        f" {origin} (or *), and {said} (status {response.status_code}). For agreement by callback, set"
        " config.validation to 'callback'",
        member="sink",
    )


def granted_rate(text: str, asked: int) -> int:
    """Return the requests a minute that a header of a sink allows, at most as many as asked for."""
    text = text.strip()
    return max(1, min(int(text), asked)) if text.isascii() and text.isdigit() and len(text) < 10 else asked


async def send(
    client: httpx.AsyncClient,
    sink: str,
    message: Message,
    headers: Mapping[str, str],
    *,
    seconds: float,
    method: str = "POST",
) -> Outcome:
    """Send an event in one attempt; failures are outcomes, not errors."""
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream(method, sink, content=message.body, headers={**headers, **message.headers}) as response,
        ):
            await _read_some(response)
    except TimeoutError:
        return Outcome(0, f"no answer within {seconds:g} seconds")
    except (httpx.HTTPError, httpx.InvalidURL, SinkError, OSError) as error:
        return Outcome(0, str(error) if isinstance(error, SinkError) else _named(error))
    status = response.status_code
    problem = "" if 200 <= status < 300 else f"{status} {response.reason_phrase}".strip()
    return Outcome(status, problem, _retry_after(response))


async def deliver(
    client: httpx.AsyncClient,
    sink: str,
    message: Message,
    headers: Mapping[str, str],
    *,
    seconds: float,
    backoff: Backoff,
) -> tuple[Outcome, int]:
    """Repeat `send` until the sink accepts or refuses the event, or no attempt is left; return the attempts, too."""
    attempts = 0
    while True:
        outcome = await send(client, sink, message, headers, seconds=seconds)
        attempts += 1
        if outcome.delivered or not outcome.again or attempts == backoff.attempts:
            return outcome, attempts
        await asyncio.sleep(outcome.delay(attempts, backoff))


def backoff_of(first: float, attempts: int | None = None) -> Backoff:
    """Return the delays between attempts, with a jitter that spreads the requests of many webhooks."""
    return Backoff(first, LONGEST_BACKOFF, (0.75, 1.25), attempts)


async def _read_some(response: httpx.Response) -> None:
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > RESPONSE:
            return


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), LONGEST_PAUSE)
    try:
        when = parsedate_to_datetime(text).timestamp()
        now = parsedate_to_datetime(response.headers["date"]).timestamp()
    except (ValueError, KeyError, OverflowError):
        return None
    return max(0.0, min(when - now, LONGEST_PAUSE))


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def basic(name: str, password: str) -> str:
    """Return the `Authorization` header of a name and a password."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
