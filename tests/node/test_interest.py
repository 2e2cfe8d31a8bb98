"""What anybody wants, told to those who ask: right at any time, and at no cost to those who subscribe."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node.talking import settings, talking, until

from fieldfare.core.interest import Roots, View, inside
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.node import interest as module
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol import messages as m

SOME = [parse(text) for text in ("x > 1", "x > 2", "x > 3", "x = 4", "x = 4 AND y = 1", "y = 1", "y > 0", "z = 1")]
sets = st.sets(st.sampled_from(SOME))


def roots(filters: set[Filter]) -> set[Filter]:
    return {one for one in filters if not any(other != one and other.covers(one) for other in filters)}


@given(st.lists(sets, max_size=5))
def test_roots_are_right_whatever_comes_and_goes(steps: list[set[Filter]]) -> None:
    kept = Roots()
    for wanted in steps:
        kept.update(set(wanted))
        assert kept.found == roots(wanted)


@given(sets, st.sampled_from([*SOME, True, False]))
def test_nothing_is_told_beyond_what_one_may_publish(wanted: set[Filter], publish: Filter | bool) -> None:
    view = View(publish)
    view.show(roots(wanted))
    told = [parse(text) for text in view.texts]
    for values in ({"x": x, "y": y, "z": z} for x in range(6) for y in range(3) for z in range(2)):
        may = publish is True or (isinstance(publish, Filter) and publish.matches(values))
        is_wanted = any(one.matches(values) for one in wanted)
        assert any(one.matches(values) for one in told) == (may and is_wanted)
    assert all(inside(one, publish) == one for one in told)


def test_two_filters_that_cover_each_other_do_not_hide_each_other() -> None:
    class Same(Filter):
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    both = {Same(parse("x = 1").boxes), Same(parse("x = 1").boxes)}
    kept = Roots()
    kept.update(set(both))
    assert kept.found


def test_a_subscription_is_not_dearer_because_somebody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One asker made every subscription wait until all filters had been compared, on the loop."""
    most: list[int] = []
    work_out = module.Interests._work_out

    def counted(self: module.Interests, wanted: set[Filter], permissions: set[Filter | bool]) -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):  # it is not on the loop
            asyncio.get_running_loop()
        before = self._roots._all
        compared: list[Filter] = []
        hidden = Roots._is_hidden

        def noted(roots: Roots, one: Filter) -> bool:
            compared.append(one)
            return hidden(roots, one)

        monkeypatch.setattr(Roots, "_is_hidden", noted)
        work_out(self, wanted, permissions)
        monkeypatch.setattr(Roots, "_is_hidden", hidden)
        most.append(len(compared) - len(wanted ^ before))

    monkeypatch.setattr(module.Interests, "_work_out", counted)

    async def test() -> None:
        async with running(settings("a")) as a, talking(a) as ana, talking(a) as bob:
            for number in range(300):
                await ana.subscribe(str(number), f"x = {number}")
            assert isinstance(await bob.ask(f.WatchInterest), f.Done)
            await bob.hear(f.Interest)
            for number in range(300, 400):
                await ana.subscribe(str(number), f"x = {number}")
            last = [str(one) for one in range(400)]
            while sorted((await bob.hear(f.Interest)).filters) != sorted(f"x = {one}" for one in last):
                pass
        assert max(most) <= 0  # no more is compared than has changed

    asyncio.run(test())


def test_a_change_in_the_moment_in_which_the_last_one_is_told_is_told_too() -> None:
    async def test() -> None:
        async with running(settings()) as a, talking(a, "s"):
            told: list[list[str]] = []

            def change() -> None:
                a.node.core.presence.change_filters(m.Subscribe("one", parse("x > 1")), "s", a.node.steady())
                a.interests._check()  # as after the step

            def tell(texts: list[str]) -> None:
                told.append(texts)
                if len(told) == 1:  # this runs after the task that tells, and before the node hears of its end
                    asyncio.get_running_loop().call_soon(change)

            a.interests.watch("watcher", tell)
            await until(lambda: told == [[], ["x > 1"]])

    asyncio.run(test())
