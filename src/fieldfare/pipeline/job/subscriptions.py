"""Subscriptions that change while a pipeline runs: those of nodes, or of a file, written to a catalogue.

`followed` checks the subscriptions every few seconds; changes become a new version, which the next micro-batch uses.
The subscriptions of a node that does not answer stay: a restart of a node loses no events.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from urllib.request import Request, urlopen

from pyspark.sql import SparkSession

from fieldfare import retry
from fieldfare.filters import parse
from fieldfare.filters.dialects import Dialect
from fieldfare.pipeline.job.config import Match
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription, SubscriptionError
from fieldfare.pipeline.match.subscriptions import read_subscriptions, subscriptions_in
from fieldfare.retry import Backoff

_PAGE: Final = 1000
_OVERLAP: Final = 100
_PASSES: Final = 5
_TIMEOUT: Final = 10
_BACKOFF: Final = Backoff(0.5, 8.0, attempts=6)


def is_node(address: str) -> bool:
    """Tell whether a text is the HTTP address of a node, and not a path."""
    return address.startswith(("http://", "https://"))


def of_node(url: str, token: str = "") -> list[Subscription]:
    """Return the live subscriptions at a node; the owner is the session."""
    for _ in range(_PASSES):
        if (found := _listed(url, token)) is not None:
            named = [Subscription(_id(one), one["filter"], one["session"]) for one in found]
            return [*{one.id: one for one in named}.values()]  # who came back while we read is there twice
    raise OSError("its subscriptions change faster than they can be read")


def _listed(url: str, token: str) -> list[dict[str, str]] | None:
    """Return all subscriptions, page by page; None if changes meanwhile prevent that.

    When a subscription is removed, those behind it move up. So pages overlap, and the reading goes on after the last
    known subscription.
    """
    found: list[dict[str, str]] = []
    start = 0
    while True:
        page = _page(url, token, start)
        items, end = page["items"], start + len(page["items"])
        if found and found[-1] not in items:
            return None
        new = items[items.index(found[-1]) + 1 :] if found else items
        found += new
        if end >= page["total"]:
            return found
        if not new:
            return None
        start = end - _OVERLAP


def _page(url: str, token: str, start: int) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"{url.rstrip('/')}/admin/subscriptions?limit={_PAGE}&offset={start}"
    with urlopen(Request(address, headers=headers), timeout=_TIMEOUT) as answer:  # noqa: S310 - http(s), see is_node
        return json.load(answer)


def _id(one: dict[str, str]) -> str:
    """Return session and id as a unique id: the first slash separates the two."""
    return f"{quote(one['session'], safe=':')}/{one['id']}"


@contextmanager
def followed(spark: SparkSession, match: Match, state: Path, told: Callable[[str], None]) -> Iterator[str | Path]:
    """Provide the path of a catalogue that follows the subscriptions; `told` gets warnings."""
    given = match.subscriptions
    if isinstance(given, str) and not is_node(given) and catalogue.is_catalogue(given):
        yield given
        return
    path = state / "subscriptions"
    look = _looking(spark, match, path)
    _first(look)
    end = threading.Event()

    def keep_up() -> None:
        while not end.wait(match.refresh):
            try:
                look()
            except Exception as error:  # noqa: BLE001 - whatever it is, of Spark, the network or a file: look again later
                told(f"the subscriptions stay as they are: {_in_a_line(error)}")

    thread = threading.Thread(target=keep_up, name="fieldfare-subscriptions", daemon=True)
    thread.start()
    try:
        yield path
    finally:
        end.set()
        thread.join()


def _in_a_line(error: Exception) -> str:
    """Return the message of an error in a line, without Java's stack trace."""
    return " ".join(str(error).partition("\n\tat ")[0].split())


def _first(look: Callable[[], None]) -> None:
    """Check the subscriptions for the first time, with patience for a node that is just starting."""
    try:
        return retry.call(look, _BACKOFF, OSError)
    except OSError as error:
        raise SubscriptionError(f"the subscriptions cannot be had: {error}") from None


def _looking(spark: SparkSession, match: Match, path: Path) -> Callable[[], None]:
    """Return a function that checks the subscriptions, and writes a version if they have changed."""
    if isinstance(match.subscriptions, str) and not is_node(match.subscriptions):
        return _at_file(spark, match.subscriptions, Dialect(match.dialect), path)
    return _at_nodes(
        [match.subscriptions] if isinstance(match.subscriptions, str) else match.subscriptions, match, path
    )


def _at_file(spark: SparkSession, file: str, dialect: Dialect, path: Path) -> Callable[[], None]:
    seen = path.with_name(f"{path.name}.seen")  # of which file the catalogue was made, and when that was written

    def look() -> None:
        stamp = _stamp(Path(file), dialect)
        if not catalogue.is_catalogue(path) or not seen.exists() or seen.read_text() != stamp:
            catalogue.write_version(path, subscriptions_in(read_subscriptions(spark, file), dialect))
            seen.write_text(stamp)

    return look


def _stamp(path: Path, dialect: Dialect) -> str:
    files = [path] if path.is_file() else sorted(path.rglob("*.*"))
    return repr((dialect, [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]))


def _at_nodes(urls: list[str], match: Match, path: Path) -> Callable[[], None]:
    known: dict[str, list[Subscription]] = {}
    held: dict[str, Subscription] | None = None

    def look() -> None:
        nonlocal held
        failed: OSError | None = None
        for url in urls:
            try:
                known[url] = _understood(of_node(url, match.token))
            except (OSError, HTTPException, json.JSONDecodeError) as error:  # the last two: cut off in the middle
                failed = OSError(f"{url} does not answer: {error}")
        if all(url in known for url in urls):
            named = {_named(one, url, urls): one for url in urls for one in known[url]}
            wanted = {id: one._replace(id=id) for id, one in named.items()}
            _bring(path, held, wanted)
            held = wanted
        if failed is not None:
            raise failed

    return look


def _understood(given: list[Subscription]) -> list[Subscription]:
    """Parse the filters; a node of a newer version may have functions that this version lacks."""
    found = []
    for one in given:
        try:
            found.append(one._replace(filter=parse(str(one.filter))))
        except ValueError as error:
            raise SubscriptionError(f"subscription {one.id!r}: {error}") from None
    return found


def _named(one: Subscription, url: str, urls: list[str]) -> str:
    """Return the id, with the node's address if there are several nodes, which may have sessions of the same name."""
    return f"{one.id}" if len(urls) == 1 else f"{one.id}@{url.partition('://')[2]}"


def _bring(path: Path, held: dict[str, Subscription] | None, wanted: dict[str, Subscription]) -> None:
    """Write a version: with all subscriptions at first (held: None), later with the changes."""
    if held is None:
        catalogue.write_version(path, wanted.values())
    elif wanted != held:
        new = [one for id, one in wanted.items() if held.get(id) != one]
        catalogue.amend(path, new, [id for id in held if id not in wanted])
