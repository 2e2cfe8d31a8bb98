"""`Groups`: pytest-xdist's scheduler of groups, which knows what starts slowly, and goes on when a worker dies.

All tests with Spark share one worker and its Java machine: a second one would cost a minute of CPU time to get warm. So
do all that run commands, and the process that forks them (`Commands`). The group is the largest, hence the first that is
given away, and the other workers have all else. The marks of groups do not reach the scheduler: pytest-xdist 3.8 writes
them into an attribute that pytest 9 no longer reads. So the group of a test follows from its place.

A test that reaches its limit of time ends its worker, and so does whatever is killed for want of memory. pytest-xdist 3.8
then gives the other workers what the dead one had done already, and the deadly test again; they die too, or wait for
ever (pytest-xdist 1323, 1327, 1371). Here only what was not begun is done elsewhere.
"""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

SLOW_TO_START = ("tests/pipeline/", "tests/test_docs.py", "tests/cli/")


def group_of(test: str) -> str | None:
    """Return the group of a test; None if it may run anywhere.

    >>> group_of("tests/pipeline/test_sql.py::test_a_view"), group_of("tests/test_docs.py::test_examples[README.md]")
    ('slow to start', 'slow to start')
    """
    return "slow to start" if test.startswith(SLOW_TO_START) else None


class Groups(LoadGroupScheduling):  # type: ignore[misc]
    """Tests by group, each begun once."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test, or the test itself."""
        scope: str = super()._split_scope(nodeid)
        return group_of(nodeid) or scope

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a dead worker out; return the test that the worker died of."""
        units = {
            scope: [test for test, done in unit.items() if not done]
            for scope, unit in self.assigned_work.pop(node).items()
        }
        left = [test for unit in units.values() for test in unit]
        for scope, unit in units.items():
            if rest := {test: False for test in unit if test != left[0]}:
                self.workqueue[scope] = rest
        for other in self.nodes:
            self._reschedule(other)
        return left[0] if left else None

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a test that is done; a report of a worker that was taken out meanwhile tells nothing new.

        pytest-xdist 3.8 keeps all tests that are done, and counts through them after each test: ten seconds in all.
        """
        work = self.assigned_work.get(node)
        if work is None:
            return
        test = self.registered_collections[node][item_index]
        scope = self._split_scope(test)
        del work[scope][test]
        if not work[scope]:
            del work[scope]
        self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker two tests at least, or its end: it does not begin one before it knows the next.

        A worker that stands in for a dead one gets its first tests when it has collected them: here may be too early.
        """
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
