"""Random runs of durable nodes under the trace checker: `python -m tools.simulation.cores --runs 100000 --seed 1`.

Run number n has the seed `seed + n`, so a commit and a seed repeat a run: `--runs 1 --seed n`. A failing run is shrunk,
and printed as a plan and as a story. With `--impatient`, clients have replica holders take over from nodes that come
back; then no order is judged, and only runs of clients and nodes count.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pool
from typing import NamedTuple

from fieldfare.core.core import Core
from fieldfare.simulation.core_runs import run
from fieldfare.simulation.plans import Plan, draw, impatient
from fieldfare.simulation.plans import text as plan_text
from fieldfare.simulation.shrinking import shrink
from fieldfare.simulation.story import Note, text

BLOCK = 100
"""runs between two lines of progress, for each job"""


RULES = {
    "safety": "Nobody gets an event twice, or one that was not published, or one that nobody there asks for.",
    "attribution": "An event names all subscriptions for which it comes.",
    "liveness": "An event that was accepted reaches everybody who asked for it, before the network is at rest.",
    "fifo": "The events of a publisher come in the order in which they were published.",
    "causal": "An event comes behind all events that may have caused it.",
    "protocol": "Nodes come to rest, keep nothing that nobody needs, and log no error where nothing was lost.",
}
"""what the specification demands"""


class Block(NamedTuple):
    """The outcome of consecutive runs."""

    runs: int
    steps: int
    judged: int
    """deliveries whose absence would have been found"""
    bad: list[tuple[int, str]]
    """seeds of failed runs, each with the first problem"""
    seconds: float
    """of CPU time"""

    def with_more(self, other: Block) -> Block:
        """Return the sum of two blocks."""
        counts = self.runs + other.runs, self.steps + other.steps, self.judged + other.judged
        return Block(*counts, [*self.bad, *other.bad], self.seconds + other.seconds)


def failure(plan: Plan, make_core: Callable[..., Core] = Core) -> str:
    """Return the first problem of a run with its rule, or nothing."""
    try:
        found = run(plan, make_core=make_core).violations
    except Exception as error:  # noqa: BLE001 - whatever ends a run is a finding
        return f"{type(error).__name__}: {error}"
    return f"{found[0].rule}: {found[0].problem}" if found else ""


def kind_of(problem: str) -> tuple[str, ...]:
    """Return the first words of a problem without names and numbers: a smaller plan must fail in the same way.

    >>> kind_of("liveness: to b0.1: ('b1.0', 2) is missing, due for ['two']")
    ('liveness:', 'to', 'is', 'missing,')
    """
    return tuple(word for word in problem.split() if not any(letter.isdigit() for letter in word))[:4]


def planned(seed: int, *, hasty: bool = False) -> Plan | None:
    """Return the plan of a seed, or the same with impatient clients, if that can be."""
    return impatient(draw(seed)) if hasty else draw(seed)


def block(first: int, last: int, *, hasty: bool = False) -> Block:
    """Run consecutive seeds."""
    begin = time.process_time()
    runs = steps = judged = 0
    bad = []
    with _one_collection():
        for seed in range(first, last):
            plan = planned(seed, hasty=hasty)
            if plan is None:
                continue
            runs += 1
            try:
                outcome = run(plan)
            except Exception as error:  # noqa: BLE001
                bad.append((seed, f"{type(error).__name__}: {error}"))
                continue
            steps += outcome.steps
            judged += outcome.tally.judged
            if outcome.violations:
                bad.append((seed, f"{outcome.violations[0].rule}: {outcome.violations[0].problem}"))
    return Block(runs, steps, judged, bad, time.process_time() - begin)


@contextmanager
def _one_collection() -> Iterator[None]:
    """Collect the garbage of a block at the end: a run makes many objects that live as long as the run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
        gc.collect()
        gc.freeze()  # what is left are caches


def tell(seed: int, make_core: Callable[..., Core] = Core, *, hasty: bool = False) -> str:
    """Return the smallest plan that fails like the run of a seed, and its story."""
    plan = planned(seed, hasty=hasty)
    assert plan is not None
    kind = kind_of(failure(plan, make_core))
    plan = shrink(plan, lambda smaller: kind_of(failure(smaller, make_core)) == kind)
    story: list[Note] = []
    try:
        run(plan, make_core=make_core, story=story)
    except Exception as error:  # noqa: BLE001
        story.append(Note(0.0, "", repr(error)))
    problem = failure(plan, make_core)
    return f"{plan_text(plan)}\n\n{text(story)}\n\n{problem}\n{RULES.get(problem.partition(':')[0], '')}"


def blocks(first: int, runs: int, jobs: int, *, hasty: bool = False) -> Iterator[Block]:
    """Run all seeds, in as many processes as there are jobs."""
    work = partial(_block, hasty=hasty)
    parts = [(start, min(start + BLOCK, first + runs)) for start in range(first, first + runs, BLOCK)]
    if jobs == 1:
        yield from map(work, parts)
        return
    with Pool(jobs) as pool:
        yield from pool.imap_unordered(work, parts)


def _block(part: tuple[int, int], *, hasty: bool) -> Block:
    return block(*part, hasty=hasty)


def main(arguments: list[str]) -> int:
    """Run, and return 1 if any run violates the specification."""
    parser = argparse.ArgumentParser(prog="tools.simulation.cores", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--impatient", action="store_true", help="take-overs from nodes that come back")
    options = parser.parse_args(arguments)
    done, begin = Block(0, 0, 0, [], 0.0), time.monotonic()
    for one in blocks(options.seed, options.runs, options.jobs, hasty=options.impatient):
        done = done.with_more(one)
        rate = done.runs / max(done.seconds, 1e-9)
        progress = f"{done.runs} of {options.runs} runs, {rate:.0f} a CPU second, {len(done.bad)} with violations"
        sys.stdout.write(f"\r{progress}" if sys.stdout.isatty() else f"{progress}\n" * (done.runs % 1000 < BLOCK))
        sys.stdout.flush()
        for seed, problem in one.bad:
            sys.stdout.write(f"\nseed {seed}: {problem}\n")
    for seed, _ in sorted(done.bad)[:3]:
        sys.stdout.write(f"\nThe run of seed {seed}, shrunk:\n{tell(seed, hasty=options.impatient)}\n")
    sys.stdout.write(
        f"\n{done.runs} runs ({done.steps} steps of cores, {done.judged} deliveries judged) in {done.seconds:.0f} CPU"
        f" seconds and {time.monotonic() - begin:.0f} s: {done.runs / max(done.seconds, 1e-9):.0f} runs a CPU second,"
        f" {len(done.bad)} with violations\n"
    )
    return 1 if done.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
