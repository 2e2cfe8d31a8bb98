"""`Automaton`: a set of strings as a minimal finite automaton, so that relations between patterns are decided exactly.

Prefixes, ranges, suffixes, substrings and LIKE patterns are regular languages, and so are their unions, intersections
and complements. "Does every string with the suffix 'ab' contain 'b'?" is therefore answered by a walk over two small
graphs instead of a table of rules. Automata are minimal and numbered breadth first: equal languages have equal
automata.

The alphabet is all of Unicode; the edges of a state are therefore runs of code points, `((end, target), …)`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fieldfare.filters.budget import spend
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.machines import MAX_STATES, Machine, TooComplex

Runs: TypeAlias = tuple[tuple[int, int], ...]
CODE_POINTS: Final = 0x110000
MAX_PAIRS: Final = 2000
"""pairs of states of two automata; an automaton is compared with many others, and no comparison may take long"""
MAX_PIECES: Final = 64
"""a union of at most so many intervals is represented by intervals, in normal form"""


@dataclass(frozen=True, slots=True)
class Automaton:
    """A minimal deterministic automaton; the start state is 0."""

    accepting: tuple[bool, ...]
    edges: tuple[Runs, ...]

    def begin(self) -> Hashable:
        """Return the start state, which always is 0."""
        return 0

    def breaks(self, state: Hashable) -> Iterable[int]:
        """Return the ends of the runs of a state."""
        return (end for end, _ in self._runs(state))

    def step(self, state: Hashable, char: str) -> Hashable:
        """Return the target of the run that contains the character."""
        return next(target for end, target in self._runs(state) if ord(char) < end)

    def accepts(self, state: Hashable) -> bool:
        """Tell whether the string read so far is in the language."""
        assert isinstance(state, int)
        return self.accepting[state]

    def _runs(self, state: Hashable) -> Runs:
        assert isinstance(state, int)
        return self.edges[state]

    @property
    def is_empty(self) -> bool:
        """Tell whether the automaton accepts no string."""
        return not any(self.accepting)

    @property
    def is_full(self) -> bool:
        """Tell whether the automaton accepts every string."""
        return all(self.accepting)

    def __invert__(self) -> Automaton:
        return Automaton(tuple(not accepts for accepts in self.accepting), self.edges)

    def shortest(self) -> str:
        """Return a shortest accepted string; the language must not be empty."""
        texts = {0: ""}
        queue = [0]
        for state in queue:
            if self.accepting[state]:
                return texts[state]
            low = 0
            for end, target in self.edges[state]:
                if target not in texts:
                    texts[target] = texts[state] + chr(low)
                    queue.append(target)
                low = end
        raise ValueError("it accepts nothing")

    def __ge__(self, other: Automaton) -> bool:
        return not _reaches(self, other, lambda mine, theirs: theirs and not mine)

    def overlaps(self, other: Automaton) -> bool:
        """Tell whether some string is accepted by both automata."""
        return _reaches(self, other, lambda mine, theirs: mine and theirs)


def build(machines: Sequence[Machine], accepts: Callable[[Sequence[bool]], bool]) -> Automaton:
    """Return the minimal automaton of a Boolean combination of machines that read the same string side by side."""
    spend(8 * len(machines))
    begin = tuple(machine.begin() for machine in machines)
    numbers: dict[tuple[Hashable, ...], int] = {begin: 0}
    queue = [begin]
    accepting: list[bool] = []
    edges: list[Runs] = []
    for state in queue:
        pairs = list(zip(machines, state, strict=True))
        accepting.append(accepts([machine.accepts(part) for machine, part in pairs]))
        starts = sorted({0}.union(*(map(_no_surrogate, machine.breaks(part)) for machine, part in pairs)))
        spend(4 * len(starts) * sum(len(part) if isinstance(part, frozenset) else 1 for part in state))
        runs: list[tuple[int, int]] = []
        for low, high in zip(starts, [*starts[1:], CODE_POINTS], strict=True):
            if low >= CODE_POINTS:
                break
            after = tuple(machine.step(part, chr(low)) for machine, part in pairs)
            if after not in numbers:
                numbers[after] = len(queue)
                queue.append(after)
                if len(queue) > MAX_STATES:
                    raise TooComplex(f"more than {MAX_STATES} states")
            runs.append((high, numbers[after]))
        edges.append(_joined(runs))
    return _minimal(accepting, edges)


def _no_surrogate(code: int) -> int:
    """Move a break out of the surrogates: no string in UTF-8 contains one, so no run may begin among them."""
    return 0xE000 if 0xD800 <= code < 0xE000 else code


def _joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """Join neighbouring runs that have the same target."""
    out: list[tuple[int, int]] = []
    for end, target in runs:
        if out and out[-1][1] == target:
            out[-1] = (end, target)
        else:
            out.append((end, target))
    return tuple(out)


def _minimal(accepting: Sequence[bool], edges: Sequence[Runs]) -> Automaton:
    """Minimise by Moore's refinement and number the states breadth first, which gives the normal form."""
    block = _blocks(accepting, edges)
    count = len(set(block))
    size = sum(map(len, edges))
    while True:
        spend(size)
        names: dict[tuple[int, Runs], int] = {}
        refined = [
            names.setdefault((block[q], _joined((end, block[to]) for end, to in edges[q])), len(names))
            for q in range(len(edges))
        ]
        if len(names) == count:
            break
        block, count = refined, len(names)
    order: dict[int, int] = {block[0]: 0}
    member = {name: q for q, name in reversed(list(enumerate(block)))}
    queue = [block[0]]
    runs: list[Runs] = []
    for name in queue:
        here: list[tuple[int, int]] = []
        for end, to in edges[member[name]]:
            if block[to] not in order:
                order[block[to]] = len(queue)
                queue.append(block[to])
            here.append((end, order[block[to]]))
        runs.append(_joined(here))
    return Automaton(tuple(accepting[member[name]] for name in queue), tuple(runs))


