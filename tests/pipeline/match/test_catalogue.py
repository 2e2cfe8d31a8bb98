"""Catalogues against a dictionary of subscriptions, whatever is published, amended and pinned."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare import parse
from fieldfare.objects import Objects
from fieldfare.pipeline.match import catalogue, copies, versions
from fieldfare.pipeline.match.catalogue import Subscription, SubscriptionError

FILTERS = ["x = 1", "x > 2", "y = 'a'", "x < 3 AND y = 'b'", "NOT EXISTS y", "lower(y) = 'a'", "TRUE"]
EVENTS: list[dict[str, Any]] = [{"x": 1}, {"x": 5, "y": "A"}, {"y": "a"}, {"x": 2, "y": "b"}]
changes = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(FILTERS), max_size=4),
        st.sets(st.sampled_from("abcdef")),
    ),
    max_size=4,
)


@settings(max_examples=25)
@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(FILTERS)), changes)
def test_amended_versions_match_like_the_dictionary(
    tmp_path_factory: pytest.TempPathFactory, first: dict[str, str], then: list[tuple[dict[str, str], set[str]]]
) -> None:
    path = tmp_path_factory.mktemp("catalogue")
    held = dict(first)
    catalogue.write_version(path, [Subscription(id, text, f"owner of {id}") for id, text in held.items()])
    for added, removed in [({}, set[str]()), *then]:
        version = catalogue.amend(path, [Subscription(id, text, id) for id, text in added.items()], removed)
        held = {id: text for id, text in held.items() if id not in removed} | added
        opened = catalogue.opened(str(path), version)
        assert opened.about.count == len(held)
        for event in EVENTS:
            found = [opened.ids[number].as_py() for number in opened.index.match(event)]
            assert sorted(found) == sorted(id for id, text in held.items() if parse(text).matches(event))
        assert version == catalogue.current(path)


def test_ids_are_texts_or_integers_of_one_kind(tmp_path: Path) -> None:
    with pytest.raises(SubscriptionError, match="all texts or all integers"):
        catalogue.write_version(tmp_path, [Subscription("a", "x = 1"), Subscription(2, "x = 1")])
    with pytest.raises(SubscriptionError, match="row 1: a subscription needs an id"):
        catalogue.write_version(tmp_path, [Subscription(None, "x = 1")])  # type: ignore[arg-type]
    for id in (2**63, 1.5, True):
        with pytest.raises(SubscriptionError, match=f"row 1: .* a text or an integer of 64 bits, not {id}"):
            catalogue.write_version(tmp_path, [Subscription(id, "x = 1")])  # type: ignore[arg-type]
    assert not catalogue.is_catalogue(tmp_path)
    with pytest.raises(SubscriptionError, match="there is no catalogue of subscriptions at"):
        catalogue.current(tmp_path)


def _pin(path: str, moment: int) -> int:
    return catalogue.pinned(path, moment)


def test_all_tasks_of_a_micro_batch_pin_the_same_version(tmp_path: Path) -> None:
    """Four processes ask for two hundred moments while versions are published."""
    path = str(tmp_path)
    catalogue.write_version(path, [Subscription(1, "x = 1")])
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        asked = [pool.apply_async(_pin, (path, n // 4)) for n in range(400)]
        for n in range(20):
            catalogue.amend(path, [Subscription(n, f"x = {n}")], keep=2)
        found = [one.get(60) for one in asked]
    assert all(len(set(found[n : n + 4])) == 1 for n in range(0, 400, 4))
    assert all(catalogue.pinned(path, n // 4) == found[n] for n in range(400))
    assert set(found) <= set(catalogue.versions(path)), "a pinned version was removed"


def test_a_version_that_is_gone_says_what_to_do(tmp_path: Path) -> None:
    for n in range(3):
        catalogue.write_version(tmp_path, [Subscription(n, "x = 1")], keep=1)
    with pytest.raises(SubscriptionError, match=r"version 1 of the catalogue .* is gone: publish with a larger `keep`"):
        catalogue.opened(str(tmp_path), 1)


def ids(path: str | Path, version: int | None = None) -> list[Any]:
    """The ids that a version has; not those of gaps."""
    found = catalogue.opened(str(path), version or catalogue.current(path)).ids.to_pylist()
    return sorted(id for id in found if id is not None)


def test_ids_change_their_kind_only_when_there_are_none(tmp_path: Path) -> None:
    """A stream that runs has a column of integers, or of texts."""
    catalogue.write_version(tmp_path, [])
    catalogue.amend(tmp_path, [Subscription(5, "x = 1")])
    other = "are integers, and running streams depend on it; these are texts: publish them at another path"
    for change in (catalogue.write_version, catalogue.amend):
        with pytest.raises(SubscriptionError, match=other):
            change(tmp_path, [Subscription("five", "x = 1")])
    with pytest.raises(SubscriptionError, match=r"'5' cannot be removed: the ids in the catalogue .* are integers"):
        catalogue.amend(tmp_path, remove=["5"])
    assert ids(tmp_path) == [5]
    for version in [catalogue.amend(tmp_path, remove=[5, 6]), catalogue.write_version(tmp_path, [])]:
        opened = catalogue.opened(str(tmp_path), version)
        assert (opened.about.count, str(opened.ids.type)) == (0, "int64")
    catalogue.amend(tmp_path, [Subscription("five", "x = 1")], [5])
    assert ids(tmp_path) == ["five"]
    assert catalogue.opened(str(tmp_path), catalogue.current(tmp_path)).index.match({"x": 1}) == [0]


def test_what_is_amended_at_the_same_time_is_all_there(tmp_path: Path) -> None:
    """Four threads; few versions are kept, so that some are forgotten while others read them."""
    catalogue.write_version(tmp_path, [Subscription("base", "x = 0")])

    def change(thread: int) -> list[int]:
        return [catalogue.amend(tmp_path, [Subscription(f"{thread}.{n}", "x = 1")], keep=1) for n in range(15)]

    with ThreadPoolExecutor(4) as threads:
        made = [version for some in threads.map(change, range(4)) for version in some]
    assert sorted(made) == list(range(2, 62))
    assert ids(tmp_path) == sorted(["base", *(f"{thread}.{n}" for thread in range(4) for n in range(15))])
    assert catalogue.versions(tmp_path) == [61]
    assert len(list((tmp_path / "files").iterdir())) == 1, "a draft is left"


def test_publishers_do_not_disturb_each_other(tmp_path: Path) -> None:
    def change(thread: int) -> None:
        for n in range(40):
            catalogue.write_version(tmp_path, [Subscription(f"{thread}.{n}", "x = 1")], keep=2)
            catalogue.pinned(tmp_path, 1000 * thread + n)

    with ThreadPoolExecutor(3) as threads:
        assert [*threads.map(change, range(3))] == [None] * 3
    assert catalogue.current(tmp_path) == 120


def test_a_catalogue_made_anew_at_its_path_is_not_taken_for_the_old(tmp_path: Path) -> None:
    path = tmp_path / "catalogue"
    catalogue.write_version(path, [Subscription("old", "x = 1")])
    assert ids(path, 1) == ["old"]
    shutil.rmtree(path)
    assert ids(path, 1) == ["old"], "who has it open keeps it"
    catalogue.write_version(path, [Subscription("new", "y = 1")])
    assert ids(path, 1) == ["new"]
    catalogue.amend(path, [Subscription("more", "z = 1")])
    assert catalogue.opened(str(path), 2).about.fields == ["y", "z"]


def test_a_version_is_not_forgotten_while_it_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others publish after the version for a micro-batch is chosen, before its pin is there."""
    some = [Subscription("a", "x = 1")]
    catalogue.write_version(tmp_path, some)
    others = threading.Thread(target=lambda: [catalogue.write_version(tmp_path, some, keep=1) for _ in range(9)])
    current = catalogue.current

    def slow(path: str | Path) -> int:
        found = current(path)
        if others.ident is None:
            others.start()
            others.join()
        return found

    monkeypatch.setattr(catalogue, "current", slow)
    version = catalogue.pinned(tmp_path, 123)
    assert version == 10, "the version had gone before the pin, so a newer one is pinned"
    assert ids(tmp_path, version) == ["a"]
    assert catalogue.versions(tmp_path) == [10]
    assert catalogue.pinned(tmp_path, 123) == 10


