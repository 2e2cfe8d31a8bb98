"""`Groups`: pytest-xdist's scheduler of groups, which goes on when a worker dies.

A test that reaches its limit of time ends its worker, and so does whatever is killed for want of memory. pytest-xdist 3.8
then gives the other workers what the dead one had done already, and the deadly test again; they die too, or wait for
ever (pytest-xdist 1323, 1327, 1371). Here only what was not begun is done elsewhere.
"""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Groups(LoadGroupScheduling):  # type: ignore[misc]
    """Tests by group, each begun once."""

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
        """Note that a test is done; a report of a worker that was taken out meanwhile tells nothing new."""
        if node in self.assigned_work:
            super().mark_test_complete(node, item_index, duration)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker two tests at least, or its end: it does not begin one before it knows the next."""
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
