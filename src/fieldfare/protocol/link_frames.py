"""Frames between neighbouring nodes. A frame is one binary message of a WebSocket, in MessagePack.

Both sides send `LinkHello`, then `LinkResume`. If both know the link from before, each goes on behind the last message
that the other has received; otherwise both begin with number 1. After that numbered messages flow in `Messages`, and
`Received` says up to which number they are on disk. `wire` defines the form of a single message inside a frame.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from fieldfare.protocol.lineage import Lineage
from fieldfare.protocol.numbers import NUMBER_LIMIT, Number
from fieldfare.protocol.versions import NEWEST, Subprotocol

FORM: Final = "link"
"""Form of the frames, as in the name of the WebSocket's subprotocol; see `versions`."""
SUBPROTOCOL: Final = str(Subprotocol(FORM, NEWEST))
"""Newest name of the WebSocket's subprotocol between nodes."""
MAX_FRAME: Final = 16 << 20
"""Largest frame, in bytes; a filter update of a neighbour may hold very many filters."""


class LinkFrame(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Base class of all frames between nodes."""


class LinkHello(LinkFrame, frozen=True):
    """First frame of both sides: name, address, strategy and reachable nodes of the sender."""

    node: str
    url: str
    strategy: str
    version: int = 0
    """Version of the connection; 0: the version that the subprotocol names."""
    role: str = "peer"
    """Role that the dialling node wants the other node to have."""
    reaches: dict[str, dict[str, str]] = {}
    """By neighbour of the sender: the nodes on that side, the neighbour included, with their addresses."""
    id: str = ""
    """Random name of the sender's folder, which tells two nodes of one name apart; empty without a folder."""
    life: str = ""
    """Random name of the sender's process; see `lineage`."""
    answers: bool = False
    """Whether the sender understands `OverviewRequest` and `OverviewReply`; earlier versions do not."""
    domain: str = ""
    """Domain of the sender; a link to another domain is a border, and its hello names domains only in `reaches`."""

    def others(self, me: str) -> dict[str, str]:
        """Return the addresses of all nodes that the sender reaches without this node, by name."""
        behind = [nodes for neighbour, nodes in self.reaches.items() if neighbour != me]
        return {self.node: self.url, **{name: url for nodes in behind for name, url in nodes.items()}}


class LinkResume(LinkFrame, frozen=True):
    """Second frame of both sides: the state of the link at the sender, so that both can resume it."""

    local_name: str
    """Random name that the sender gave the link when the link was new."""
    remote_name: str
    """Name that the receiver gave the link, as far as the sender knows; empty for a new link."""
    received: Number
    """Number of the last message that the sender has from the receiver."""
    received_lives: Lineage = ()
    """Lives of the receiver's log in which these messages were numbered, as heard at the last meeting."""
    lives: Lineage = ()
    """Lives of the sender's log in which its own messages were numbered."""
    first: Number = 1
    """Number of the first message that the sender can still send."""
    last: Number = NUMBER_LIMIT - 1
    """Number of the last message of the sender; an earlier version leaves the field out."""
    incomplete: bool = False
    """Whether the sender may have lost filters of the receiver, which shall announce all of them."""


class Messages(LinkFrame, frozen=True):
    """Consecutive messages, with the number of the first."""

    first: Number
    messages: list[bytes]


class UnnumberedMessage(LinkFrame, frozen=True):
    """A message that may get lost and is never sent again."""

    message: bytes


class Received(LinkFrame, frozen=True):
    """Acknowledgement of all messages up to a number: they are on disk at the sender of this frame."""

    number: Number


class ReachableNodes(LinkFrame, frozen=True):
    """All nodes that the sender reaches without the receiver, with their addresses; sent at each change."""

    nodes: dict[str, str]
    versions: dict[str, int] = {}
    """Versions that these nodes speak; a node that is left out speaks version 2, as far as the sender knows."""


class LinkEnd(LinkFrame, frozen=True):
    """Last frame: the sender closes the link."""

    reason: str
    forever: bool = False
    """Whether the receiver must forget the link, together with all messages that wait for the sender."""


class OverviewRequest(LinkFrame, frozen=True):
    """Request for the overview of a node, which need not be a neighbour; nodes on the way pass the frame on."""

    to: str
    origin: str
    number: int
    hops: int = 0


class OverviewReply(LinkFrame, frozen=True):
    """The overview of the node `origin`, as JSON."""

    to: str
    origin: str
    number: int
    overview: bytes
    hops: int = 0


AnyLinkFrame: TypeAlias = (
    LinkHello
    | LinkResume
    | Messages
    | UnnumberedMessage
    | Received
    | ReachableNodes
    | OverviewRequest
    | OverviewReply
    | LinkEnd
)
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(AnyLinkFrame)


def encode(frame: AnyLinkFrame) -> bytes:
    """Return a frame as MessagePack."""
    return _encoder.encode(frame)


def decode(data: bytes) -> AnyLinkFrame:
    """Return the frame in the data; msgspec.DecodeError if there is none."""
    frame: AnyLinkFrame = _decoder.decode(data)
    return frame
