"""The members of a session, against a slow twin that keeps a list of all deliveries and looks at each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.examples import few

from fieldfare.core.number_ranges import NumberRanges
from fieldfare.core.sharing import Sharing

NAMES = ("ann", "bob", "cleo")


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30))))
def test_ranges_are_a_set(changes: list[tuple[bool, int]]) -> None:
    ranges, twin = NumberRanges(), set[int]()
    for cuts, number in changes:
        if cuts:
            ranges.cut(number)
            twin = {one for one in twin if one > number}
        else:
            ranges.add(number)
            twin.add(number)
        found = list(ranges)
        assert {one for first, last in found for one in range(first, last + 1)} == twin
        assert all(last + 1 < first for (_, last), (first, _) in pairwise(found))
        assert [one in ranges for one in range(32)] == [one in twin for one in range(32)]
        assert ranges.last == max(twin, default=0)
        assert list(NumberRanges(found)) == found


class Twin(RuleBasedStateMachine):
    """Each delivery is a state: waiting, or the name of a member; the twin gives by looking at all of them."""

    def __init__(self, key: str = "") -> None:
        super().__init__()
        self.sharing = Sharing(key)
        self.holder: dict[int, str] = {}
        """by number, of deliveries that are not acknowledged: a member, or nothing while it waits"""
        self.keys: dict[int, int | None] = {}
        self.turns: list[str] = []
        self.credit: dict[str, int] = {}
        self.taken: set[int] = set()
        self.again: set[int] = set()
        self.dropped: set[int] = set()
        """given, and then dropped by the session; the member has them until it takes them"""
        self.unwritten: dict[int, str] = {}
        """acknowledged by a member, which has the key until the write"""
        self.last = 0

    def give(self) -> None:
        self.sharing.note_keys({number: self.keys[number] for number in self.sharing.without_key()})
        self.sharing.give(self.is_pending)
        for number in sorted(one for one, holder in self.holder.items() if not holder):
            able = [name for name in self.turns if self.credit[name]]
            if not able:
                return
            key = self.keys[number] if self.sharing.key else None
            held = {**self.holder, **self.unwritten}
            same = {held[one] for one in held if key is not None and self.keys[one] == key} - {""}
            assert len(same) < 2
            name = same.pop() if same else able[0]
            if name not in self.turns or not self.credit[name]:
                continue  # until the member that has the key takes more
            if name == able[0] and key not in self.busy():
                self.turns.remove(name)
                self.turns.append(name)
            self.holder[number] = name
            self.credit[name] -= 1

    def is_pending(self, number: int) -> bool:
        return number in self.holder and number not in self.dropped

    def busy(self) -> set[int | None]:
        held = {**self.holder, **self.unwritten}
        return {self.keys[one] for one, holder in held.items() if holder and self.sharing.key} - {None}

    @precondition(lambda self: len(self.turns) < len(NAMES))
    @rule(data=st.data())
    def attach(self, data: Any) -> None:
        name = data.draw(st.sampled_from([name for name in NAMES if name not in self.turns]))
        self.sharing.attach(name)
        self.turns.append(name)
        self.credit[name] = 0

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def detach(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.turns))
        self.sharing.detach(name)
        self.turns.remove(name)
        for number, holder in list(self.holder.items()):
            if holder == name and number in self.dropped:
                del self.holder[number]
            elif holder == name:
                self.holder[number] = ""
                self.again |= {number} & self.taken
                self.taken.discard(number)
        self.give()

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), more=st.integers(1, 4))
    def grant(self, data: Any, more: int) -> None:
        name = data.draw(st.sampled_from(self.turns))
        self.sharing.grant(name, more, 6)
        self.credit[name] = min(6, self.credit[name] + more)
        self.give()

    @rule(keys=st.lists(st.sampled_from((None, 1, 2)), min_size=1, max_size=5))
    def arrive(self, keys: list[int | None]) -> None:
        for key in keys[: self.sharing.room()]:
            self.last += 1
            self.holder[self.last], self.keys[self.last] = "", key
            self.sharing.add([self.last])
        self.give()

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), limit=st.integers(1, 3))
    def take(self, data: Any, limit: int) -> None:
        name = data.draw(st.sampled_from(self.turns))
        mine = [number for number in self.sharing.members[name].given if number not in self.dropped]
        found = self.sharing.take(name, limit, {number for number in self.holder if number not in self.dropped})
        assert [one.number for one in found] == mine[:limit]
        left = self.sharing.members[name].given
        for number in [one for one in self.dropped if self.holder.get(one) == name and one not in left]:
            del self.holder[number]
            self.credit[name] += 1
        assert all(one.again == (one.number in self.again) for one in found)
        self.taken |= {one.number for one in found}
        self.give()

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), name=st.sampled_from(NAMES), back=st.booleans())
    def release(self, data: Any, name: str, back: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.taken)))
        holds = self.holder[number] == name
        assert (self.sharing.give_back if back else self.sharing.release)(name, number) == holds
        if holds:
            self.taken.discard(number)
            del self.holder[number]
            self.credit[name] += back
            self.unwritten |= {} if back else {number: name}
            self.give()

    @precondition(lambda self: self.unwritten)
    @rule(data=st.data())
    def write(self, data: Any) -> None:
        number = data.draw(st.sampled_from(sorted(self.unwritten)))
        self.sharing.free(number)
        del self.unwritten[number]
        self.give()

    @precondition(lambda self: any(not holder for holder in self.holder.values()))
    @rule(data=st.data())
    def expire(self, data: Any) -> None:
        del self.holder[data.draw(st.sampled_from([one for one, holder in self.holder.items() if not holder]))]
        self.give()

    @precondition(lambda self: any(self.holder.values()))
    @rule(data=st.data())
    def drop(self, data: Any) -> None:
        given = [one for one, holder in self.holder.items() if holder and one not in self.taken | self.dropped]
        if given:
            self.dropped.add(data.draw(st.sampled_from(given)))

    @invariant()
    def members_agree(self) -> None:
        held = {name: sum(holder == name for holder in self.holder.values()) for name in self.turns}
        assert {name: one.holds for name, one in self.sharing.members.items()} == held
        assert {name: one.credit for name, one in self.sharing.members.items()} == self.credit_of_present()
        given = {number: name for name, one in self.sharing.members.items() for number in (*one.given, *one.taken)}
        assert given == {number: holder for number, holder in self.holder.items() if holder}

    def credit_of_present(self) -> dict[str, int]:
        return {name: self.credit[name] for name in self.turns}


class TwinWithKey(Twin):
    def __init__(self) -> None:
        super().__init__("x")


@pytest.mark.parametrize("machine", [Twin, TwinWithKey])
def test_members_are_as_the_twin_says(machine: type[Twin]) -> None:
    run_state_machine_as_test(machine, settings=settings(few(50), stateful_step_count=40))
