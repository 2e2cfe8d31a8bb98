"""`sweep`: one generator in the manner of BE-Gen, with a parameter for everything that makes matching easy or hard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fieldfare_lab.bench.design_workloads import zipf
from fieldfare_lab.bench.reference_workloads import Made
from fieldfare_lab.bench.rules import Predicate


@dataclass(frozen=True)
class Sweep:
    """The parameters of the generator; change a single parameter at a time to see its effect."""

    dimensions: int = 50
    """number of attributes in all"""
    cardinality: int = 1000
    """number of values of an attribute"""
    skew: float = 1.0
    """Zipf exponent of the choice of attributes; 0 is uniform"""
    value_skew: float = 0.0
    """Zipf exponent of the choice of values"""
    selectivity: float = 0.2
    """mean share of the domain that a range covers"""
    equality: float = 0.3
    """share of predicates that are equalities"""
    predicates: int = 5
    """number of predicates in a filter"""
    attributes: int = 25
    """number of attributes in an event"""

    def __post_init__(self) -> None:
        if not 1 <= self.predicates <= self.dimensions or not 1 <= self.attributes <= self.dimensions:
            raise ValueError("predicates and attributes must be between 1 and dimensions")
        if not 0 < self.selectivity <= 1 or not 0 <= self.equality <= 1 or self.cardinality < 2:
            raise ValueError("selectivity and equality are shares up to 1; cardinality is at least 2")

    def make(self, rng: Generator, filters: int, events: int) -> Made:
        """Generate so many rules and events."""
        used = self._chosen(rng, filters, self.predicates)
        shape = used.shape
        centre = zipf(rng, self.cardinality, self.value_skew, shape)
        share = np.minimum(1, self.selectivity * rng.uniform(0.5, 1.5, shape))
        width = np.maximum(1, (share * self.cardinality).astype(int))
        low = np.clip(centre - width // 2, 0, self.cardinality - width)
        columns = (used, rng.random(shape) < self.equality, centre, low, low + width - 1)
        rules = [
            [
                Predicate(f"d{d}", "=", (value,)) if single else Predicate(f"d{d}", "between", (start, end))
                for d, single, value, start, end in zip(*row, strict=True)
            ]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]
        present = self._chosen(rng, events, self.attributes)
        values = zipf(rng, self.cardinality, self.value_skew, present.shape).tolist()
        pairs = zip(present.tolist(), values, strict=True)
        return rules, [{f"d{d}": value for d, value in zip(ds, vs, strict=True)} for ds, vs in pairs]

    def _chosen(self, rng: Generator, rows: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Draw `count` different attributes for each row; popular attributes come more often (Gumbel top-k)."""
        weight = -self.skew * np.log(np.arange(1, self.dimensions + 1))
        chosen = [
            np.argsort(-(weight + rng.gumbel(size=(min(4096, rows - at), self.dimensions))), axis=1)[:, :count]
            for at in range(0, rows, 4096)
        ]
        return np.sort(np.concatenate(chosen), axis=1)
