"""Members and seats, with time as an argument and words that get lost: in the end all have the tree of one optimizer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.samples import FILTERS as RANGES
from tools.samples import UNIVERSE

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.routing.prefix import messages as w
from fieldfare.routing.prefix.control_overlay import ControlOverlay
from fieldfare.routing.prefix.election import Election
from fieldfare.routing.prefix.follower import Follower
from fieldfare.routing.prefix.invariants import check
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.options import SILENT, PrefixOptions
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.tree import START, Term, Tree, TreeVersion
from fieldfare.routing.prefix.updates import whole
from fieldfare.routing.routes import LOCAL

OPTIONS = PrefixOptions(beat=1.0, patience=3.0, refresh=1.0, threshold=0.2)


class Broker(NamedTuple):
    name: str
    member: Follower
    seat: Election
    wants: dict[Filter, None]

    @property
    def version(self) -> TreeVersion:
        return self.member.placements.tree.version


class Hall:
    """Some brokers that hear each other at once, or not at all."""

    def __init__(self, *names: str, options: PrefixOptions = OPTIONS) -> None:
        self.options = options
        self.now = 0.0
        self.life = 0
        self.loses: Callable[[w.AnyTreeMessage, str], bool] = lambda _word, _to: False
        self.brokers = {name: self.make(name) for name in names}
        self.said: list[w.AnyTreeMessage] = []

    def make(self, name: str) -> Broker:
        self.life += 1
        member = Follower(0, name, self.life, self.options)
        return Broker(name, member, Election(member, name, self.life, self.options), {})

    def restart(self, name: str) -> None:
        self.brokers[name] = self.make(name)

    def want(self, name: str, filter: Filter, wanted: bool = True) -> None:
        one = self.brokers[name]
        if wanted != (filter in one.wants):
            one.member.record(filter, LOCAL, wanted)
            one.wants[filter] = None
            if not wanted:
                del one.wants[filter]

    def say(self, words: list[w.AnyTreeMessage]) -> None:
        for word in words:
            self.said.append(word)
            for one in list(self.brokers.values()):
                if not self.loses(word, one.name):
                    self.hear(one, word)

    def hear(self, one: Broker, word: w.AnyTreeMessage) -> None:
        match word:
            case w.Heartbeat():
                one.seat.observe_term(word.term, self.now)
                self.say(one.member.receive_heartbeat(word, self.now))
            case w.TreeNews() | w.WholeTree() if isinstance(word, w.TreeNews) or word.to == one.name:
                one.seat.observe_term(word.update.version.term, self.now)
                self.say(one.member.receive_update(word.update, self.now))
            case w.InterestReport():
                self.say(one.seat.receive_report(word, self.now))
            case w.TreeRequest():
                self.say(one.seat.receive_request(word, self.now))

    def tick(self, name: str) -> None:
        one = self.brokers[name]
        self.say(one.member.tick(self.now))
        self.say(one.seat.tick(self.now, ()))

    def run(self, seconds: float) -> None:
        """Time passes in small steps."""
        for _ in range(round(seconds * 5)):
            self.now += 0.2
            for name in self.brokers:
                self.tick(name)

    @property
    def in_charge(self) -> list[str]:
        return [one.name for one in self.brokers.values() if one.seat.leading]

    def agree(self) -> None:
        """One is in charge, knows what all want, and all have its tree."""
        (name,) = self.in_charge
        optimizer = self.brokers[name].seat.optimizer
        assert optimizer is not None
        assert not optimizer.due(float("inf"))
        check(optimizer.tree)
        wanted = {box for one in self.brokers.values() for filter in one.wants for box in filter.boxes}
        fresh = Optimizer(boxes=wanted)
        assert {*optimizer._counts} == {*fresh._counts}
        for one in self.brokers.values():
            places = one.member.placements
            assert (places.tree.version, places.tree.digest) == (optimizer.version, optimizer.tree.digest)
            assert places.loose == 0
            for event in UNIVERSE:
                assert bool(places.read(places.enter(event))) == any(filter.matches(event) for filter in one.wants)


def hall(*names: str, options: PrefixOptions = OPTIONS) -> Hall:
    """A hall in which somebody is in charge, and all want something."""
    made = Hall(*names, options=options)
    for number, name in enumerate(names):
        made.want(name, RANGES[number])
    made.run(10)
    made.agree()
    return made


# Reports


def test_reports_that_get_lost_are_said_again() -> None:
    one = hall("a", "b")
    (chief,) = one.in_charge
    other = "b" if chief == "a" else "a"
    one.loses = lambda word, _: isinstance(word, w.InterestReport)
    one.want(other, parse("x = 3 AND y = 3"))
    one.want(other, RANGES["ab".index(other)], False)
    one.run(1)
    assert one.brokers[other].member.placements.loose == 1, "it stands above until it has nodes"
    one.loses = lambda _word, _to: False
    one.run(4)
    one.agree()


def test_what_nobody_wants_any_more_has_no_nodes() -> None:
    one = hall("a", "b")
    for name in one.brokers:
        for filter in RANGES[3:7]:
            one.want(name, filter)
    one.run(3)
    one.agree()
    for name in one.brokers:
        for filter in list(one.brokers[name].wants):
            one.want(name, filter, False)
            one.run(1)
    one.run(2)
    one.agree()
    assert one.brokers["a"].member.placements.tree.size == 0


def test_a_report_that_follows_a_lost_one_is_not_believed() -> None:
    one = hall("a", "b")
    (chief,) = one.in_charge
    other = "b" if chief == "a" else "a"
    seat = one.brokers[chief].seat
    known = seat._reports[other]
    filters, number = dict(known.filters), known.number
    life = one.brokers[other].member._life
    seat.receive_report(
        w.InterestReport(0, other, life, seat.term, number + 2, number + 1, (parse("x = 3"),), ()), one.now
    )
    assert (seat._reports[other].filters, seat._reports[other].number) == (filters, number)
    seat.receive_report(w.InterestReport(0, other, life - 1, seat.term, 9, None, (parse("x = 3"),), ()), one.now)
    assert seat._reports[other].filters == filters, "that was in an earlier life"
    seat.receive_report(w.InterestReport(0, other, life + 1, seat.term, 1, None, (parse("x = 3"),), ()), one.now)
    assert list(seat._reports[other].filters) == [parse("x = 3")], "all that it said before is void"


def test_reports_tell_what_has_changed_and_no_more() -> None:
    member = Follower(0, "a", 7, OPTIONS)
    first, second = parse("x = 1"), parse("x = 2")
    member.record(first, LOCAL, True)
    member.record(parse("x = 3"), "a neighbour", True)
    (report,) = member.tick(0.0)
    assert report == w.InterestReport(0, "a", 7, Term(), 1, 0, (first,), ())
    member.record(second, LOCAL, True)
    member.record(first, LOCAL, False)
    assert member.tick(0.01) == []
    assert member.tick(0.1) == [w.InterestReport(0, "a", 7, Term(), 2, 1, (second,), (first,))]
    assert member.tick(9.0) == []
    assert member.wakes is None
    beat = w.Heartbeat(0, Term(1, "b/1"), START, {"a": (7, 2)})
    assert member.receive_heartbeat(beat, 0.2) == []
    assert member.receive_heartbeat(beat, 9.0) == [w.InterestReport(0, "a", 7, Term(1, "b/1"), 2, 2)], "a sign of life"
    unheard = w.Heartbeat(0, Term(1, "b/1"), START, {})
    assert member.receive_heartbeat(unheard, 9.1) == [
        w.InterestReport(0, "a", 7, Term(1, "b/1"), 3, None, (second,), ())
    ]


def test_brokers_that_are_silent_are_forgotten() -> None:
    one = hall("a", "b", "c")
    (chief,) = one.in_charge
    other = next(name for name in one.brokers if name != chief)
    gone = one.brokers.pop(other)
    one.run(SILENT * OPTIONS.beat + 3)
    one.agree()
    one.brokers[other] = gone
    one.run(4)
    one.agree()


# Terms


def test_another_takes_over() -> None:
    one = hall("a", "b", "c")
    (chief,) = one.in_charge
    term = one.brokers[chief].seat.term
    del one.brokers[chief]
    one.run(2 * OPTIONS.patience + 3 * OPTIONS.beat)
    one.agree()
    assert one.brokers[one.in_charge[0]].seat.term.round == term.round + 1


def test_it_waits_for_reports_before_it_says_anything() -> None:
    """Otherwise it would remove all nodes, and make them again."""
    one = hall("a", "b", "c")
    (chief,) = one.in_charge
    version = one.brokers[chief].version
    gone = one.brokers.pop(chief)
    for filter in gone.wants:
        one.want(next(iter(one.brokers)), filter)
    one.said.clear()
    one.run(2 * OPTIONS.patience + 3 * OPTIONS.beat)
    one.agree()
    news = [word.update for word in one.said if isinstance(word, w.TreeNews)]
    assert [(update.base, update.operations) for update in news] == [(version, ())]
    assert not any(isinstance(word, w.TreeRequest) for word in one.said)


def test_nobody_goes_on_from_a_tree_that_is_not_what_others_have() -> None:
    one = hall("a", "b", "c")
    (chief,) = one.in_charge
    del one.brokers[chief]
    for broker in one.brokers.values():
        broker.member.placements.tree.distrust()
    one.said.clear()
    one.run(2 * OPTIONS.patience + 3 * OPTIONS.beat)
    one.agree()
    assert next(word for word in one.said if isinstance(word, w.TreeNews)).update.base is None


def test_two_that_begin_the_same_round() -> None:
    one = Hall("a", "b", "c")
    for number, name in enumerate(one.brokers):
        one.want(name, RANGES[number])
    one.loses = lambda word, to: _by(word) != to
    one.run(4)
    assert len(one.in_charge) == 3
    assert {broker.seat.term.round for broker in one.brokers.values()} == {1}
    one.loses = lambda _word, _to: False
    one.run(6)
    one.agree()
    assert one.in_charge == ["c"]


def _by(word: w.AnyTreeMessage) -> str:
    match word:
        case w.Heartbeat():
            return word.term.by.split("/")[0]
        case w.TreeNews() | w.WholeTree():
            return word.update.version.term.by.split("/")[0]
    return word.broker


def test_trees_of_one_round_are_not_mixed_up() -> None:
    """Two optimizers of one round give the same ids to other nodes; and there are enough for the engine."""
    trees = [
        Optimizer(boxes=[parse(f"x = {number}").boxes[0] for number in some], term=Term(1, by)).whole(0.0)[1]
        for by, some in (("a/1", range(60)), ("b/1", range(100, 160)))
    ]
    places = Placements(Tree())
    places.add(parse("x = 105").boxes[0], "i")
    for tree in trees:
        assert places.apply(tree)
        assert places.read(places.enter({"x": 105})) == {"i"}
    assert places.read(places.enter({"x": 5})) == set()


def test_who_was_in_charge_in_another_life_goes_beyond_that() -> None:
    """Only one may be in charge: nobody else would tell it."""
    one = hall("a", "b", options=PrefixOptions(beat=1.0, patience=3.0, refresh=1.0, optimizers=("a",)))
    for _ in range(12):  # lives are numbers, and terms compare names: 10 comes before 9 there
        terms = one.brokers["a"].seat.term
        one.restart("a")
        one.run(2 * OPTIONS.patience + 3)
        one.agree()
        assert one.brokers["a"].seat.term > terms


def test_news_of_a_term_are_a_sign_of_it() -> None:
    """Its first beat is lost, and then it is gone. A lesser one of the same round must not be followed."""
    member = Follower(0, "a", 1, OPTIONS)
    great, small = (
        Optimizer(boxes=parse(text).boxes, term=Term(1, by)).whole(0.0)[1]
        for text, by in (("x = 1", "z/1"), ("x = 2", "b/1"))
    )
    member.receive_update(great, 0.0)
    assert member.placements.tree.version == great.version
    beat = w.Heartbeat(0, small.version.term, small.version, {"a": (1, 0)})
    assert member.receive_heartbeat(beat, 1.0) == [w.InterestReport(0, "a", 1, great.version.term, 0, 0)]
    assert member.receive_update(small, 1.0) == []
    other = Follower(0, "a", 1, OPTIONS)
    other.receive_heartbeat(w.Heartbeat(0, great.version.term, START, {"a": (1, 0)}), 0.0)
    other.receive_update(small, 1.0)
    assert other.placements.tree.version == START, "it waits for the news of the term that it has heard of"
    seat = Election(Follower(0, "b", 1, OPTIONS), "b", 1, OPTIONS)
    for time in (0.0, 2.0):
        seat.tick(time, ())
    assert [type(word) for word in seat.tick(3.0, ())] == [w.TreeNews, w.Heartbeat]
    assert seat.optimizer is not None
    assert seat.optimizer.version.term.round == 1
    assert seat.optimizer.version < great.version
    seat.receive_report(w.InterestReport(0, "a", 1, great.version.term, 0, 0), 3.5)
    assert seat.tick(5.0, ()) == []
    seat.tick(3.5 + 2 * OPTIONS.patience, ())
    assert seat.term.round == 2
    assert seat.term.by.startswith("b/")


def test_former_versions_are_forgotten_in_time() -> None:
    member = Follower(0, "a", 1, PrefixOptions(beat=1.0, remember=5.0))
    optimizer = Optimizer(term=Term(1, "b/1"))
    tags, versions = [], []
    member.record(parse("x > 0"), "i", True)
    for second in range(4):
        optimizer.add(parse(f"x = {second}").boxes[0])
        update = optimizer.publish(0.0)
        assert update is not None
        if second:
            member.receive_update(update, float(second))
        else:
            member.receive_update(whole(optimizer.tree), 0.0)
        versions.append(update.version)
        tags.append(member.placements.enter({"x": second}))
    for now in (4.0, 6.0, 6.5, 8.0, 9.5):
        member.receive_heartbeat(w.Heartbeat(0, Term(1, "b/1"), versions[-1], {"a": (1, 0)}), now)
        readable = [member.placements.read(tag) is not None for tag in tags]
        # a version is no longer made by anybody for so long as the next one is there
        assert readable == [at == 3 or at + 1 >= now - 5.0 for at in range(4)], now


# Whatever happens


class Step(NamedTuple):
    kind: int
    who: int
    what: int


@given(st.lists(st.builds(Step, st.integers(0, 9), st.integers(0, 2), st.integers(0, 25)), max_size=25), st.randoms())
def test_all_agree_when_nothing_gets_lost_any_more(steps: list[Step], dice: Random) -> None:
    one = Hall("a", "b", "c")
    for kind, who, what in steps:
        name = "abc"[who]
        match kind:
            case 0 | 1 | 2 | 3:
                one.want(name, RANGES[what])
            case 4 | 5 if wants := list(one.brokers[name].wants):
                one.want(name, wants[what % len(wants)], False)
            case 6:
                one.restart(name)
            case 7:
                share = what / 25
                one.loses = lambda _word, _to, share=share: dice.random() < share  # type: ignore[misc]
            case _:
                one.run(what / 3)
        for broker in one.brokers.values():
            check(broker.member.placements.tree)
            for event in UNIVERSE[::3]:
                if any(filter.matches(event) for filter in broker.wants):
                    found = [
                        broker.member.placements.read(other.member.placements.enter(event))
                        for other in one.brokers.values()
                    ]
                    assert all(some is None or LOCAL in some for some in found)
    one.loses = lambda _word, _to: False
    one.run(30)
    one.agree()


# Words


WORDS: list[w.AnyTreeMessage] = [
    w.Heartbeat(0, Term(3, "a/1"), TreeVersion(Term(3, "a/1"), 4), {"b": (1, 2)}),
    w.TreeNews(1, whole(Optimizer(boxes=[box for filter in RANGES for box in filter.boxes]).tree)),
    w.InterestReport(0, "b", 1, Term(3, "a/1"), 2, None, RANGES[:9], RANGES[9:]),
    w.TreeRequest(2, "c"),
    w.WholeTree(0, "c", whole(Optimizer(boxes=[box for filter in RANGES[3:] for box in filter.boxes]).tree)),
]


SAID = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from("abc")), max_size=6, unique_by=lambda one: (repr(one[0]), one[1])
)
"""messages with senders; of a message that is sent twice, pieces of both make the message again"""


@given(SAID, st.integers(1, 300), st.data())
def test_pieces_make_what_was_said_or_nothing(
    said: list[tuple[w.AnyTreeMessage, str]], size: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(w, "PIECE", size)
        pieces = [(number, event) for number, (word, by) in enumerate(said) for event in w.events_of(word, by)]
    everything = w.MessageReader()
    assert [word for _, event in pieces if (word := everything.read(event)) is not None] == [word for word, _ in said]
    lost = data.draw(st.sets(st.integers(0, max(0, len(pieces) - 1)), max_size=20))
    complete = [
        word
        for number, (word, _) in enumerate(said)
        if not any(place in lost for place, (which, _) in enumerate(pieces) if which == number)
    ]
    reader = w.MessageReader()
    left = [event for place, (_, event) in enumerate(pieces) if place not in lost]
    assert [word for event in left if (word := reader.read(event)) is not None] == complete


def test_the_end_of_one_word_does_not_complete_another(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (w.InterestReport(0, "b", life, Term(), 1, None, RANGES[:9]) for life in (1, 2))
    whole_size = len(w._encode(one))
    assert whole_size == len(w._encode(two))
    monkeypatch.setattr(w, "PIECE", whole_size // 3 + 1)
    first, second = w.events_of(one, "b"), w.events_of(two, "b")
    assert len(first) == len(second) == 3
    for cut in (1, 2):
        reader = w.MessageReader()
        assert [reader.read(event) for event in (*first[:cut], *second[cut:])] == [None] * 3
        assert [reader.read(event) for event in first] == [None, None, one]


def test_what_is_no_word_is_dropped() -> None:
    bus, other = ControlOverlay("a", 1), ControlOverlay("b", 1)
    bus.connect("b")
    for to in other.connect("a"):
        bus.receive(to.message.content, "b", 0.0)  # type: ignore[union-attr]
    (event,) = w.events_of(w.TreeRequest(0, "a"), "a")
    for broken in ({"data": b""}, {"data": b"\xc1"}, {"data": 3}, {"by": 4}, {"start": "x"}, {"last": False}):
        said = m.Forward(Event({**event, "word": "Beat", **broken}), "b", 1 + hash(str(broken)) % 1000, "b", "b")
        assert bus.receive(said, "b", 0.0).messages == []


def test_a_life_that_repeats_makes_other_terms() -> None:
    """As that of a node whose folder was brought back from a copy."""
    begun = []
    for start in (0.0, 1000.0):
        seat = Election(Follower(0, "b", 1, OPTIONS), "b", 1, OPTIONS)
        seat.tick(start, ())
        seat.tick(start + 2 * OPTIONS.patience, ())
        begun.append(seat.term)
    assert begun[0].round == begun[1].round == 1
    assert begun[0] != begun[1]
