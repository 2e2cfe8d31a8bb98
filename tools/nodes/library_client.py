"""A client of whatever `fieldfare` the environment has, older or newer; `upgrade` starts it as a process.

    library_client.py URL SESSION subscribe FILTER    # writes the events, a line of JSON each
    library_client.py URL SESSION publish             # publishes until the input ends; writes [published, accepted]

Only names that the client has long had are used here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fieldfare.client.client import Client, connect

TEXTS = ("", "quiet", "ärger", "x" * 200, "line\nbreak", "🐦")
"""those of `soak`, which an older `fieldfare` cannot import"""


def say(what: Any) -> None:
    """Write a line for the judge."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def subscribe(client: Client, filter: str) -> None:
    """Write what comes; the library acknowledges what is written."""
    async with client.subscribe(filter, id="s", keep=True) as events:
        async for event in events:
            say(dict(event.tree))


async def publish(client: Client, session: str) -> None:
    """Publish numbered events until the input ends; then wait until all are safe, and say so."""
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    published = accepted = 0

    def heard(answer: bool | Exception) -> None:
        nonlocal accepted
        accepted += answer is True
        say([published, accepted] if answer is True else str(answer))

    while not ended.done():
        published += 1
        text = TEXTS[published % len(TEXTS)]
        event = {"by": session, "n": published, "k": published % 5, "text": text}
        client.publish_soon(event).add_callback(heard)
        await asyncio.sleep(0.02)
        await client.wait_for_capacity()
    await client.drain()
    say("the end")
    await asyncio.Event().wait()


async def main(url: str, session: str, command: str, *arguments: str) -> None:
    """Find the node, which may be on its way, and do what is asked for."""
    client = None
    while client is None:
        try:
            client = await connect(url, session=session).__aenter__()
        except OSError:
            await asyncio.sleep(0.1)
    await (subscribe(client, *arguments) if command == "subscribe" else publish(client, session))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
