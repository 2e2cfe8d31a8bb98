"""The contest: nodes deliver what they should, a contender that does not is found out, the cheap client speaks right."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from fieldfare_lab.node import contest, fieldfare_node, sessions, websocket
from fieldfare_lab.node import load as loads
from fieldfare_lab.node.client_processes import Contender, FiltersBySubscriber, Send, Take
from fieldfare_lab.node.servers import Server, free_ports

SMALL = contest.Effort(events=300, seconds=10.0, rounds=2)


@pytest.mark.usefixtures("swift")
@pytest.mark.parametrize(
    "name", [pytest.param("durable", marks=pytest.mark.long), "durable, batches of 100, fieldfare.client"]
)
def test_a_node_delivers_what_it_should(name: str) -> None:
    variant = next(one for one in fieldfare_node.VARIANTS if one.name == name)
    load = loads.make(1, filters=100, subscribers=10)
    told: list[str] = []
    (result,) = contest.contend(load, [fieldfare_node.contender(variant)], SMALL, told.append)
    assert result.correct
    assert (result.filters, result.events, result.deliveries) == (100, 300, 3000)
    assert result.cpu_seconds > 0
    assert 0 < result.idle_mb < 1000
    assert result.p50_ms is not None
    assert result.p99_ms is not None
    assert 0 < result.p50_ms <= result.p99_ms
    assert len(told) == contest.steps(1, SMALL.rounds)


# A contender without a server: it lets a file stand for the network, one line an event.


@contextlib.contextmanager
def no_server() -> Iterator[Server]:
    yield Server(free_ports(1)[0], (os.getpid(),), 1.0)


async def read_file(folder: Path, lost: int, port: int, by_subscriber: FiltersBySubscriber, take: Take) -> object:
    load = loads.make(1, filters=20, subscribers=4)
    receivers = [event.receivers for event in loads.events(load, 100)]
    path = folder / str(port)
    path.touch()

    async def follow() -> None:
        with path.open() as file:
            while True:
                for line in file:
                    number, at = map(int, line.split())
                    for one in by_subscriber:
                        if one in receivers[number] and number != lost:
                            take(one, number, at)
                await asyncio.sleep(0.005)

    return asyncio.create_task(follow())


async def write_file(folder: Path, port: int, mine: Sequence[loads.LoadEvent]) -> Send:
    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        with (folder / str(port)).open("a") as file:
            file.writelines(f"{mine[place].number} {at}\n" for place, at in zip(range(start, stop), due, strict=True))

    return send


@pytest.mark.usefixtures("swift")
def test_a_contender_that_loses_an_event_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fieldfare_lab.node.client_processes.PATIENCE", 0.3)
    load = loads.make(1, filters=20, subscribers=4)
    effort = contest.Effort(events=100, seconds=10.0, rounds=1)
    good, bad = (
        Contender(name, no_server, partial(read_file, tmp_path, lost), partial(write_file, tmp_path), batch=7)
        for name, lost in (("Fieldfare, by file", -1), ("lossy", 60))
    )
    results = contest.contend(load, [good, bad], effort)
    assert [(one.events, one.correct) for one in results] == [(100, True), (100, False)]
    assert results[0].deliveries == 100 * 4
    assert results[0].slow == results[1].slow
    (line,) = contest.ratios(results)
    assert "20 filters" in line
    assert "lossy" in line
    console = Console(width=250)
    with console.capture() as captured:
        console.print(contest.table(results))
    assert captured.get().count("WRONG") == 1


def test_without_a_rival_there_is_no_ratio() -> None:
    result = loads.Result(
        contender="Fieldfare, x", filters=10, events=10, deliveries=10, seconds=1.0, cpu_seconds=1.0,
        client_cpu_seconds=0.0, other_cpu_seconds=0.0, idle_mb=1.0, busy_mb=1.0, correct=True,
    )  # fmt: skip
    assert contest.ratios([result]) == []
    rival = msgspec.structs.replace(result, contender="other", events=2, cpu_seconds=0.5)
    assert contest.ratios([result, rival]) == [
        "Fieldfare, x, 10 filters: 5.0 × as many events a second as other; 2.5 × for each second of CPU"
    ]


@given(st.binary(max_size=300) | st.integers(65_530, 65_540).map(bytes))
def test_frames_of_clients_are_read_by_others(payload: bytes) -> None:
    stream = StreamReader()
    stream.feed_data(websocket.packed(2, payload))
    parsing = Frame.parse(stream.read_exact, mask=True)
    with pytest.raises(StopIteration) as stopped:
        next(parsing)
    assert (stopped.value.value.opcode, bytes(stopped.value.value.data)) == (Opcode.BINARY, payload)


@given(st.lists(st.binary(max_size=300) | st.just(bytes(70_000)), max_size=4), st.integers(0, 100))
def test_frames_of_others_are_read_wherever_they_are_cut(payloads: list[bytes], short: int) -> None:
    data = b"".join(Frame(Opcode.BINARY, payload).serialize(mask=False) for payload in payloads)
    cut = data[: max(0, len(data) - short)]
    found, at = [], 0
    while (one := websocket.unpacked(cut, at)) is not None:
        kind, payload, at = one
        assert kind == 2
        found.append(payload)
    assert found == payloads[: len(found)]
    assert found == payloads or short > 0


def test_a_node_that_is_none_is_an_error() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n")
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionError, match="404"):
            await websocket.opened(port, lambda _: None)
        server.close()
        await server.wait_closed()

    asyncio.run(go())


@pytest.mark.usefixtures("swift")
def test_idle_sessions_cost_little_and_are_reached() -> None:
    told: list[str] = []
    found = sessions.measure(60, quiet=0.2, step=told.append)
    assert (found.reached, found.tried, found.sessions) == (4, 4, 60)
    assert 0 < found.full_mb < found.idle_mb + 60  # a megabyte each; meanwhile the system may take pages back
    assert found.idle_cores < 1
    assert len(told) == sessions.steps(60)


def test_more_sessions_than_files_are_refused() -> None:
    with pytest.raises(ValueError, match="ulimit"):
        sessions.measure(sessions.raise_connection_limit() + 1)
