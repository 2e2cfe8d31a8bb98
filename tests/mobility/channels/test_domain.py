from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.mobility.channels.domain import Domain

FILTERS = [
    "TRUE",
    "type = 'news'",
    "type = 'news' AND a > 3",
    "type = 'stock' OR a = 1",
    "type IN ('news', 'weather')",
    "NOT type = 'news'",
    "a > 2",
    "type = 5",
]
DOMAIN = Domain(("r0", "r1", "r2"), types=("news", "stock"))


@given(st.sampled_from(FILTERS), st.sampled_from(["news", "stock", "weather", 5, None]), st.integers(0, 5))
def test_whatever_a_filter_matches_is_in_one_of_its_channels(text: str, type: object, a: int) -> None:
    filter = parse(text)
    event = Event({"a": a} if type is None else {"type": type, "a": a})
    assert not filter.matches(event) or DOMAIN.channel_of(event) in DOMAIN.channels_of(filter)


def test_a_filter_that_says_its_type_concerns_one_channel() -> None:
    assert DOMAIN.channels_of(parse("type = 'news' AND a > 3")) == ("news",)
    assert DOMAIN.channels_of(parse("type = 'weather'")) == ("",)


@given(st.integers(1, 6))
def test_with_one_more_server_names_go_to_it_or_stay(servers: int) -> None:
    few = Domain(tuple(f"r{i}" for i in range(servers)))
    more = replace(few, servers=(*few.servers, "new"))
    names = [f"name {i}" for i in range(300)]
    moved = [name for name in names if few.home(name) != more.home(name)]
    assert all(more.home(name) == "new" for name in moved)
    assert 0 < len(moved) < 3 * len(names) / (servers + 1)


@given(st.integers(0, 1000), st.integers(1, 5))
def test_stamps_grow_and_are_nobody_elses(clock: int, count: int) -> None:
    domain = Domain(tuple(f"r{i}" for i in range(count)))
    stamps = [domain.stamp_after(clock, server) for server in domain.servers]
    assert len(set(stamps)) == count
    assert sorted(stamps) == list(range(clock + 1, clock + 1 + count))
