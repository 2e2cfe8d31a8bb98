from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest
from tests.client.nodes import node
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.errors import ConnectionLost, Refused


@contextlib.contextmanager
def node_elsewhere(**settings: str) -> Iterator[str]:
    """A node in a thread of its own: its URL."""
    loop = asyncio.new_event_loop()
    found: list[str] = []
    ready, over = threading.Event(), asyncio.Event()

    async def main() -> None:
        async with node(settings=settings) as service:
            found.append(service.hood.url)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert ready.wait(10)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


class Quote(msgspec.Struct):
    symbol: str
    price: float


@pytest.mark.parametrize("json", [False, True])
def test_everything_without_await(json: bool) -> None:
    with node_elsewhere() as url, ff.connect_sync(url, session="ana", json=json) as client:
        assert (client.node, client.session, client.closed) == ("a", "ana", False)
        with client.subscribe("price > 0", timeout=0.3) as quotes:
            assert client.publish({"price": 1})
            assert client.publish_batch([{"price": 2}, {"price": 3}]) == 2
            futures = [client.publish_soon({"price": n}) for n in range(4, 10)]
            assert futures[-1].result(PATIENCE)
            client.drain()
            with client.transaction() as tx:
                tx.publish({"price": 10})
            with contextlib.suppress(ZeroDivisionError), client.transaction() as tx:
                tx.publish({"price": 11})
                raise ZeroDivisionError
            assert [quotes.next(PATIENCE)["price"] for _ in range(10)] == list(range(1, 11))
            assert list(quotes) == []  # it ends when nothing comes for a while
            with pytest.raises(TimeoutError):
                quotes.next(0.01)
            client.publish({"price": 12})
            while not (got := list(quotes.deliveries())):
                pass
            for delivery in got:
                assert delivery.event == {"price": 12}
                assert delivery.position == 11
                delivery.acknowledge()
        with client.subscribe("price > 0", type=Quote, since=1) as typed:
            client.publish(Quote("IBM", 5))
            with pytest.raises(ValueError, match="position 1 is no Quote"):
                typed.next(PATIENCE)
        with client.advertise("price > 0"), pytest.raises(Refused), client.subscribe("price <"):
            pass
        assert client.interest() == ()
        with pytest.raises(TimeoutError):
            client.request({"type": "rfq"}, timeout=0.1)
        client.leave()
        assert client.closed


def test_refusals_of_what_was_posted() -> None:
    with node_elsewhere(strategy="covering+ads") as url:
        with ff.connect_sync(url) as client:
            with pytest.raises(Refused):
                client.publish_soon({"x": 1}).result(PATIENCE)
            client.drain()  # somebody knows already
            client.publish_soon({"x": 1})
            with pytest.raises(Refused):
                client.drain()
        with pytest.raises(ConnectionLost), ff.connect_sync(f"ws://127.0.0.1:{free_port()}"):
            pass


def test_only_what_was_handed_out_is_done_with() -> None:
    with node_elsewhere() as url:
        with ff.connect_sync(url, session="ana") as client, client.subscribe("x >= 0", keep=True) as events:
            client.publish_batch([{"x": x} for x in range(300)])
            assert [events.next(PATIENCE)["x"] for _ in range(150)] == list(range(150))
        with ff.connect_sync(url, session="ana") as client, client.subscribe("x >= 0") as events:
            assert [events.next(PATIENCE)["x"] for _ in range(151)] == list(range(149, 300))


def test_asking_across_threads() -> None:
    with node_elsewhere() as url, ff.connect_sync(url) as asker, ff.connect_sync(url) as other:
        ready = threading.Event()

        def serve() -> None:
            with other.subscribe("type = 'rfq'") as requests:
                ready.set()
                for request in requests:
                    other.reply(request, {"price": 7})
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        assert ready.wait(5)
        assert asker.request({"type": "rfq"})["price"] == 7
        thread.join()


def test_nobody_there_and_not_started() -> None:
    with pytest.raises(ConnectionLost), ff.connect_sync(f"ws://127.0.0.1:{free_port()}"):
        pass
    with pytest.raises(RuntimeError, match=r"with ff\.connect_sync"):
        ff.connect_sync("ws://127.0.0.1:1").publish({})


PROGRAM = """
import sys
import fieldfare as ff

with ff.connect_sync(sys.argv[1]) as client, client.subscribe("x > 0") as events:
    print("waiting", flush=True)
    try:
        for event in events:
            pass
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_interrupts() -> None:
    with node_elsewhere() as url:
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        time.sleep(0.5)  # it waits by then, even on a busy machine
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=PATIENCE)
        assert (out, err, program.returncode) == ("interrupted\n", "", 0)