def _blocks(accepting: Sequence[bool], edges: Sequence[Runs]) -> list[int]:
    """Group states by their distances from acceptance and from rejection, which are equal for equivalent states.

    This first partition saves a long pattern as many rounds of refinement as the pattern has characters.
    """
    before: list[set[int]] = [set() for _ in edges]
    for state, runs in enumerate(edges):
        for _, target in runs:
            before[target].add(state)
    distances: list[list[int]] = []
    for goal in (True, False):
        distance = [0 if accepts is goal else -1 for accepts in accepting]
        queue = [state for state, accepts in enumerate(accepting) if accepts is goal]
        for state in queue:
            for earlier in before[state]:
                if distance[earlier] < 0:
                    distance[earlier] = distance[state] + 1
                    queue.append(earlier)
        distances.append(distance)
    names: dict[tuple[int, int], int] = {}
    return [names.setdefault(pair, len(names)) for pair in zip(*distances, strict=True)]


def _reaches(a: Automaton, b: Automaton, goal: Callable[[bool, bool], bool]) -> bool:
    """Tell whether some string leads both automata to a pair of states that meets the goal; may raise TooComplex."""
    seen = {(0, 0)}
    queue = [(0, 0)]
    for p, q in queue:
        if goal(a.accepting[p], b.accepting[q]):
            return True
        left, right = a.edges[p], b.edges[q]
        spend(len(left) + len(right))
        i = j = 0
        while i < len(left) and j < len(right):
            pair = (left[i][1], right[j][1])
            if pair not in seen:
                seen.add(pair)
                queue.append(pair)
                if len(queue) > MAX_PAIRS:
                    raise TooComplex(f"more than {MAX_PAIRS} pairs of states")
            step_left, step_right = left[i][0] <= right[j][0], right[j][0] <= left[i][0]
            i, j = i + step_left, j + step_right
    return False


def as_intervals(automaton: Automaton) -> Intervals | None:
    """Return the language as a union of at most `MAX_PIECES` intervals, or None if there is no such union.

    There is a union exactly if every undecided state is reached by few characters and lies on no cycle.
    """
    decided = {
        q: automaton.accepting[q] for q, runs in enumerate(automaton.edges) if len(runs) == 1 and runs[0][1] == q
    }
    found: list[str] = []  # where membership toggles, in order
    inside = False
    path: set[int] = set()
    ahead: list[tuple[int, str, bool]] = [(0, "", False)]  # no recursion: texts may be long
    while ahead:
        state, text, leaving = ahead.pop()
        if leaving:
            path.remove(state)
            continue
        if automaton.accepting[state] != inside:
            inside = not inside
            found.append(text)
        if state in decided:
            continue
        if state in path or len(found) > 2 * MAX_PIECES + 1:
            return None
        path.add(state)
        below: list[tuple[int, str, bool]] = []
        low = 0
        for end, target in automaton.edges[state]:
            chars = [chr(low)] if target in decided else _few(low, end)
            if chars is None:
                return None
            below += [(target, text + char, False) for char in chars]
            low = end
        spend(2 + len(below) + len(text) // 16)
        ahead.append((state, text, True))
        ahead += reversed(below)
    start = bool(found) and found[0] == ""
    cuts = tuple((text, 0) for text in found[start:])
    return Intervals(start, cuts) if len(cuts) <= 2 * MAX_PIECES else None  # a set and its complement alike


def _few(low: int, end: int) -> list[str] | None:
    """Return the characters of a run, or None if there are too many: membership toggles behind each of them."""
    parts = [range(low, 0xD800), range(0xE000, end)] if low < 0xD800 < end else [range(low, end)]
    return [chr(code) for part in parts for code in part] if sum(map(len, parts)) <= 2 * MAX_PIECES else None


def words(machine: Machine, alphabet: str, most: int, *, accepted: bool = True) -> list[str] | None:
    """Return the accepted strings (or the rejected ones) over a sorted alphabet; None if there are more than `most`."""
    ways: dict[Hashable, list[tuple[str, Hashable]]] = {}
    queue = [machine.begin()]
    for state in queue:
        if state not in ways:
            spend(16)
            ways[state] = [(chars, machine.step(state, chars[0])) for chars in _runs(alphabet, machine.breaks(state))]
            queue += [to for _, to in ways[state]]
    wanted = {state for state in ways if machine.accepts(state) == accepted}
    alive = set(wanted)
    while more := {state for state in ways if state not in alive and any(to in alive for _, to in ways[state])}:
        alive |= more
    found: list[str] = []
    ahead = [("", queue[0])] if queue[0] in alive else []
    while ahead:  # every text ahead leads to a word, and no two texts to the same word
        found += [text for text, state in ahead if state in wanted]
        spend(len(ahead))
        ahead = [(text + c, to) for text, state in ahead for chars, to in ways[state] if to in alive for c in chars]
        if max(len(found), len(ahead)) > most:
            return None
    return found


def _runs(alphabet: str, breaks: Iterable[int]) -> Iterator[str]:
    """Cut the alphabet into pieces at the given code points."""
    low = 0
    for code in sorted({*breaks, CODE_POINTS}):
        high = bisect_left(alphabet, code, low, key=ord)
        if low < high:
            yield alphabet[low:high]
        low = high
