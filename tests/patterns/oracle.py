"""A slow interpreter of trees: it walks the tree again for every event, and knows nothing of automata.

An instance is the list of inputs that it was offered. `_Walk` enumerates all ways to read that list by backtracking;
each way ends as `Done`, as `Waiting` (the list ends first), as `FAILED`, or as `REJECTED` (a condition of the whole match
does not hold, so that its last event counts as ignored).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fieldfare.patterns import tree as t
from fieldfare.patterns.machine import Policy
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND


class Now(NamedTuple):
    """Time has come to `time`: timers before have struck."""

    time: int


class Strike(NamedTuple):
    """A timer of the surroundings strikes."""

    timer: int
    time: int


Input = Offer | Now | Strike


@dataclass(frozen=True)
class Context:
    """What one way has read so far."""

    at: int = 0
    items: tuple[Any, ...] = ()  # (name, occurrence), or a list of these for a composite
    taken: frozenset[Any] = frozenset()
    ever: frozenset[Any] = frozenset()  # also what a side of a parallel part has lost since
    last: Any = None
    low: int | None = None
    barrier: int | None = None
    timers: tuple[tuple[int, int], ...] = ()
    limits: tuple[tuple[int, int | None, int], ...] = ()  # number, deadline, duration
    counts: tuple[tuple[int, int], ...] = ()
    bound: tuple[tuple[str, Any], ...] = ()  # names and fields of all events, in the order of the match


@dataclass(frozen=True)
class Done:
    context: Context


@dataclass(frozen=True)
class Waiting:
    context: Context


FAILED, REJECTED = "failed", "rejected"
Outcome = Done | Waiting | str
Then = Callable[[Context], list[Outcome]]


class Conditions:
    """Conditions between events, as functions of the bound events; these are always true."""

    def holds(self, name: str, bound: Sequence[tuple[str, Any]], fields: Any) -> bool:
        return True

    def fit(self, tree: t.Parallel, bound: Sequence[tuple[str, Any]]) -> bool:
        return True

    def complete(self, bound: Sequence[tuple[str, Any]]) -> bool:
        return True


def _key(one: Offer | Strike) -> Any:
    return one.key if isinstance(one, Offer) else (one.time, one.time, 1, "", one.timer)


class _Walk:
    def __init__(self, tree: t.Tree, conditions: Conditions, skip: bool) -> None:
        self.tree, self.conditions, self.skip = tree, conditions, skip
        self.numbers: dict[int, int] = {}
        self.reps: list[bool] = []
        self._number(tree)

    def _number(self, tree: t.Tree) -> None:
        self.numbers[id(tree)] = len(self.numbers)
        for child in t.children(tree):
            self._number(child)

    def ways(
        self, tree: t.Tree, inputs: Sequence[Input], base: Context, names: dict[str, int], whole: bool
    ) -> list[Outcome]:
        def finish(context: Context) -> list[Outcome]:
            if whole and not self.conditions.complete(context.bound):
                return [REJECTED]
            return [Done(context)]

        return self.go(tree, names, inputs, base, finish)

    def go(self, tree: t.Tree, names: dict[str, int], inputs: Sequence[Input], c: Context, then: Then) -> list[Outcome]:
        match tree:
            case t.Atom():
                return self.atom(tree, names, inputs, c, then)
            case t.Concatenation():
                return self.go(tree.left, names, inputs, c, lambda d: self.go(tree.right, names, inputs, d, then))
            case t.Sequence():

                def right(d: Context) -> list[Outcome]:
                    ends = [c.barrier] if d.taken == c.taken else [c.barrier, d.last[0]]
                    barrier = max((end for end in ends if end is not None), default=None)
                    inner = replace(d, barrier=barrier)
                    return self.go(tree.right, names, inputs, inner, lambda e: then(replace(e, barrier=c.barrier)))

                return self.go(tree.left, names, inputs, c, right)
            case t.Alternation():
                return self.go(tree.left, names, inputs, c, then) + self.go(tree.right, names, inputs, c, then)
            case t.Repetition():
                return self.repeat(tree, names, inputs, c, then, 0)
            case t.Timing():
                number = self.numbers[id(tree)]

                def timed(d: Context) -> list[Outcome]:
                    deadline = (
                        d.last[0] + tree.when.duration
                        if isinstance(tree.when, t.After)
                        else max(tree.when.time, d.last[0])
                    )
                    barrier = max(d.last[0], -1 if c.barrier is None else c.barrier) if tree.strong else d.barrier
                    inner = replace(d, timers=(*d.timers, (deadline, number)), barrier=barrier)
                    scope = names | {tree.timer: number}
                    return self.go(
                        tree.right,
                        scope,
                        inputs,
                        inner,
                        lambda e: then(_without(replace(e, barrier=c.barrier), number)),
                    )

                return self.go(tree.left, names, inputs, c, timed)
            case t.Within():
                number = self.numbers[id(tree)]
                inner = replace(c, limits=(*c.limits, (number, None, tree.duration)))
                return self.go(tree.body, names, inputs, inner, lambda e: then(_without(e, number)))
            case t.Parallel():
                return self.parallel(tree, names, inputs, c, then)

    def repeat(  # noqa: PLR0917
        self, tree: t.Repetition, names: dict[str, int], inputs: Sequence[Input], c: Context, then: Then, done: int
    ) -> list[Outcome]:
        found: list[Outcome] = []
        if done >= tree.low:
            found += then(c)
        if tree.high is None or done < tree.high:
            before = c
            counted = c
            if tree.greedy is not None:
                number = self.numbers[id(tree)]
                counts = dict(c.counts)
                counts[number] = counts.get(number, 0) + 1
                counted = replace(c, counts=tuple(sorted(counts.items())))

            def again(d: Context) -> list[Outcome]:
                if d.taken == before.taken and done >= tree.low:
                    return []  # an empty part more changes nothing
                return self.repeat(tree, names, inputs, d, then, done + 1)

            found += self.go(tree.body, names, inputs, counted, again)
        return found

    def atom(
        self, tree: t.Atom, names: dict[str, int], inputs: Sequence[Input], c: Context, then: Then
    ) -> list[Outcome]:
        while True:
            if c.at == len(inputs):
                return [Waiting(c)]
            nxt = inputs[c.at]
            time = nxt.event.high if isinstance(nxt, Offer) else nxt.time
            due = _due(c, time)
            if due is not None:
                deadline, number, is_limit = due
                if is_limit:
                    return [FAILED]
                c = _without(c, number)
                outcomes = self.try_event(tree, names, Strike(number, deadline), c, then, c.at)
            elif isinstance(nxt, Now):
                c = replace(c, at=c.at + 1)
                continue
            else:
                outcomes = self.try_event(tree, names, nxt, c, then, c.at + 1)
                if outcomes is None:
                    c = replace(c, at=c.at + 1)
            if outcomes is not None:
                return outcomes

    def name_of(self, wanted: Sequence[str], names: dict[str, int], one: Offer | Strike, c: Context) -> str | None:
        for name in wanted:
            if name in names:
                if isinstance(one, Strike) and names[name] == one.timer:
                    return name
            elif isinstance(one, Offer) and name in one.labels and self.conditions.holds(name, c.bound, one.fields):
                return name
        return None

    def try_event(  # noqa: PLR0917
        self, tree: t.Atom, names: dict[str, int], one: Offer | Strike, c: Context, then: Then, at: int
    ) -> list[Outcome] | None:
        """Return the outcomes of an event, None if the event is ignored."""
        key = _key(one)
        late = (c.last is not None and key < c.last) or (c.barrier is not None and key[1] <= c.barrier)
        name = self.name_of(tree.names, names, one, c)
        inside = self.name_of((*tree.names, *tree.domain), names, one, c)
        if tree.negated:
            inside = self.name_of(tree.domain, names, one, c)
            name = None if name is not None else inside
        if late and self.skip:
            return None
        if name is None:
            return None if inside is None else [FAILED]
        if late:
            return [FAILED]
        outcomes = then(replace(_took(c, one, name, names), at=at))
        if outcomes and all(outcome == REJECTED for outcome in outcomes):
            return None
        return [outcome for outcome in outcomes if outcome != REJECTED]

    # Parallel parts

    def parallel(  # noqa: PLR0915
        self, tree: t.Parallel, names: dict[str, int], inputs: Sequence[Input], c: Context, then: Then
    ) -> list[Outcome]:
        base = Context(last=c.last, barrier=c.barrier, bound=c.bound)
        sides = [_Side(self, side, names, base, ()) for side in (tree.left, tree.right)]
        began = bool(c.items)
        while True:
            taken = c.taken.union(*(side.taken for side in sides))
            c = replace(c, ever=c.ever | taken)
            if c.at == len(inputs):
                return [Waiting(replace(c, taken=taken))]
            nxt = inputs[c.at]
            time = nxt.event.high if isinstance(nxt, Offer) else nxt.time
            due = _due(c, time)
            given: Input
            if due is not None:
                deadline, number, is_limit = due
                sides = [side.fed(Now(deadline))[0] for side in sides]
                if not self.both(sides):
                    if is_limit:
                        return [FAILED]
                    c = _without(c, number)
                    given = Strike(number, deadline)
                else:
                    given = Now(deadline)
            else:
                sides = [side.fed(Now(time))[0] for side in sides]
                given = nxt
                if not self.both(sides):
                    c = replace(c, at=c.at + 1)
            if self.both(sides):
                joined = self.join(tree, sides, c)
                outcomes: list[Outcome] = [FAILED] if joined is None else then(joined)
                return [FAILED] if all(outcome == REJECTED for outcome in outcomes) else outcomes
            if not began and not any(side.inputs for side in sides) and taken != c.taken:
                return [FAILED]
            if isinstance(given, Now):
                continue
            if self.skip and (
                (c.last is not None and _key(given) < c.last) or (c.barrier is not None and _key(given)[1] <= c.barrier)
            ):
                continue
            after = [side.fed(given) for side in sides]
            if any(side is None for side, _ in after):
                return [FAILED]
            moved = any(took for _, took in after)
            new = [side for side, _ in after]
            if not moved:
                if not began and not any(side.inputs for side in new) and any(side.inputs for side in sides):
                    return [FAILED]
                sides = new
                continue
            limits = c.limits
            if isinstance(given, Offer):
                limits = tuple((n, given.event.low + d if end is None else end, d) for n, end, d in limits)
            if self.both(new):
                joined = self.join(tree, new, replace(c, limits=limits))
                if joined is None:
                    continue
                outcomes = then(joined)
                if outcomes and all(outcome == REJECTED for outcome in outcomes):
                    continue
                return [outcome for outcome in outcomes if outcome != REJECTED]
            c = replace(c, limits=limits)
            sides = new

    def both(self, sides: Sequence[_Side]) -> bool:
        return all(side.done is not None for side in sides)

    def join(self, tree: t.Parallel, sides: Sequence[_Side], c: Context) -> Context | None:
        pair = sorted((side.done for side in sides if side.done), key=lambda one: one.last)
        items = c.items
        for one in pair:
            items += one.items if len(one.items) == 1 else (list(one.items),)
        events = sorted((both for one in pair for both in events_of(one.items)), key=lambda both: both[1].key)
        bound = c.bound + tuple((name, event.event) for name, event in events)
        if not self.conditions.fit(tree, bound):
            return None
        counts = dict(c.counts)
        for one in pair:
            for number, count in one.counts:
                counts[number] = counts.get(number, 0) + count
        lows = [one.low for one in (*pair, c) if one.low is not None]
        return replace(
            c, items=items, taken=c.taken.union(*(one.taken for one in pair)), ever=c.ever.union(*(one.ever for one in pair)), last=max(one.last for one in pair),
            low=min(lows), bound=bound, counts=tuple(sorted(counts.items())),
        )  # fmt: skip

    def rank(self, c: Context) -> Any:
        counts = dict(c.counts)
        preferences = [
            (-1 if node.greedy else 1) * counts.get(self.numbers[id(node)], 0)
            for node in _nodes(self.tree)
            if isinstance(node, t.Repetition) and node.greedy is not None
        ]
        events = events_of(c.items)
        return preferences, -len(events), [event.key for _, event in events], [name for name, _ in events]


@dataclass(frozen=True)
class _Side:
    """A side of a parallel part: its inputs since its first event, or its detection."""

    walk: _Walk
    tree: t.Tree
    names: dict[str, int]
    base: Context
    inputs: tuple[Input, ...]
    done: Context | None = None

    @property
    def taken(self) -> frozenset[Any]:
        if self.done is not None:
            return self.done.taken
        if not self.inputs:
            return frozenset()
        return frozenset().union(
            *(one.context.taken for one in self._outcomes(self.inputs) if isinstance(one, Waiting))
        )

    def _outcomes(self, inputs: tuple[Input, ...]) -> list[Outcome]:
        found = self.walk.ways(self.tree, inputs, self.base, self.names, whole=False)
        first = _id(inputs[0])
        return [one for one in found if isinstance(one, str) or first in one.context.ever]

    def fed(self, given: Input) -> tuple[Any, bool]:
        """Return the side after an input, and whether it took the input; None for a side that can never be detected."""
        if self.done is not None:
            return self, False
        failed = False
        if self.inputs:
            inputs = (*self.inputs, given)
            found = self._outcomes(inputs)
            done = [one.context for one in found if isinstance(one, Done) and one.context.items]
            if done:
                return replace(self, inputs=inputs, done=min(done, key=self.walk.rank)), True
            waiting = [one for one in found if isinstance(one, Waiting)]
            if waiting:
                return replace(self, inputs=inputs), any(_id(given) in one.context.taken for one in waiting)
            failed = True
        fresh = replace(self, inputs=())
        if isinstance(given, Now):
            return fresh, False
        found = self.walk.ways(self.tree, (given,), self.base, self.names, whole=False)
        mine = [one for one in found if not isinstance(one, str) and _id(given) in one.context.taken]
        if mine:
            done = [one.context for one in mine if isinstance(one, Done) and one.context.items]
            return replace(self, inputs=(given,), done=min(done, key=self.walk.rank) if done else None), True
        if isinstance(given, Strike) and (failed or FAILED in found):
            return None, False
        return fresh, False


def _id(given: Input) -> Any:
    return _key(given) if not isinstance(given, Now) else given


def _nodes(tree: t.Tree) -> list[t.Tree]:
    return [tree, *(node for child in t.children(tree) for node in _nodes(child))]


def _due(c: Context, time: int) -> tuple[int, int, bool] | None:
    timers = [(deadline, number, False) for deadline, number in c.timers]
    timers += [(end, number, True) for number, end, _ in c.limits if end is not None]
    return min((one for one in timers if one[0] < time), default=None)


def _without(c: Context, number: int) -> Context:
    timers = tuple(one for one in c.timers if one[1] != number)
    return replace(c, timers=timers, limits=tuple(one for one in c.limits if one[0] != number))


def _took(c: Context, one: Offer | Strike, name: str, names: dict[str, int]) -> Context:
    key = _key(one)
    low = key[1] if c.low is None else min(c.low, key[1])
    c = replace(c, taken=c.taken | {_id(one)}, ever=c.ever | {_id(one)}, last=key, low=low)
    if isinstance(one, Strike):
        return c
    limits = tuple((number, key[1] + duration if end is None else end, duration) for number, end, duration in c.limits)
    return replace(c, items=(*c.items, (name, one.event)), limits=limits, bound=(*c.bound, (name, one.fields)))


def events_of(items: Sequence[Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for item in items:
        found += events_of(item) if isinstance(item, list) else [item]
    return found


def shown(c: Context) -> str:
    assert c.low is not None
    return f"{_shown(c.items)}@[{c.low // SECOND},{c.last[0] // SECOND}]"


def _shown(items: Sequence[Any]) -> str:
    return "+".join(f"({_shown(item)})" if isinstance(item, list) else item[1].event["name"] for item in items)


CHRONICLE, TRUE = Policy(), Conditions()


def interpret(  # noqa: PLR0915
    tree: t.Tree, offers: Sequence[Offer], *, until: int, skip: bool = False, policy: Policy = CHRONICLE,
    conditions: Conditions = TRUE,
) -> list[Context]:  # fmt: skip
    """Return the matches of a history whose times are whole seconds."""
    walk = _Walk(tree, conditions, skip)
    instances: list[tuple[Input, ...]] = []
    matches: list[Context] = []
    clock = min((offer.event.high for offer in offers), default=0)
    fresh_from: Any = None

    def kept(context: Context) -> frozenset[Any]:
        return context.ever if policy.skip == "chronicle" else context.taken

    def look(inputs: tuple[Input, ...]) -> tuple[Context | None, list[Waiting]]:
        found = walk.ways(tree, inputs, Context(), {}, whole=True)
        first = _id(inputs[0])
        mine = [one for one in found if not isinstance(one, str) and (policy.one_shot or first in kept(one.context))]
        done = [one.context for one in mine if isinstance(one, Done) and one.context.items]
        return (min(done, key=walk.rank) if done else None), [one for one in mine if isinstance(one, Waiting)]

    def after_match(match: Context) -> None:
        nonlocal fresh_from
        matches.append(match)
        keys = [event.key for name, event in events_of(match.items) if name == policy.target]
        if policy.skip == "past last":
            instances.clear()
            fresh_from = (10**30,)
        elif policy.skip in ("to first", "to last") and keys:
            key = min(keys) if policy.skip == "to first" else max(keys)
            instances[:] = [one for one in instances if _id(one[0]) >= key]
            fresh_from = max(key, fresh_from or key)

    def feed(inputs: tuple[Input, ...], given: Input) -> bool:
        """Feed one instance; tell whether it took the input."""
        place = instances.index(inputs)
        new = (*inputs, given)
        match, waiting = look(new)
        if match is not None:
            instances.pop(place)
            after_match(match)
            return True
        if not waiting:
            instances.pop(place)
            return False
        instances[place] = new
        return any(_id(given) in one.context.taken for one in waiting)

    if policy.one_shot:
        instances.append((Now(-(10**15)),))
    for offer in [*offers, None]:
        time = until if offer is None else offer.event.high
        while clock <= time:
            for inputs in instances[:]:
                if inputs in instances:
                    feed(inputs, Now(clock))
            clock += SECOND
        clock = max(clock - SECOND, 0) if clock > time else clock
        if offer is None:
            break
        consumed, fresh_from = False, None
        for inputs in instances[:]:
            if inputs in instances:
                consumed = feed(inputs, offer)
                if consumed and policy.skip == "chronicle":
                    break
        if (consumed and policy.skip == "chronicle") or policy.one_shot:
            continue
        if fresh_from is not None and offer.key < fresh_from:
            continue
        match, waiting = look((offer,))
        if match is not None:
            after_match(match)
        elif waiting:
            instances.append((offer,))
    return matches