def test_a_version_that_is_held_stays_although_its_pin_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others publish after a micro-batch holds a version, before its pin is there."""
    some = [Subscription("a", "x = 1")]
    catalogue.write_version(tmp_path, some)
    hold = versions._hold

    def slow(place: Objects, version: int) -> bool:
        held = hold(place, version)
        for _ in range(9):
            catalogue.write_version(tmp_path, some, keep=1)
        return held

    monkeypatch.setattr(versions, "_hold", slow)
    assert catalogue.pinned(tmp_path, 123) == 1
    assert ids(tmp_path, 1) == ["a"]
    assert catalogue.versions(tmp_path) == [1, 10]


def test_a_slow_writer_does_not_take_a_number_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue.write_version(tmp_path, [Subscription("a", "x = 1")])
    put = Objects.put
    slow = True

    def late(place: Objects, name: str, content: bytes | Path) -> None:
        nonlocal slow
        if name.endswith(catalogue.INDEX) and slow:
            slow = False
            for n in range(4):
                catalogue.amend(tmp_path, [Subscription(f"b{n}", "x = 1")], keep=1)
        put(place, name, content)

    monkeypatch.setattr(Objects, "put", late)
    assert catalogue.amend(tmp_path, [Subscription("c", "x = 1")]) == 6
    assert ids(tmp_path) == ["a", "b0", "b1", "b2", "b3", "c"]


@pytest.mark.parametrize("up", [60, 10**7], ids=["a machine just started", "a machine that is long up"])
def test_pins_are_kept_for_a_day_and_then_while_few_are_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, up: float
) -> None:
    """Two streams share a catalogue; one is down, its last micro-batch half done."""
    monkeypatch.setattr(versions, "_PINS_KEPT", 10)
    monkeypatch.setattr(versions, "time", SimpleNamespace(time=time.time, monotonic=lambda: up))
    some = [Subscription("a", "x = 1")]
    catalogue.write_version(tmp_path, some)
    assert catalogue.pinned(tmp_path, 99) == 1

    def after(hours: int, then: Callable[[], object]) -> int:
        for file in [file for file in tmp_path.rglob("*") if file.is_file()]:
            at = file.stat().st_mtime - 3600 * hours
            os.utime(file, (at, at))
        versions._touched.clear()
        versions._trimmed.clear()
        then()
        return len([*(tmp_path / "pins").iterdir()])

    def batches(first: int) -> Callable[[], object]:
        return lambda: [catalogue.pinned(tmp_path, first + n) for n in range(15)]

    assert after(0, batches(100)) == 16
    assert after(20, lambda: catalogue.write_version(tmp_path, some, keep=1)) == 16
    assert catalogue.pinned(tmp_path, 99) == 1, "pushed out by the other's"
    assert catalogue.versions(tmp_path) == [1, 2]
    assert after(5, lambda: None) == 16
    assert after(0, batches(200)) == 10 + 14, "nobody publishes, and old pins go with the first new one"
    assert after(30, lambda: catalogue.write_version(tmp_path, some, keep=1)) == 10
    assert catalogue.versions(tmp_path) == [2, 3], "held by the batches 30 hours ago, and the newest"
    assert after(50, lambda: catalogue.write_version(tmp_path, some, keep=1)) == 10
    assert catalogue.versions(tmp_path) == [2, 4], "fewer than ten pins are newer"
    assert after(0, batches(300)) == 24
    assert after(26, lambda: catalogue.write_version(tmp_path, some, keep=1)) == 10
    assert catalogue.versions(tmp_path) == [4, 5]
    assert {file.name for file in (tmp_path / "versions").iterdir()} == {f"v000000000{n}.json" for n in (2, 4, 5)}


def test_drafts_of_writers_that_were_killed_are_deleted_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [Subscription("a", "x = 1")]
    catalogue.write_version(tmp_path, some)

    def kill(*_: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(versions, "publish", kill)
        with pytest.raises(KeyboardInterrupt):
            catalogue.write_version(tmp_path, some)
    catalogue.write_version(tmp_path, some)
    assert len(list((tmp_path / "files").iterdir())) == 3
    for file in [file for file in tmp_path.rglob("*") if file.is_file()]:
        os.utime(file, (1e9, 1e9))
    catalogue.write_version(tmp_path, some)
    assert len(list((tmp_path / "files").iterdir())) == 3
    assert ids(tmp_path, 1) == ids(tmp_path, 2) == ["a"]


def test_a_catalogue_in_a_bucket(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = f"{s3}/subscriptions"
    assert not catalogue.is_catalogue(place)
    assert catalogue.write_version(place, [Subscription("a", "x = 1")]) == 1
    assert catalogue.pinned(place, 5) == 1
    for n in range(3):
        assert catalogue.amend(place, [Subscription(f"b{n}", "y = 1")], keep=1) == n + 2
    assert (catalogue.pinned(place, 5), catalogue.pinned(place, 6)) == (1, 4)
    assert catalogue.versions(place) == [1, 4]
    fetched: list[str] = []
    fetch = Objects.fetch

    def told(objects: Objects, name: str, to: Path) -> None:
        fetched.append(name)
        fetch(objects, name, to)

    monkeypatch.setattr(Objects, "fetch", told)
    shutil.rmtree(tmp_path / "fieldfare")  # another machine has no copies yet
    for _ in range(2):  # and two of its processes
        catalogue._mapped.cache_clear()
        assert catalogue.opened(place, 4).index.match({"y": 1}) == [1, 2, 3]
        assert len(fetched) == 2, "once a machine"
    assert ids(place, 4) == ["a", "b0", "b1", "b2"]
    with pytest.raises(SubscriptionError, match=r"version 2 of the catalogue s3://.* is gone"):
        catalogue.opened(place, 2)


def test_a_damaged_object_is_not_mapped(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    catalogue.write_version(s3, [Subscription("a", "x = 1")])
    place = Objects(s3)
    (index,) = [one.name for one in place.listed("files") if one.name.endswith(catalogue.INDEX)]
    place.put(index, b"something else")
    with pytest.raises(copies.CopyError, match="is damaged: its SHA-256 is"):
        catalogue.opened(s3, 1)
