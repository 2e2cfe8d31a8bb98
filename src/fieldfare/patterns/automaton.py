"""The compiler of trees into automata, operator by operator as in the literature.

An automaton has an initial state, ordinary states, generative states (entered when a part is detected) and time states
(which start a timer). A state with an atom looks only at events of the domain; the transition is labelled with the
names of the atom. Other transitions are ε. Both come in two flavours: *weak*, where the next event must follow in the
total order, and *strong*, where the next event must begin after the end of all before. The barrier of a strong
transition holds for every event of the right operand and no further: ε-transitions therefore carry *effects* on the
registers of a run.

States with parallel parts hold two automata. The number of states is linear in the size of the tree, bounds of
repetitions written out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from fieldfare.filters.errors import FilterTooComplex
from fieldfare.patterns.tree import (
    After,
    Alternation,
    At,
    Atom,
    Concatenation,
    Parallel,
    Repetition,
    Sequence,
    Timing,
    Tree,
    Within,
    may_be_empty,
)

MAX_STATES: Final = 10_000
"""states of a pattern, with all repetitions written out"""

Kind: TypeAlias = Literal["initial", "ordinary", "generative", "time"]
Flavour: TypeAlias = Literal["weak", "strong"]
Label: TypeAlias = str | int
"""Name of a set of events, or number of a timer."""


class Mark(NamedTuple):
    """Note in a register: the operand which begins here has no event yet."""

    register: int


class Barrier(NamedTuple):
    """Let later events begin after the last event, except where the register of the left operand notes no event."""

    register: int
    unless: int = -1


class Lift(NamedTuple):
    """Let a barrier end with the right operand of a sequence."""

    register: int


class Start(NamedTuple):
    """Start a timer; the timer of a limit starts with the next event."""

    timer: int


class Stop(NamedTuple):
    """Stop a timer at the end of the operand that may name the timer."""

    timer: int


class Count(NamedTuple):
    """Count another part of a repetition."""

    repetition: int


Effect: TypeAlias = Mark | Barrier | Lift | Start | Stop | Count


class Timer(NamedTuple):
    """A timer of a timing, or of a limit if `when` is a duration."""

    name: str
    when: After | At | int


class Edge(NamedTuple):
    """A transition; without labels an ε-transition, with effects."""

    source: int
    target: int
    labels: tuple[Label, ...] = ()
    flavour: Flavour = "weak"
    effects: tuple[Effect, ...] = ()


class Part(NamedTuple):
    """The atom of a state, with names and domain as labels."""

    names: tuple[Label, ...]
    domain: tuple[Label, ...]
    negated: bool


@dataclass(slots=True)
class State:
    """A state, with an atom, with two parallel automata, or with neither."""

    kind: Kind = "ordinary"
    atom: Part | None = None
    parallel: tuple[Automaton, Automaton] | None = None
    tree: Parallel | None = None
    """The tree of the parallel automata."""


@dataclass(slots=True)
class Shared:
    """Timers and repetitions of a whole pattern, parallel parts included."""

    timers: list[Timer] = field(default_factory=list)
    repetitions: list[bool] = field(default_factory=list)
    """By repetition with a preference: whether many are preferred."""
    states: int = 0


@dataclass(slots=True)
class Automaton:
    """States, numbered from 0, and transitions."""

    shared: Shared
    states: list[State] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    registers: int = 0
    start: int = 0
    end: int = 0

    def add(self, state: State) -> int:
        """Add a state and return the number of the state."""
        self.shared.states += 1
        if self.shared.states > MAX_STATES:
            raise FilterTooComplex(f"the pattern has more than {MAX_STATES} states: use lower bounds of repetitions")
        self.states.append(state)
        return len(self.states) - 1

    def link(self, source: int, target: int, *effects: Effect, flavour: Flavour = "weak") -> None:
        """Add an ε-transition with effects on the registers of a run."""
        self.edges.append(Edge(source, target, (), flavour, effects))

    def register(self) -> int:
        """Return the number of a new register."""
        self.registers += 1
        return self.registers - 1


def compile_tree(tree: Tree) -> Automaton:
    """Return the automaton of a tree; ValueError for a tree without a meaning.

    >>> automaton = compile_tree(Concatenation(Atom(("A",)), Atom(("B",))))
    >>> [state.kind for state in automaton.states], [edge.flavour for edge in automaton.edges]
    (['initial', 'ordinary', 'ordinary', 'generative'], ['weak', 'weak', 'weak'])
    """
    return _automaton(tree, Shared(), {})


def _automaton(tree: Tree, shared: Shared, timers: dict[str, int]) -> Automaton:
    automaton = Automaton(shared)
    automaton.start, automaton.end = _Builder(automaton).build(tree, timers)
    automaton.states[automaton.start].kind = "initial"
    automaton.states[automaton.end].kind = "generative"
    return automaton


class _Builder:
    """The constructions: each returns the first and the last state of the automaton of a node."""

    def __init__(self, automaton: Automaton) -> None:
        self._all = automaton

    def build(self, tree: Tree, timers: dict[str, int]) -> tuple[int, int]:
        """Add the states of a tree; atoms may name the `timers`."""
        match tree:
            case Atom():
                return self._atom(tree, timers)
            case Concatenation():
                first, middle = self.build(tree.left, timers)
                then, last = self.build(tree.right, timers)
                self._all.link(middle, then)
                return first, last
            case Sequence():
                return self._sequence(tree, timers)
            case Alternation():
                return self._alternation(tree, timers)
            case Repetition():
                return self._repetition(tree, timers)
            case Timing():
                return self._timing(tree, timers)
            case Within():
                return self._within(tree, timers)
            case Parallel():
                return self._parallel(tree, timers)

    def _atom(self, atom: Atom, timers: dict[str, int]) -> tuple[int, int]:
        def labels(names: tuple[str, ...]) -> tuple[Label, ...]:
            return tuple(timers.get(name, name) for name in names)

        part = Part(labels(atom.names), labels(atom.within), atom.negated)
        first, last = self._all.add(State(atom=part)), self._all.add(State())
        accepted = part.names
        if atom.negated:
            accepted = tuple(label for label in part.domain if label not in part.names)
        self._all.edges.append(Edge(first, last, accepted))
        return first, last

    def _sequence(self, tree: Sequence, timers: dict[str, int]) -> tuple[int, int]:
        first = self._all.add(State())
        barrier, empty = self._all.register(), -1
        left, middle = self.build(tree.left, timers)
        if may_be_empty(tree.left):
            empty = self._all.register()
            self._all.link(first, left, Mark(empty))
        else:
            self._all.link(first, left)
        right, end = self.build(tree.right, timers)
        last = self._all.add(State())
        self._all.link(middle, right, Barrier(barrier, empty), flavour="strong")
        self._all.link(end, last, Lift(barrier))
        return first, last

    def _alternation(self, tree: Alternation, timers: dict[str, int]) -> tuple[int, int]:
        first, last = self._all.add(State()), self._all.add(State())
        for branch in (tree.left, tree.right):
            start, end = self.build(branch, timers)
            self._all.link(first, start)
            self._all.link(end, last)
        return first, last

    def _repetition(self, tree: Repetition, timers: dict[str, int]) -> tuple[int, int]:
        count: tuple[Effect, ...] = ()
        if tree.greedy is not None:
            if may_be_empty(tree.body):
                raise ValueError("a repetition with a preference needs a body with at least one event")
            count = (Count(len(self._all.shared.repetitions)),)
            self._all.shared.repetitions.append(tree.greedy)
        first = at = self._all.add(State())
        last = self._all.add(State())
        for copy in range(tree.low if tree.high is None else tree.high):
            if copy >= tree.low:
                self._all.link(at, last)
            start, end = self.build(tree.body, timers)
            self._all.link(at, start, *count)
            at = end
        if tree.high is None:
            start, end = self.build(tree.body, timers)
            loop = self._all.add(State())
            self._all.link(at, loop)
            self._all.link(loop, start, *count)
            self._all.link(end, loop)
            at = loop
        self._all.link(at, last)
        return first, last

    def _timing(self, tree: Timing, timers: dict[str, int]) -> tuple[int, int]:
        if may_be_empty(tree.left):
            raise ValueError("the left operand of a timing needs at least one event: the timer starts with its end")
        timer = len(self._all.shared.timers)
        self._all.shared.timers.append(Timer(tree.timer, tree.when))
        first, middle = self.build(tree.left, timers)
        self._all.states[middle].kind = "time"
        right, end = self.build(tree.right, timers | {tree.timer: timer})
        last = self._all.add(State())
        if tree.strong:
            barrier = self._all.register()
            self._all.link(middle, right, Barrier(barrier), Start(timer), flavour="strong")
            self._all.link(end, last, Lift(barrier), Stop(timer))
        else:
            self._all.link(middle, right, Start(timer))
            self._all.link(end, last, Stop(timer))
        return first, last

    def _within(self, tree: Within, timers: dict[str, int]) -> tuple[int, int]:
        timer = len(self._all.shared.timers)
        self._all.shared.timers.append(Timer("", tree.duration))
        first = self._all.add(State(kind="time"))
        start, end = self.build(tree.body, timers)
        last = self._all.add(State())
        self._all.link(first, start, Start(timer))
        self._all.link(end, last, Stop(timer))
        return first, last

    def _parallel(self, tree: Parallel, timers: dict[str, int]) -> tuple[int, int]:
        parts = tuple(_automaton(side, self._all.shared, timers) for side in (tree.left, tree.right))
        first, last = self._all.add(State(parallel=(parts[0], parts[1]), tree=tree)), self._all.add(State())
        self._all.edges.append(Edge(first, last, ("left", "right")))
        return first, last
