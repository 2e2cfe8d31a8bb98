"""Catalogues against a dictionary of subscriptions, whatever is published, amended and pinned."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare import parse
from fieldfare.pipeline import catalogue
from fieldfare.pipeline.catalogue import Subscription, SubscriptionError

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
    catalogue.publish(path, [Subscription(id, text, f"owner of {id}") for id, text in held.items()])
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
        catalogue.publish(tmp_path, [Subscription("a", "x = 1"), Subscription(2, "x = 1")])
    with pytest.raises(SubscriptionError, match="row 1: a subscription needs an id"):
        catalogue.publish(tmp_path, [Subscription(None, "x = 1")])  # type: ignore[arg-type]
    assert not catalogue.is_catalogue(tmp_path)
    with pytest.raises(SubscriptionError, match="there is no catalogue of subscriptions at"):
        catalogue.current(tmp_path)


def _pin(path: str, moment: int) -> int:
    return catalogue.pinned(path, moment)


def test_all_tasks_of_a_micro_batch_pin_the_same_version(tmp_path: Path) -> None:
    """Four processes ask for two hundred moments while versions are published."""
    path = str(tmp_path)
    catalogue.publish(path, [Subscription(1, "x = 1")])
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
        catalogue.publish(tmp_path, [Subscription(n, "x = 1")], keep=1)
    with pytest.raises(SubscriptionError, match=r"version 1 of the catalogue .* is gone: publish with a larger `keep`"):
        catalogue.opened(str(tmp_path), 1)
