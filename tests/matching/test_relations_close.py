"""Relations where they are hardest to tell: ends that touch, neighbouring floats, sets, negations, many kinds at once."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.matching.strategies import read

from fieldfare.filters import Filter
from fieldfare.matching.index import Index

KERNELS = ["numba", "numpy"]
BIG = 2**53
NUMBERS = [
    "-INFINITY", str(-BIG - 1), "-1", "0", "5e-324", "1", repr(math.nextafter(1, 2)), "1.0000000000000004", "2", str(BIG), str(BIG + 1),
    str(BIG + 2), str(BIG + 3), str(BIG + 4), "INFINITY",
]  # fmt: skip
TEXTS = ["''", "'a'", "'ab'", "'abc'", "'b'", "'bc'", "'c'"]
AFFIXES = ["'a'", "'ab'", "'bc'", "'c'", "'b'"]
TIMES = [
    f"TIMESTAMP '{time}'"
    for time in (
        "0001-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.000002Z",
        "9999-12-31T23:59:59.999999Z",
    )
]  # fmt: skip
TYPES = ["NULL", "NUMBER", "STRING", "TIMESTAMP", "BYTES", "LIST", "OBJECT", "NAN", "BOOL"]


def _conditions(name: str) -> st.SearchStrategy[str]:
    ordered = st.sampled_from([NUMBERS, NUMBERS, TEXTS, TIMES])
    field = st.sampled_from([name, name, name, f"ANY {name}", f"ALL {name}"])
    constants = st.sampled_from([*NUMBERS, *TEXTS, *TIMES[1:3], "TRUE", "NULL", "X'61'"])

    def between(constants: list[str]) -> st.SearchStrategy[str]:
        return st.builds(
            lambda field, negated, ends: f"{field} {negated}BETWEEN {constants[min(ends)]} AND {constants[max(ends)]}",
            st.just(name),
            st.sampled_from(["", "NOT "]),
            st.tuples(*[st.integers(0, len(constants) - 1)] * 2),
        )

    return st.one_of(
        ordered.flatmap(
            lambda constants: st.builds(
                "{} {} {}".format,
                field,
                st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
                st.sampled_from(constants),
            )
        ),
        ordered.flatmap(between),
        st.builds(
            "{} {}IN ({})".format,
            st.just(name),
            st.sampled_from(["", "NOT "]),
            st.lists(constants, min_size=1, max_size=4).map(", ".join),
        ),
        st.builds(
            "{} {}{} {}".format,
            field,
            st.sampled_from(["", "NOT "]),
            st.sampled_from(["STARTS WITH", "ENDS WITH", "CONTAINS"]),
            st.sampled_from(AFFIXES),
        ),
        st.builds("{} LIKE {}".format, st.just(name), st.sampled_from(["'a%c'", "'a_%'", "'%b%'"])),
        st.builds("{} IS {}{}".format, st.just(name), st.sampled_from(["", "NOT "]), st.sampled_from(TYPES)),
        st.builds("{}EXISTS {}".format, st.sampled_from(["", "NOT "]), st.just(name)),
        st.just(f"{name} + 1 > 2"),
    )


texts = st.recursive(
    st.sampled_from(["a", "a", "b"]).flatmap(_conditions),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=4,
)
close = texts.map(read).filter(lambda found: found is not None)


def check(index: Index[int], stored: dict[int, Filter], wanted: Filter) -> None:
    assert index.covering(wanted) == sorted(i for i, g in stored.items() if g.covers(wanted))
    assert set(index.may_cover(wanted)) >= set(index.covering(wanted))
    assert index.covered(wanted) == sorted(i for i, g in stored.items() if wanted.covers(g))
    assert index.overlapping(wanted) == sorted(i for i, g in stored.items() if wanted.overlaps(g))


@few(15)
@given(
    kernels=st.sampled_from(KERNELS),
    stored=st.lists(close, min_size=1, max_size=5),
    asked=st.lists(close, min_size=1, max_size=3),
    drain=st.booleans(),
)
def test_of_filters_that_touch(kernels: str, stored: list[Filter], asked: list[Filter], drain: bool) -> None:
    index: Index[int] = Index(enumerate(stored), kernels=kernels)
    if drain:
        index.compact()
    for wanted in (*asked, *stored):
        check(index, dict(enumerate(stored)), wanted)
