import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.client.outbox import FRAME_EVENTS, SHORTEST_TTL, Submission, Window
from fieldfare.protocol.frames import Publish, PublishOptions


class FakeNode:
    """What a node does with publications: see `fieldfare.core.core`. It refuses events that begin with `!`."""

    def __init__(self) -> None:
        self.sequence = 0
        self.log: list[bytes] = []

    def take(self, frame: Publish) -> int | None:
        """Up to which number all is safe; None: refused."""
        events = [bytes(raw) for raw in frame.events]
        if any(event.startswith(b"!") for event in events):
            return None
        for number, event in enumerate(events, frame.number):
            if number > self.sequence:
                self.sequence = number
                self.log.append(event)
        return self.sequence


def submission(name: int, size: int = 1, *, bad: bool = False, replaces: str = "") -> Submission[int]:
    events = tuple((b"!" if bad and not place else b".") + f"{name}.{place}".encode() for place in range(size))
    return Submission(events, name, None, PublishOptions(replaces=replaces))


ANSWERED = 0
"""a request whose answer says that all before it is answered"""
ACTIONS = ["post", "post", "send", "node", "client", "break"]


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from([False, False, False, True]), st.sampled_from(["", "", "a"])),
        max_size=10,
    ),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3)), max_size=60),
)
def test_all_that_is_good_gets_there_once(wanted: list[tuple[int, bool, str]], actions: list[tuple[str, int]]) -> None:
    submissions = [
        submission(name, size, bad=bad, replaces=replaces) for name, (size, bad, replaces) in enumerate(wanted)
    ]
    node, window = FakeNode(), Window[int]()
    safe: list[int] = []
    refused: list[int] = []
    todo = list(submissions)
    to_node: list[Publish | int] = []
    to_client: list[tuple[str, int]] = []
    in_the_end = [(what, 0) for _ in range(40) for what in ("post", "send", "node", "node", "client", "client")]
    for what, some in [*actions, *in_the_end]:
        if what == "post" and todo:
            window.add(todo.pop(0))
        elif what == "send" and (frame := window.take(0.0)) is not None:
            to_node.append(frame)
        elif what == "node" and to_node:
            said = to_node.pop(0)
            if isinstance(said, int):
                to_client.append(("answered", 0))
            else:
                answer = node.take(said)
                to_client.append(("refused", said.number) if answer is None else ("accepted", answer))
        elif what == "client" and to_client:
            kind, number = to_client.pop(0)
            if kind == "accepted":
                safe += [one.receipt for one in window.accept(number)]
            elif kind == "answered":
                safe += [one.receipt for one in window.confirm_resumed()]
            elif (one := window.refuse(number)) is not None:
                refused.append(one.receipt)
        elif what == "break":
            for said in to_node[:some]:  # they got there, but the answers did not
                if not isinstance(said, int):
                    node.take(said)
            to_client = []
            to_node = [*window.resume(node.sequence, 0.0), ANSWERED]
    assert window.count == 0
    bad = [one.receipt for one in submissions if one.events[0].startswith(b"!")]
    assert sorted(refused) == bad
    assert sorted(safe) == [one.receipt for one in submissions if one.receipt not in bad]
    assert sorted(node.log) == sorted(event for one in submissions if one.receipt in safe for event in one.events)


@given(st.lists(st.integers(1, 4)), st.integers(0, 8), st.integers(0, 100))
def test_a_node_that_knows_nothing_gets_all_that_was_not_answered_in_order(
    sizes: list[int], sent: int, accepted: int
) -> None:
    window: Window[int] = Window()
    for name, size in enumerate(sizes):
        window.add(submission(name, size))
        if name < sent:
            window.take(0.0)
    window.renumber(accepted)
    events: list[bytes] = []
    while (frame := window.take(0.0)) is not None:
        assert frame.number == accepted + 1 + len(events)
        events += [bytes(raw) for raw in frame.events]
    assert events == [event for name, size in enumerate(sizes) for event in submission(name, size).events]
    assert window.count == len(events)
    assert [one.receipt for one in window.accept(accepted + len(events))] == list(range(len(sizes)))
    assert window.count == 0


def test_frames_are_shared_by_what_is_alike() -> None:
    window: Window[int] = Window()
    for name in range(FRAME_EVENTS + 1):
        window.add(submission(name))
    window.add(submission(-1, replaces="x"))
    lengths = []
    while (frame := window.take(0.0)) is not None:
        lengths.append(len(frame.events))
    assert lengths == [FRAME_EVENTS, 1, 1]


def test_a_deadline_is_kept_when_it_is_said_again() -> None:
    window: Window[int] = Window()
    window.add(Submission((b".",), 0, 10.0))
    first = window.take(4.0)
    assert first == Publish(1, [msgspec.Raw(b".")], ttl=6.0)
    assert [frame.ttl for frame in window.resume(0, 8.0)] == [2.0]
    assert [frame.ttl for frame in window.resume(0, 12.0)] == [SHORTEST_TTL]


def test_what_shares_a_frame_does_not_share_its_fate_but_a_batch_does() -> None:
    window: Window[int] = Window()
    window.add(submission(0))
    window.add(submission(1, 2, bad=True))
    frame = window.take(0.0)
    assert frame is not None
    assert window.refuse(frame.number) is None
    again = [window.take(0.0), window.take(0.0)]
    assert [one and (one.number, len(one.events)) for one in again] == [(4, 1), (5, 2)]
    refused = window.refuse(5)
    assert refused is not None
    assert refused.receipt == 1
