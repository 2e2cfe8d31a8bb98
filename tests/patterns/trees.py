"""Random trees of the core language, and random histories for them."""

from __future__ import annotations

from hypothesis import strategies as st

from fieldfare.patterns import tree as t
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND, Occurrence

NAMES = ("A", "B", "C")


@st.composite
def atoms(draw: st.DrawFn, timers: tuple[str, ...] = ()) -> t.Atom:
    usable = NAMES + timers
    if draw(st.integers(0, 9)) == 0:
        return t.Atom(
            (draw(st.sampled_from(NAMES)),),
            tuple(draw(st.lists(st.sampled_from(usable), min_size=1, max_size=3, unique=True))),
            True,
        )
    names = tuple(draw(st.lists(st.sampled_from(usable), min_size=1, max_size=2, unique=True)))
    more = draw(st.lists(st.sampled_from(usable), max_size=2, unique=True))
    domain = tuple(dict.fromkeys((*names, *more)))
    return t.Atom(names, () if domain == names else domain)


def trees(depth: int = 3, timers: tuple[str, ...] = (), *, preferences: bool = False) -> st.SearchStrategy[t.Tree]:
    """Trees that compile."""
    if depth == 0:
        return atoms(timers)
    less = trees(depth - 1, timers, preferences=preferences)
    solid = less.filter(lambda tree: not t.may_be_empty(tree))
    name = f"T{depth}"
    inner = trees(depth - 1, (*timers, name), preferences=preferences)
    when = st.integers(1, 4).map(lambda n: t.After(n * SECOND)) | st.integers(0, 9).map(lambda n: t.At(n * SECOND))
    bounds = st.sampled_from([(0, None), (0, None), (1, None), (0, 1), (2, 2), (1, 3)])
    kinds: list[st.SearchStrategy[t.Tree]] = [
        atoms(timers),
        st.builds(t.Concatenation, less, less),
        st.builds(t.Sequence, less, less),
        st.builds(t.Alternation, less, less),
        st.builds(t.Parallel, less, less),
        st.builds(lambda body, both: t.Repetition(body, both[0], both[1]), less, bounds),
        st.builds(t.Timing, solid, inner, st.just(name), when, st.booleans()),
        st.builds(t.Within, less, st.integers(1, 5).map(lambda n: n * SECOND)),
    ]
    if preferences:
        kinds.append(
            st.builds(lambda body, both, many: t.Repetition(body, both[0], both[1], many), solid, bounds, st.booleans())
        )
    return st.one_of(kinds)


@st.composite
def offers(draw: st.DrawFn, size: int = 7, *, ordered: bool = True) -> list[Offer]:
    """A history with overlapping and equal stamps; an event may have two of the names."""
    found = []
    for number in range(draw(st.integers(0, size))):
        high = draw(st.integers(0, 9))
        low = max(0, high - draw(st.sampled_from([0, 0, 0, 1, 3])))
        labels = frozenset(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)))
        fields = {"name": "".join(sorted(labels)) + str(number), "v": draw(st.integers(0, 3))}
        event = Occurrence(low * SECOND, high * SECOND, fields, "", number)
        found.append(Offer(event, event.key, labels, fields))
    return sorted(found, key=lambda one: one.key) if ordered else found
