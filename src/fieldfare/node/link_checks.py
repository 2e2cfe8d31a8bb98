"""Checks before two nodes become neighbours; each raises `LinkError` with a reason for the operator."""

from __future__ import annotations

from fieldfare.node.config import is_name
from fieldfare.node.neighbourhood import Neighbourhood
from fieldfare.node.node import Node
from fieldfare.protocol.link_frames import LinkHello


class LinkError(ValueError):
    """A link cannot be made or go on; with `forever` the neighbour must forget the link."""

    def __init__(self, reason: str, *, forever: bool = False) -> None:
        super().__init__(reason)
        self.forever = forever


def check_hello(hello: LinkHello, hood: Neighbourhood, version: int, subject: str | None) -> None:
    """Check name, version and strategy of a node, and refuse a link that closes a cycle.

    The `version` is that of the connection.
    With security, the node must have the name of the token's `subject`; None: there is no such token.
    """
    node = hood.node
    if not is_name(hello.node):
        raise LinkError(f"{hello.node[:100]!r} is no name of a node")
    if hello.version not in (0, version):
        raise LinkError(f"{hello.node} speaks version {hello.version}, though the connection has version {version}")
    if hello.strategy != node.config.strategy:
        raise LinkError(f"{hello.node} routes by {hello.strategy}, {node.name} by {node.config.strategy}")
    if subject is not None and hello.node != subject:
        who = repr(subject) if subject else "nobody in particular"
        raise LinkError(f"the token of {hello.node} is for {who}: a node joins with a token for its own name")
    if hello.node == node.name:
        raise LinkError(f"both nodes are called {node.name}: give one of them another --name")
    check_cycle(hello, hood)


def check_cycle(hello: LinkHello, hood: Neighbourhood) -> None:
    """Refuse a link if both nodes reach a third node: the overlay would have a cycle."""
    node = hood.node
    both = set(hood.reachable(without=hello.node)) & set(hello.others(node.name))
    if both:
        reason = f"{node.name} and {hello.node} both reach {', '.join(sorted(both))}: a link would close a cycle"
        raise LinkError(reason, forever=hello.node not in node.core.links)


def check_stranger(hello: LinkHello, node: Node) -> None:
    """Refuse a node with another folder if events wait for a node of the same name.

    Such a node may be a stranger: the waiting events are for the owner of the former folder.
    """
    known = node.core.links.get(hello.node)
    waiting = sum(isinstance(what, int) for what in known.outbox.values()) if known is not None else 0
    if known is not None and known.id and known.id != hello.id and waiting:
        raise LinkError(
            f"{waiting} events wait at {node.name} for another node called {hello.node}, which has another"
            f" folder: give this one another --name; or, if that folder is lost for good, let"
            f" {node.name} forget it: fieldfare admin links --remove {hello.node}"
        )
