"""`RootMerger`: fewer filters with the same meaning as a table's roots, kept right while roots come and go.

The *exported* set, which neighbours learn, is the roots with some of them merged. A merger remembers its *components*,
the roots of which the merger was made, and the other roots below: no root is ever forgotten. When a component leaves,
the merger is made anew from the others, or taken apart and its roots merged again: the exported set again means exactly
the roots. Neighbours get the difference of the exported sets; a receiver that cannot apply the difference at once adds
first and removes then: too much for a moment, never too little.

The algorithm is the dynamic root merging of the thesis (§13.6 of our specification), cheaper in three places. Partners
are found by shared parts (see `rules`). A covered root is kept by a *single* merger above, not by all: when the merger
goes, the root looks for another. So every step compares with the exported set only, which merging keeps small, and not
with all roots. And a merger of filters that differ in a single field is not taken apart when a component leaves.

After each change, with E exported, R the roots, and an unmerged root as a bundle of its own:

- every root is covered by a filter of E (nothing is lost);
- E means no more than R, if merging is perfect and not lazy: each merger is the exact union of its components;
- the components of a merger are two roots or more, and of no other merger;
- a root below some merger is kept by exactly one merger, as a component or as covered; the other roots are in E;
- no filter of E covers another, if no root does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.filters.statistics import Statistics, Uniform
from fieldfare.tables.base import Tests
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.merging.rules import PERFECT, MergeResult, Merging, Partners, share, weight
from fieldfare.tables.updates import TableUpdate


class Merger(NamedTuple):
    """A merger with its components, the covered roots and its waste."""

    filter: Filter
    components: tuple[Filter, ...]
    covered: tuple[Filter, ...]
    waste: float


@dataclass(eq=False, slots=True)
class _Bundle:
    """An exported filter and its roots: a merger, or a single unmerged root."""

    filter: Filter
    components: dict[Filter, None]
    covered: dict[Filter, None] = field(default_factory=dict)
    waste: float = 0.0
    strays: int = 0
    """reported events that the merger let pass although no root matches them"""

    @property
    def join(self) -> MergeResult:
        return MergeResult(self.filter, self.waste)

    def members(self) -> list[Filter]:
        """Return all roots of the bundle, components first."""
        return [*self.components, *self.covered]


class RootMerger:
    """The exported set of a changing set of roots.

    >>> from fieldfare.filters import parse
    >>> low, high = parse("price < 10 AND symbol = 'IBM'"), parse("price > 20 AND symbol = 'IBM'")
    >>> merger = RootMerger()
    >>> merger.change(joined=[low]).added == (low,)
    True
    >>> [str(filter) for filter in merger.change(joined=[high]).added]
    ["(price < 10 OR price > 20) AND symbol = 'IBM'"]
    >>> merger.change(left=[low]).added == (high,)
    True
    """

    def __init__(self, merging: Merging = PERFECT, tests: Tests | None = None) -> None:
        """Make a merger without roots; comparisons are counted in `tests`, attempts to merge in `attempts`."""
        self.merging = merging
        self.tests = tests or Tests()
        self.attempts = 0
        self._bundle_of: dict[Filter, _Bundle] = {}
        self._mergers: dict[Filter, _Bundle] = {}
        self._free: dict[Filter, _Bundle] = {}
        self._partners = Partners(merging.keys)
        self._age: dict[Filter, int] = {}
        self._clock = count()
        self._before: dict[Filter, bool] = {}
        """whether a filter was exported before the present change, for all filters that the change touched"""

    # What there is

    def roots(self) -> list[Filter]:
        """Return the roots in their order of arrival."""
        return list(self._bundle_of)

    def exported(self) -> list[Filter]:
        """Return the filters for neighbours: mergers, then the other roots, each in order of age."""
        return [*self._mergers, *self._free]

    def mergers(self) -> list[Merger]:
        """Return the mergers with their components and covered roots."""
        return [Merger(m.filter, tuple(m.components), tuple(m.covered), m.waste) for m in self._mergers.values()]

    def merges(self, filter: Filter) -> bool:
        """Tell whether an exported filter is a merger."""
        return filter in self._mergers

    # Changes

    def change(self, joined: Iterable[Filter] = (), left: Iterable[Filter] = ()) -> TableUpdate:
        """Let roots join and others leave at once; return the change of the exported set.

        A deleted root leaves, and so does a root below a new root. A root that joins and leaves at once stays.
        """
        coming = dict.fromkeys(joined)
        going = [root for root in dict.fromkeys(left) if root in self._bundle_of and root not in coming]
        new = [root for root in coming if root not in self._bundle_of]
        self._before = {}
        orphans = self._leave(going)
        for root in [*new, *orphans]:
            self._join(root)
        return self._difference()

    def follow(self, roots: Iterable[Filter]) -> TableUpdate:
        """Make these filters the roots, and no others."""
        wanted = dict.fromkeys(roots)
        return self.change(wanted, [root for root in self._bundle_of if root not in wanted])

    def unwanted(self, event: Mapping[str, object]) -> TableUpdate:
        """Report an event that passed although no root matches the event; mergers with too much waste are made anew.

        A merger that was imperfect from the start comes out unchanged: better statistics would help, a new attempt does
        not.
        """
        self._before = {}
        patience = self.merging.patience
        if patience is None:
            return TableUpdate()
        let_pass = [m for m in self._mergers.values() if m.waste and self.tests.matches(m.filter, event)]
        for bundle in let_pass:
            bundle.strays += 1
        for root in self._remake([bundle for bundle in let_pass if bundle.strays >= patience]):
            self._join(root)
        return self._difference()

    def relieve(self, unwanted: Sequence[Mapping[str, object]], allowed: int) -> TableUpdate:
        """Take mergers apart until at most `allowed` of some unwanted events would have passed.

        The mergers with most of the events go first. The roots merge again as far as `merging` allows now.
        """
        self._before = {}
        left = {
            bundle: {number for number, event in enumerate(unwanted) if self.tests.matches(bundle.filter, event)}
            for bundle in self._mergers.values()  # also those without waste, as wrong statistics say
        }
        apart: list[_Bundle] = []
        while left and len(set().union(*left.values())) > allowed:
            worst = max(left, key=lambda bundle: len(left[bundle]))
            if not left.pop(worst):
                break
            apart.append(worst)
        for bundle in apart:  # all bundles first, because none may merge with a bundle that is about to go
            self._take(bundle)
        for root in [root for bundle in apart for root in self._homeless(bundle.members())]:
            self._join(root)
        return self._difference()

    def _difference(self) -> TableUpdate:
        now = {filter: filter in self._mergers or filter in self._free for filter in self._before}
        return TableUpdate(
            tuple(filter for filter, before in self._before.items() if now[filter] and not before),
            tuple(filter for filter, before in self._before.items() if before and not now[filter]),
        )

    # Leaving

    def _leave(self, going: Iterable[Filter]) -> list[Filter]:
        """Take roots out; return the remaining roots of dissolved mergers, which must join again."""
        lost: dict[_Bundle, list[Filter]] = {}
        for root in going:
            bundle = self._bundle_of.pop(root)
            if root in bundle.covered:
                del bundle.covered[root]
            elif len(bundle.components) == 1 and bundle not in lost:
                self._take(bundle)
            else:
                del bundle.components[root]
                lost.setdefault(bundle, []).append(root)
        return self._remake([bundle for bundle, roots in lost.items() if not self._tolerated(bundle, roots)])

    def _tolerated(self, bundle: _Bundle, lost: Iterable[Filter]) -> bool:
        """Tell whether a merger may live on without some components.

        The share of the components counts as waste, even if a new root covers them: the new root may leave unnoticed.
        """
        if not self.merging.lazy or len(bundle.components) < 2:
            return False
        waste = bundle.waste + sum(share(root, bundle.filter, self.merging.statistics) for root in lost)
        if waste > self.merging.budget:
            return False
        bundle.waste = waste
        return True

    def _remake(self, bundles: list[_Bundle]) -> list[Filter]:
        """Make mergers anew from their components; return the roots left without a merger."""
        for bundle in bundles:  # all bundles first, because none may merge with a bundle that is about to go
            self._take(bundle)
        return [root for bundle in bundles for root in self._remade(bundle)]

    def _remade(self, bundle: _Bundle) -> list[Filter]:
        union = self.merging.union(list(bundle.components)) if len(bundle.components) > 1 else None
        if union is None:
            return self._homeless(bundle.members())
        smaller = union.filter != bundle.filter
        bundle.filter, bundle.waste, bundle.strays = union.filter, union.waste, 0
        outside = [r for r in bundle.covered if smaller and not self.tests.covers(union.filter, r)]
        for root in outside:
            del bundle.covered[root]
        holder = self._holder(bundle.filter)
        if holder is not None:
            self._hold(holder, bundle.members())
        elif self.merging.cascade:
            self._grow(bundle)
        else:
            self._put(bundle)
        return self._homeless(outside)

    def _homeless(self, roots: list[Filter]) -> list[Filter]:
        for root in roots:
            del self._bundle_of[root]
        return roots

    # Joining

    def _join(self, root: Filter) -> None:
        """Find a place for a root: in a merger above, in a merger with a partner, or alone."""
        holder = self._holder(root)
        if holder is not None:
            self._hold(holder, [root])
        else:
            bundle = self._bundle_of[root] = _Bundle(root, {root: None})
            self._grow(bundle)

    def _holder(self, filter: Filter) -> _Bundle | None:
        """Return the first merger that covers a filter."""
        return next((m for m in self._mergers.values() if self.tests.covers(m.filter, filter)), None)

    def _hold(self, bundle: _Bundle, roots: Iterable[Filter]) -> None:
        """Let a merger keep roots below itself."""
        for root in roots:
            bundle.covered[root] = None
            self._bundle_of[root] = bundle

    def _grow(self, bundle: _Bundle) -> None:
        """Export a bundle, merged with a partner if there is one."""
        while (found := self._partner(bundle)) is not None:
            other, join = found
            self._take(other)
            bundle = self._united(other, bundle)
            bundle.filter, bundle.waste = join
            for small in [e for e in self._exported() if self.tests.covers(bundle.filter, e.filter)]:
                self._take(small)
                self._hold(bundle, small.members())
            if not self.merging.cascade:
                break
        self._put(bundle)

    def _partner(self, bundle: _Bundle) -> tuple[_Bundle, MergeResult] | None:
        """Return a partner for a bundle: mergers before single roots, old before young."""
        if self.merging.choice == "none":
            return None
        candidates = [self._mergers.get(f) or self._free[f] for f in self._partners.of(bundle.filter)]
        candidates.sort(key=lambda one: (one.filter in self._free, self._age[one.filter]))
        best: tuple[_Bundle, MergeResult] | None = None
        for candidate in candidates:
            self.attempts += 1
            join = self.merging.join(candidate.join, bundle.join)
            if join is not None and (best is None or self._better(join, best[1])):
                best = candidate, join
                if self.merging.choice == "first":
                    break
        return best

    def _better(self, new: MergeResult, old: MergeResult) -> bool:
        """Tell whether a merger is clearly better: less waste, or simpler, or as simple and more general."""
        ranks = (new.waste, weight(new.filter)), (old.waste, weight(old.filter))
        if ranks[0] != ranks[1]:
            return ranks[0] < ranks[1]
        return self.tests.covers(new.filter, old.filter) and not self.tests.covers(old.filter, new.filter)

    def _united(self, a: _Bundle, b: _Bundle) -> _Bundle:
        """Join two bundles; the smaller is moved, which keeps long chains of merging cheap."""
        if len(a.components) + len(a.covered) < len(b.components) + len(b.covered):
            a, b = b, a
        for root in b.members():
            self._bundle_of[root] = a
        a.components.update(b.components)
        a.covered.update(b.covered)
        a.strays += b.strays
        return a

    # The exported set

    def _exported(self) -> list[_Bundle]:
        return [*self._mergers.values(), *self._free.values()]

    def _put(self, bundle: _Bundle) -> None:
        """Add a bundle to the exported set."""
        self._before.setdefault(bundle.filter, False)
        (self._mergers if len(bundle.components) > 1 else self._free)[bundle.filter] = bundle
        self._partners.add(bundle.filter)
        self._age[bundle.filter] = next(self._clock)

    def _take(self, bundle: _Bundle) -> None:
        """Take a bundle out of the exported set."""
        self._before.setdefault(bundle.filter, True)
        (self._mergers if bundle.filter in self._mergers else self._free).pop(bundle.filter)
        self._partners.remove(bundle.filter)
        del self._age[bundle.filter]


def merged(
    filters: Iterable[Filter],
    *,
    perfect: bool = True,
    statistics: Statistics | None = None,
    budget: float = 1.0,
) -> list[Filter]:
    """Return a minimal cover, merged until no two filters merge; imperfectly on request, within a budget of waste."""
    how = Merging(imperfect=not perfect, budget=0.0 if perfect else budget, statistics=statistics or Uniform())
    merger = RootMerger(how)
    merger.change(joined=minimal_cover(filters))
    return merger.exported()
