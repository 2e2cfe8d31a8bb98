"""Addresses in settings: hosts, URLs and the origins of web pages."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org", "")]
    [True, True, True, False, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"  # the address of any other name may change with the resolver


def url_problem(url: str, schemes: tuple[str, ...]) -> str | None:
    """Return the reason why a text is not a URL of a node; None: the URL is right."""
    expected = f"write a URL as {schemes[0]}://example.org:7400, with {', '.join(f'{s}://' for s in schemes)}"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"this is not a URL; {expected}"  # the URL may hold a password: here and below nothing quotes it
    if parts.username is not None or parts.password is not None:
        return "a URL must not contain a name or password; a token goes into join_token"
    if "?" in url or "#" in url:
        return "a URL must end with its path, before ? and #; a token goes into join_token"
    if parts.scheme not in schemes or not host or re.search(r"\s", url):
        return f"{url!r} is not valid; {expected}" if "@" not in url else f"this is not valid; {expected}"
    return None


def origin_of(text: str) -> str | None:
    """Return an origin as browsers write it; None if the text is not an origin.

    >>> [origin_of(text) for text in ("https://App.example:443", "http://[::1]:7400", "null", "http://a.example/path")]
    ['https://app.example', 'http://[::1]:7400', None, None]
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#@\\\s]+", text.lower()):
        return None
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, usual) else "")
