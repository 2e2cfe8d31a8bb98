"""Single cases of channels; random runs of several nodes are in `tests/simulation/test_channels.py`."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.core.channel_map import ChannelMap, channel_of, hashed_home, resolve
from fieldfare.core.core import Core
from fieldfare.core.state import Publication, RequestRefused
from fieldfare.core.take_over import NUMBER_GAP
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import channel_number_of, details_of
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.disk import Disk, Stage
from fieldfare.simulation.topologies import line
from fieldfare.simulation.trace import Delivered

RED, PLAIN = Event({"type": "red"}), Event({"type": "grey"})
AT_B0 = ChannelMap({"red": "b0"})

# Resolution

names = st.text("abcxyz", min_size=1)


@given(st.sets(names), st.sets(names, min_size=1), names)
def test_a_further_host_takes_types_and_moves_no_others(types: set[str], hosts: set[str], more: str) -> None:
    before, after = resolve(types, hosts), resolve(types, {*hosts, more})
    assert all(after[type] in (home, more) for type, home in before.items())
    assert all(hashed_home(type, sorted(hosts, reverse=True)) == home for type, home in before.items())


def test_types_are_divided_among_hosts() -> None:
    homes = resolve([f"type {number}" for number in range(3000)], ["oslo", "rome", "bern"])
    assert min(Counter(homes.values()).values()) > 900


@given(names, names)
def test_a_channel_is_a_type_with_or_without_a_node(type: str, node: str) -> None:
    assert channel_of(type) == (type, "")
    assert channel_of(f"{type}={node}") == (type, node)
    assert channel_of(f"a={type}={node}") == (f"a={type}", node)


# Networks


def network(strategy: str = "covering", nodes: int = 3) -> CoreNetwork:
    made = CoreNetwork(line(nodes), Options(STRATEGIES[strategy], channels=AT_B0))
    made.settle()
    for number in range(nodes):
        client = made.add_client(f"c{number}", f"b{number}")
        if STRATEGIES[strategy].advertisements is not None:
            client.change(m.Advertise("all", EVERYTHING))
        client.change(m.Subscribe("s", EVERYTHING))
    made.settle()
    return made


def got(made: CoreNetwork, client: str) -> list[tuple[str, int, int]]:
    return [
        (one.publisher, one.sequence, one.channel_number)
        for one in made.trace
        if isinstance(one, Delivered) and one.client == client
    ]


@pytest.mark.parametrize("strategy", ["covering", "covering+ads", "flooding"])
def test_all_see_the_order_of_the_home(strategy: str) -> None:
    made = network(strategy)
    for number in range(3):
        made.clients[f"c{number}"].publish([RED, RED])
    made.settle()
    assert got(made, "c0") == got(made, "c1") == got(made, "c2")
    assert [number for _, _, number in got(made, "c2")] == [1, 2, 3, 4, 5, 6]


def test_events_of_other_types_go_straight_and_have_no_number() -> None:
    made = network()
    made.clients["c2"].publish([PLAIN])
    made.settle()
    assert got(made, "c1") == [("c2", 1, 0)]


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("node", ["b0", "b2"])
def test_a_kill_of_home_or_publishers_node_loses_and_repeats_nothing(node: str, stage: Stage) -> None:
    made = network()
    made.kill_later(node, 0, stage, 1, 0.5)
    made.clients["c2"].publish([RED, PLAIN, RED])
    made.settle()
    assert not made.problems
    assert sorted(got(made, "c1")) == [("c2", 1, 1), ("c2", 2, 0), ("c2", 3, 2)]


def test_events_wait_for_a_home_that_is_down() -> None:
    made = network()
    made.kill("b0", seconds=5.0)
    made.clients["c2"].publish([RED])
    made.clock.run(made.clock.now + 2.0)
    assert made.clients["c2"].satisfied  # accepted
    assert got(made, "c2") == []
    made.settle()
    assert got(made, "c2") == got(made, "c1") == [("c2", 1, 1)]


def test_nothing_is_accepted_before_the_home_has_answered() -> None:
    core = Core(Broker("b1"), channels=AT_B0)
    core.presence.attach("ana", "1", 0.0)
    answers = core.publish([Publication("ana", 1, [RED]), Publication("ana", 1, [PLAIN])], 0.0)
    assert isinstance(answers[0], RequestRefused)
    assert str(answers[0]) == "events of the type red are numbered at b0: the node b0 has not answered yet"
    assert answers[1] == 1


def test_settings_that_differ_are_named_and_asked_again() -> None:
    core = Core(Broker("b1"), channels=AT_B0)
    core.presence.attach("ana", "1", 0.0)
    other = Core(Broker("b0"))
    core.envelopes.set_reachable("b2", ["b0"], {"b0": 3})
    core.channels.ask()
    other.channels.receive(m.Envelope("b0", "b1", c.encode(c.JoinChannel("red"))), 0.0)
    (answer,) = [row.value[2] for row in other.drain().rows if row.kind == "parked"]
    core.drain()
    core.channels.receive(m.Envelope("b1", "b0", answer), 0.0)
    (refused,) = core.publish([Publication("ana", 1, [RED])], 0.0)
    assert str(refused) == "events of the type red are numbered at b0: the settings of b0 name no node for it"
    core.expire(0.0, 60.0)
    (asked,) = [row.value[2] for row in core.drain().rows if row.kind == "parked"]
    assert c.decode(asked) == c.JoinChannel("red")


def test_an_answer_of_another_node_counts_for_nothing() -> None:
    core = Core(Broker("b1"), channels=AT_B0)
    core.channels.receive(m.Envelope("b1", "b2", c.encode(c.ChannelOpen("red"))), 0.0)
    assert core.channels.homes.waiting == ["red"]


# The home


def numbered(core: Core, count: int = 1) -> list[int]:
    core.publish([Publication("ana", 0, [RED]) for _ in range(count)], 0.0)
    return [channel_number_of(entry) for entry in core.drain().entries]


def home(disk: Disk | None = None, **options: object) -> Core:
    stored, entries = disk.load() if disk is not None else (None, ())
    core = Core(Broker("b0"), stored, entries, channels=AT_B0, **options)  # type: ignore[arg-type]
    if "ana" not in core.sessions:
        core.presence.attach("ana", "1", 0.0)
    return core


@pytest.mark.parametrize("checkpoint", [False, True])
def test_numbers_continue_after_a_restart(checkpoint: bool) -> None:
    core, disk = home(), Disk()
    core.publish([Publication("ana", 0, [RED, PLAIN, RED])], 0.0)
    disk.write(core.drain())
    if checkpoint:
        core.checkpoint()
        disk.write(core.drain())
        disk.retain(core.low_water())
        assert not disk.log
    assert numbered(home(disk)) == [3]


def test_numbers_jump_where_the_end_of_the_log_may_be_lost() -> None:
    core, disk = home(), Disk()
    core.publish([Publication("ana", 0, [RED, RED])], 0.0)
    disk.write(core.drain())
    assert numbered(home(disk, doubtful=True)) == [NUMBER_GAP + 3]
    core.rewind(1)
    assert numbered(core) == [NUMBER_GAP + 3]


def test_a_new_channel_begins_where_the_settings_say() -> None:
    core = Core(Broker("b0"), channels=ChannelMap({"red": "b0"}, first=1001))
    core.presence.attach("ana", "1", 0.0)
    assert numbered(core, 2) == [1001, 1002]


def test_the_entry_of_an_event_that_left_is_for_no_reader() -> None:
    core = Core(Broker("b1"), channels=AT_B0)
    core.channels.homes.joined["red"] = "b0"
    core.presence.attach("ana", "1", 0.0)
    core.presence.change_filters(m.Subscribe("s", EVERYTHING), "ana", 0.0)
    core.publish([Publication("ana", 1, [RED])], 0.0)
    (entry,) = core.drain().entries
    details = details_of(entry)
    assert (entry.sequence, details.to, details.out, details.channel_home) == (-2, [], [], "b0")
    assert channel_number_of(entry) == 0
