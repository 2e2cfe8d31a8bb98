"""Checks before two nodes become neighbours; each raises `LinkError` with a reason for the operator."""

from __future__ import annotations

from fieldfare.core.domains import address_of, domain_of, seen_from_outside
from fieldfare.node.config import is_name
from fieldfare.node.neighbourhood import Neighbourhood
from fieldfare.node.node import Node
from fieldfare.protocol.link_frames import LinkHello
from fieldfare.protocol.versions import has


class LinkError(ValueError):
    """A link cannot be made or go on; with `forever` the neighbour must forget the link."""

    def __init__(self, reason: str, *, forever: bool = False) -> None:
        super().__init__(reason)
        self.forever = forever


def other_domain(hello: LinkHello, hood: Neighbourhood, expected: str, *, dialled: bool) -> str:
    """Return the domain of a node beyond a border; empty for a node of the same domain.

    Only a node of the `expected` domain is right for a border that was dialled.
    """
    mine, theirs = hood.domain, hello.domain
    if expected and theirs != expected:
        whose = f"of the domain {theirs}" if theirs else "of no domain"
        raise LinkError(f"{hello.node} is {whose}, not of {expected}")
    if not (mine and theirs) or mine == theirs:
        return ""
    if dialled and not expected:
        raise LinkError(f"{hello.node} is of the domain {theirs}: join it by [federation.borders.{theirs}]")
    if theirs not in hood.node.config.federation.borders:
        raise LinkError(f"{hood.node.name} has no border to the domain {theirs}")
    return theirs


def check_hello(hello: LinkHello, hood: Neighbourhood, version: int, subject: str | None, domain: str = "") -> None:
    """Check name, version and strategy of a node, and refuse a link that closes a cycle.

    The `version` is that of the connection. The node may be of another `domain`.
    With security, the node must have the name of the token's `subject`; None: there is no such token.
    """
    node = hood.node
    if domain and not has(version, "JoinChannel"):
        raise LinkError(f"{hello.node} speaks version {version}, which has no borders: upgrade {hello.node}")
    if domain and hello.role != "peer":
        raise LinkError(f"{hello.node} asks for a {hello.role}, and a border is between peers")
    if not is_name(hello.node):
        raise LinkError(f"{hello.node[:100]!r} is no name of a node")
    if hello.version not in (0, version):
        raise LinkError(f"{hello.node} speaks version {hello.version}, though the connection has version {version}")
    if hello.strategy != node.config.strategy:
        raise LinkError(f"{hello.node} routes by {hello.strategy}, {node.name} by {node.config.strategy}")
    name = name_of(hello, domain)
    if subject is not None and name != subject:
        who = repr(subject) if subject else "nobody in particular"
        raise LinkError(f"the token of {name} is for {who}: a node joins with a token for its own name")
    if name == node.name:
        raise LinkError(f"both nodes are called {node.name}: give one of them another --name")
    check_cycle(hello, hood, domain)


def name_of(hello: LinkHello, domain: str) -> str:
    """Return the name of a node behind a link."""
    return seen_from_outside(hello.node, domain) if domain else hello.node


def _check_cycle_of_domains(hello: LinkHello, hood: Neighbourhood, domain: str) -> None:
    name = name_of(hello, domain)
    others = [one for one in hood.node.core.links if domain_of(one) == domain and one != name]
    if others:
        raise LinkError(f"{hood.node.name} has a border to {domain} already, at {others[0]}")
    theirs = {address_of(domain), *(one for nodes in hello.reaches.values() for one in nodes)}
    both = theirs & hood.domains(without=domain).keys()
    if both:
        text = f"the domains {hood.domain} and {domain} both reach {', '.join(sorted(both))}"
        raise LinkError(f"{text}: a further border would close a cycle", forever=name not in hood.node.core.links)


def check_cycle(hello: LinkHello, hood: Neighbourhood, domain: str = "") -> None:
    """Refuse a link if both nodes, or both domains, reach a third: the overlay would have a cycle."""
    if domain:
        _check_cycle_of_domains(hello, hood, domain)
        return
    node = hood.node
    both = set(hood.reachable(without=hello.node)) & set(hello.others(node.name))
    if both:
        reason = f"{node.name} and {hello.node} both reach {', '.join(sorted(both))}: a link would close a cycle"
        raise LinkError(reason, forever=hello.node not in node.core.links)


def check_stranger(hello: LinkHello, node: Node, name: str) -> None:
    """Refuse a node with another folder if events wait for a node of the same name.

    Such a node may be a stranger: the waiting events are for the owner of the former folder.
    """
    known = node.core.links.get(name)
    waiting = sum(isinstance(what, int) for what in known.outbox.values()) if known is not None else 0
    if known is not None and known.id and known.id != hello.id and waiting:
        raise LinkError(
            f"{waiting} events wait at {node.name} for another node called {name}, which has another"
            f" folder: give this one another --name; or, if that folder is lost for good, let"
            f" {node.name} forget it: fieldfare admin links --remove {name}"
        )
