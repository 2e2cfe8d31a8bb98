from hypothesis import given
from hypothesis import strategies as st

from fieldfare.client.acknowledgements import Allowance, Outstanding


class FakeNode:
    """What a node does with deliveries: see `fieldfare.node.durable_broker`."""

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
    node, book, room = FakeNode(numbers), Outstanding(), Allowance(limit)
    node.credit = room.begin()
    unfinished: list[int] = []
    handed_out: list[int] = []
    finished: set[int] = set()
    in_the_end = [(what, 0) for _ in range(60) for what in ("hear", "finish", "finish", "speak")]
    for what, some in [*actions, *in_the_end]:
        if what == "hear" and (number := node.send()) is not None:
            parts = 1 + number % 2
            new = book.came(number, parts)
            room.came(new=new)
            if new:
                handed_out.append(number)
                unfinished += [number] * parts
        elif what == "finish" and unfinished:
            number = unfinished.pop(some % len(unfinished))
            if book.finish(number):
                finished.add(number)
                room.went()
        elif what == "speak":
            if due := book.due():
                node.acknowledge(due)
            node.credit += room.more()
        elif what == "break":
            node.attach()
            book.resume(node.done)
            node.credit = room.begin()
        assert len(book) <= limit
        assert room.here + room.promised <= limit
        assert all(number in finished for number in numbers if number <= node.done)
    assert handed_out == numbers
    assert node.done == numbers[-1]


def test_what_an_earlier_connection_brought_is_acknowledged() -> None:
    book = Outstanding()
    for number in (1, 2, 3):
        book.came(number, 1)
    book.finish(1)
    book.finish(2)
    assert book.due() == 2
    book.resume(0)  # that was not heard
    assert book.due() == 2
    assert not book.came(3, 1)
    book.finish(3)
    assert book.due() == 3


def test_what_nobody_wants_is_done_with() -> None:
    book = Outstanding()
    book.came(7, 0)
    assert len(book) == 0
    assert book.due() == 7


def test_credit_is_not_given_back_one_by_one() -> None:
    room = Allowance(100)
    room.begin()
    given_back = []
    for _ in range(100):
        room.came(new=True)
        room.went()
        given_back.append(room.more())
    assert [more for more in given_back if more] == [25, 25, 25, 25]


def test_the_last_credit_does_not_wait_for_more_of_it() -> None:
    room = Allowance(8)
    room.begin()
    for _ in range(8):
        room.came(new=True)
    room.went()
    assert room.more() == 1
