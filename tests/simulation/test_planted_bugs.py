"""Planted bugs: each is a mistake of a kind that a node must not make, and the random runs find each of them.

A bug is a patch of the core or of a simulated machine. The number of runs after which the bug is found is a part of
the promise: with a weaker checker, or plans without some kind of fault, it would not be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.hints import seeds
from tools.simulation.cores import failure

from fieldfare.core.core import Core
from fieldfare.core.deliveries import Deliveries
from fieldfare.core.departures import Departures
from fieldfare.core.link_table import LinkTable
from fieldfare.core.replicas import Replicas
from fieldfare.simulation import core_host
from fieldfare.simulation.actions.act import Act
from fieldfare.simulation.actions.clients import Move
from fieldfare.simulation.actions.disks import FlipBit, FullDisk, SetBack
from fieldfare.simulation.actions.links import HalfOpen, SlowLink
from fieldfare.simulation.actions.nodes import Kill, Lose
from fieldfare.simulation.core_clients import DurableClient
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Disk
from fieldfare.simulation.pipes import Pipe
from fieldfare.simulation.plans import Plan, draw
from fieldfare.tables.shared_index import Part

fresh = CoreNetwork.fresh
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Bug:
    """A bug, with words of the problem that the runs find."""

    plant: Callable[[Patch], None]
    words: str
    first: int
    """the seed of the first plan that finds the bug"""
    needs: tuple[type[Act], ...] = ()
    """only plans with actions of these kinds are run: chance alone would find the bug as well, and later"""
    within: int = 60
    """runs"""

    def __str__(self) -> str:
        return self.plant.__name__

    def plans(self) -> Iterator[Plan]:
        """Yield the first plans with the needed action."""
        drawn = (draw(seed) for seed in seeds(self.first, count()))
        return islice((plan for plan in drawn if all(map(_has(plan), self.needs))), self.within)


def _has(plan: Plan) -> Callable[[type[Act]], bool]:
    return lambda kind: any(isinstance(step.act, kind) for step in plan.steps)


def messages_overtake_each_other_in_the_outbox(patch: Patch) -> None:
    outgoing = LinkTable.outgoing

    def swapped(self: LinkTable, neighbour: str, after: int, limit: int) -> Any:
        found = outgoing(self, neighbour, after, limit)
        return [(number, what) for (number, _), (_, what) in zip(found, reversed(found), strict=True)]

    patch.setattr(LinkTable, "outgoing", swapped)


def neighbours_hear_of_messages_that_are_not_written(patch: Patch) -> None:
    step = Core.step

    def hasty(self: Core, *arguments: Any) -> Any:
        made = step(self, *arguments)
        for link in self.links.values():
            link.written = link.received
        return made._replace(entries=made.entries, rows=[row for row in made.rows if row.kind != "neighbour"])

    patch.setattr(Core, "step", hasty)


def expired_events_are_delivered(patch: Patch) -> None:
    following = Deliveries.next
    patch.setattr(Deliveries, "next", lambda self, name, limit, _: following(self, name, limit, 0.0))


def a_filter_counts_as_covered_though_it_only_overlaps(patch: Patch) -> None:
    covering = Part.covering

    def nearly(self: Any, filter: Any, is_cover: Callable[[Any], bool] = lambda _: True) -> Any:
        near = [one for one in self.overlapping(filter) if is_cover(one) and str(one.filter) < str(filter)]
        return [*covering(self, filter, is_cover), *near]

    patch.setattr(Part, "covering", nearly)


def the_target_of_a_handover_does_not_hear_what_was_delivered(patch: Patch) -> None:
    patch.setattr(Departures, "delivered", lambda *_: None)


def the_last_part_of_a_handover_is_left_out(patch: Patch) -> None:
    patch.setattr(Departures, "next_deliveries", lambda self, name, limit: [])


def a_client_does_not_hear_that_deliveries_may_repeat(patch: Patch) -> None:
    begin = DurableClient._begin
    patch.setattr(
        DurableClient, "_begin", lambda self, line, welcome: begin(self, line, replace(welcome, may_repeat=0))
    )


def replica_holders_hear_of_no_publication(patch: Patch) -> None:
    patch.setattr(Replicas, "published", lambda *_: None)


def a_disk_says_that_it_has_synced_and_has_not(patch: Patch) -> None:
    begin, lose = Disk.__init__, Disk.lose_power

    def lying(self: Disk, **_: bool) -> None:
        begin(self, synced=False)

    def unnoticed(self: Disk, random: Any) -> bool:
        lose(self, random)
        return False

    patch.setattr(Disk, "__init__", lying)
    patch.setattr(Disk, "lose_power", unnoticed)


def nobody_looks_at_the_checksums_of_rows(patch: Patch) -> None:
    load = Disk.load

    def trusting(self: Disk) -> Any:
        for (kind, key), (right, wrong) in self.damaged_rows.items():
            if self.rows.get(kind, {}).get(key) is right:
                self.rows[kind][key] = wrong
        return load(self)

    patch.setattr(Disk, "load", trusting)


def a_full_disk_takes_everything_and_keeps_nothing(patch: Patch) -> None:
    write = Disk.write
    lying: set[Disk] = set()

    def fill(self: CoreNetwork, node: str, seconds: float) -> None:
        lying.add(self.disks[node])
        self.clock.schedule_background(self.clock.now + seconds, lying.discard, self.disks[node])

    def lossy(self: Disk, step: Any, *arguments: Any) -> None:
        if self in lying:
            self.last += len(step.entries)
        else:
            write(self, step, *arguments)

    patch.setattr(CoreNetwork, "fill", fill)
    patch.setattr(Disk, "write", lossy)


def an_older_folder_goes_on_in_its_old_life(patch: Patch) -> None:
    """The number of the life goes back with the folder, and nobody doubts what is there."""
    patch.setattr(core_host, "EPOCH", 1e12)
    patch.setattr(Disk, "copied", property(lambda _: False, lambda *_: None), raising=False)
    patch.setattr(CoreNetwork, "fresh", lambda self, about: about if "life" in about else fresh(self, about))


def what_was_sent_counts_as_received_when_a_link_is_resumed(patch: Patch) -> None:
    resume = LinkTable.resume

    def trusting(self: LinkTable, neighbour: str, theirs: Any, *arguments: Any) -> Any:
        link = self.known(neighbour)
        heard = replace(theirs, received=link.released, received_lives=link.lives)
        return resume(self, neighbour, heard, *arguments)

    patch.setattr(LinkTable, "resume", trusting)


def frames_overtake_each_other_when_a_link_gets_faster(patch: Patch) -> None:
    def send(self: Pipe, frame: object) -> None:
        for time in self.arrivals(self._clock.now, 0) if self.up else ():
            self._clock.schedule(time + self.delay, self._arrive, frame)

    patch.setattr(Pipe, "send", send)


BUGS = (
    Bug(messages_overtake_each_other_in_the_outbox, "fifo", 6),
    Bug(neighbours_hear_of_messages_that_are_not_written, "nothing else is stored", 0, (Kill,)),
    Bug(expired_events_are_delivered, "which has expired", 6),
    Bug(a_filter_counts_as_covered_though_it_only_overlaps, "is missing", 43, within=250),
    Bug(
        the_target_of_a_handover_does_not_hear_what_was_delivered, "delivered before", 144, (Move, SlowLink), within=160
    ),
    Bug(the_last_part_of_a_handover_is_left_out, "is missing", 24, (Move,)),
    Bug(replica_holders_hear_of_no_publication, "delivered before", 601, (Lose,), within=100),
    Bug(a_client_does_not_hear_that_deliveries_may_repeat, "delivered before", 17, (Lose,)),
    Bug(a_disk_says_that_it_has_synced_and_has_not, "went back in time", 10, (Kill,)),
    Bug(nobody_looks_at_the_checksums_of_rows, "", 12, (FlipBit,), within=100),
    Bug(a_full_disk_takes_everything_and_keeps_nothing, "", 96, (FullDisk,)),
    Bug(an_older_folder_goes_on_in_its_old_life, "", 343, (SetBack,)),
    Bug(what_was_sent_counts_as_received_when_a_link_is_resumed, "is missing", 117, (HalfOpen,)),
    Bug(frames_overtake_each_other_when_a_link_gets_faster, "", 86, (SlowLink,)),
)


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_the_random_runs_find_a_planted_bug(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    problems = map(failure, bug.plans())
    assert any(problem and bug.words in problem for problem in problems)
