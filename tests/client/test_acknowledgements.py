from hypothesis import given
from hypothesis import strategies as st

from fieldfare.client.acknowledgements import Allowance, Outstanding


class FakeNode:
    """What a node does with deliveries: see `fieldfare.core.core`."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.taken = self.done = self.credit = self.sent = 0

    def send(self) -> int | None:
        """The next delivery, if the client may have it."""
        number = next((number for number in self.numbers if number > max(self.taken, self.done)), None)
        if number is None or self.credit == 0:
            return None
        self.taken, self.credit = number, self.credit - 1
        self.sent = max(self.sent, number)
        return number

    def acknowledge(self, number: int) -> None:
        assert self.done < number <= self.sent, "the node would refuse this"
        self.done = number

    def attach(self) -> None:
        self.taken = self.done


ACTIONS = ["hear", "hear", "finish", "speak", "break"]


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=20),
    st.integers(1, 12),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 100)), max_size=80),
)
def test_each_delivery_once_whatever_breaks(gaps: list[int], limit: int, actions: list[tuple[str, int]]) -> None:
    numbers = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    node, deliveries, allowance = FakeNode(numbers), Outstanding(), Allowance(limit)
    node.credit = allowance.reset()
    unfinished: list[int] = []
    handed_out: list[int] = []
    finished: set[int] = set()
    in_the_end = [(what, 0) for _ in range(60) for what in ("hear", "finish", "finish", "speak")]
    for what, some in [*actions, *in_the_end]:
        if what == "hear" and (number := node.send()) is not None:
            parts = 1 + number % 2
            new = deliveries.add(number, parts)
            allowance.receive(new=new)
            if new:
                handed_out.append(number)
                unfinished += [number] * parts
        elif what == "finish" and unfinished:
            number = unfinished.pop(some % len(unfinished))
            if deliveries.acknowledge(number):
                finished.add(number)
                allowance.release()
        elif what == "speak":
            if due := deliveries.due():
                node.acknowledge(due)
            node.credit += allowance.grant()
        elif what == "break":
            node.attach()
            deliveries.resume(node.done)
            node.credit = allowance.reset()
        assert len(deliveries) <= limit
        assert allowance.open + allowance.granted <= limit
        assert all(number in finished for number in numbers if number <= node.done)
    assert handed_out == numbers
    assert node.done == numbers[-1]


def test_what_an_earlier_connection_brought_is_acknowledged() -> None:
    deliveries = Outstanding()
    for number in (1, 2, 3):
        deliveries.add(number, 1)
    deliveries.acknowledge(1)
    deliveries.acknowledge(2)
    assert deliveries.due() == 2
    deliveries.resume(0)  # that was not heard
    assert deliveries.due() == 2
    assert not deliveries.add(3, 1)
    deliveries.acknowledge(3)
    assert deliveries.due() == 3


def test_what_nobody_wants_is_done_with() -> None:
    deliveries = Outstanding()
    deliveries.add(7, 0)
    assert len(deliveries) == 0
    assert deliveries.due() == 7


def test_credit_is_not_given_back_one_by_one() -> None:
    allowance = Allowance(100)
    allowance.reset()
    given_back = []
    for _ in range(100):
        allowance.receive(new=True)
        allowance.release()
        given_back.append(allowance.grant())
    assert [more for more in given_back if more] == [25, 25, 25, 25]


def test_the_last_credit_does_not_wait_for_more_of_it() -> None:
    allowance = Allowance(8)
    allowance.reset()
    for _ in range(8):
        allowance.receive(new=True)
    allowance.release()
    assert allowance.grant() == 1
