"""`Rendezvous`: for each topic, subscriptions and events meet at a broker that is found by hashing.

The topic of an event is its type, reduced to a fixed number of *topics* by a hash. The brokers form a DHT (`pastry`),
and the owner of a topic's key is its rendezvous. Next hops towards the rendezvous make a tree of brokers with
hierarchical routing: subscriptions and events travel up, and events come down where they match. Other brokers keep
nothing for the topic. A filter without a condition on types is a filter for every topic.

Brokers come and go, and ways change. A broker with a new parent withdraws its filters from the old parent, and sends
the new parent all. The rendezvous of a topic keeps copies of its table at the next nodes on the ring: its successor,
which is among them, serves at once, while the brokers below find their way to the successor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from fieldfare.events.event import fields_of
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.protocol.messages import (
    FilterUpdate,
    FlushReply,
    FlushRequest,
    Forward,
    Role,
    RoutingMessage,
    Send,
    TableCopy,
    TopicCheck,
)
from fieldfare.protocol.overlay_messages import Gone
from fieldfare.routing.overlays.pastry import PastryNode, Peers
from fieldfare.routing.overlays.publisher_order import PublisherOrder
from fieldfare.routing.overlays.ring import key_of
from fieldfare.routing.routes import LOCAL, Outgoing, ProtocolError, Routes
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.shared_index import Entries, SharedIndex

if TYPE_CHECKING:
    from fieldfare.routing.strategies import Strategy


class Rendezvous(Routes):
    """Routes by a tree for each topic."""

    def __init__(self, name: str, strategy: Strategy, life: int, index: SharedIndex) -> None:
        """Make a node that knows no others. All brokers must agree on the field and the number of topics."""
        super().__init__()
        self.name = name
        self.field = strategy.field
        self.topics = tuple(f"{strategy.field}#{i}" for i in range(strategy.topics))
        self._keys = {topic: key_of(topic) for topic in self.topics}
        self.replicas = strategy.replicas
        self.node = PastryNode(Peers(name))
        self._strategy = strategy
        self._index = index
        self._trees: dict[str, TableRoutes] = {}
        self._publisher_order = PublisherOrder(name, life, self._around)
        self._copies: dict[str, dict[str, dict[str, dict[Filter, None]]]] = {}
        """copies of other tables: filters by topic, rendezvous, and neighbour of the rendezvous"""
        self._copied: dict[str, tuple[str, ...]] = {}
        """the brokers with copies of the own tables, by topic"""

    # The overlay

    @property
    def neighbours(self) -> Collection[str]:
        """The nodes which this node knows."""
        return self.node.peers.known

    def accepts(self, neighbour: str) -> bool:
        """Tell whether a sender is another node: in a DHT any node may send messages."""
        return neighbour != LOCAL

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Enter the overlay through a node of the overlay."""
        return self._sent(self.node.join(neighbour))

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Handle the failure of a node, or its absence: its children find new ways."""
        outgoing = self._sent(self.node.receive(Gone(neighbour), neighbour))
        for topic, tree in self._trees.items():
            if neighbour in tree.roles:
                if tree.filters_of(neighbour):
                    outgoing.append(Outgoing(neighbour, TopicCheck(topic)))  # the neighbour may only be out of reach
                    outgoing += self._copied_on(TableCopy(neighbour, FilterUpdate(all=True, topic=topic)))
                tree.disconnect(neighbour)  # the resulting updates are for the parent, which may have changed
        outgoing += self._follow(refresh=True)
        for owners in self._copies.values():
            owners.pop(neighbour, None)  # its successor has taken the copies over
        return outgoing + self._publisher_order.gone(neighbour)

    def retire(self) -> list[Outgoing]:
        """Leave the overlay in good order."""
        return self._sent(self.node.leave())

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """Process a message of another node: about topics, copies, flushes or the ring."""
        match message:
            case TopicCheck(topic=topic):
                tree = self._trees.get(topic)
                mine = tree is not None and tree.roles.get(sender) is Role.PARENT
                return [
                    Outgoing(sender, FilterUpdate(tree.exports(sender) if mine and tree else (), all=True, topic=topic))
                ]
            case TableCopy():
                self._keep(message, sender)
                return []
            case FlushRequest():
                return self._publisher_order.asked(message, sender)
            case FlushReply(request=request):
                return self._publisher_order.answered(request, sender)
            case Gone(name=name):
                return self.disconnect(name)
        return self._sent(self.node.receive(message, sender)) + self._follow()  # type: ignore[arg-type]

    @staticmethod
    def _sent(sends: Iterable[Send]) -> list[Outgoing]:
        return [Outgoing(send.to, send.message) for send in sends]  # type: ignore[arg-type]

    # Trees

    def _tree(self, topic: str) -> TableRoutes:
        if topic not in self._trees:
            tree = self._trees[topic] = TableRoutes(self._strategy, self._index)
            parent = self._parent(topic)
            if parent is not None:
                tree.connect(parent, Role.PARENT)
        return self._trees[topic]

    def _parent(self, topic: str) -> str | None:
        return self.node.peers.next_hop(self._keys[topic])

    def _follow(self, *, refresh: bool = False) -> list[Outgoing]:
        """Give every tree the parent that the overlay says, and every own topic its copies."""
        outgoing: list[Outgoing] = []
        for topic in {**self._trees, **self._copies}:
            parent = self._parent(topic)
            tree = self._tree(topic)
            for old in [one for one, role in tree.roles.items() if role is Role.PARENT and one != parent]:
                outgoing += _about(topic, tree.set_role(old, Role.CHILD))
            if parent is not None and tree.roles.get(parent) is not Role.PARENT:
                outgoing += _about(
                    topic,
                    tree.set_role(parent, Role.PARENT) if parent in tree.roles else tree.connect(parent, Role.PARENT),
                )
            elif parent is not None and refresh:
                outgoing.append(Outgoing(parent, FilterUpdate(tree.exports(parent), all=True, topic=topic)))
            if parent is None:
                outgoing += self._succeed(topic, tree) + self._copy_all(topic, tree)
            else:
                outgoing += self._dropped(topic, self._copied.pop(topic, ()))
        return outgoing

    # Copies

    def _keep(self, copy: TableCopy, owner: str) -> None:
        """Update a copy of another node's table."""
        update = copy.update
        children = self._copies.setdefault(update.topic, {}).setdefault(owner, {})
        if copy.neighbour == LOCAL:  # the copy is no longer needed
            children.clear()
            return
        kept = children.setdefault(copy.neighbour, {})
        for filter in list(kept) if update.all else update.removed:
            kept.pop(filter, None)
        for filter in update.added:
            for other in [] if self._tree(update.topic).subscriptions.redundant else list(kept):
                if filter.covers(other):
                    del kept[other]
            kept[filter] = None
        if not kept:
            del children[copy.neighbour]

    def _succeed(self, topic: str, tree: TableRoutes) -> list[Outgoing]:
        """Serve the children of the former rendezvous from the copies, and check with each child."""
        asked = []
        for children in self._copies.pop(topic, {}).values():
            for neighbour, filters in children.items():
                if filters and neighbour != self.name and neighbour not in tree.roles:
                    tree.connect(neighbour, Role.CHILD)
                    tree.apply(FilterUpdate(tuple(filters)), neighbour)
                    asked.append(Outgoing(neighbour, TopicCheck(topic)))
        return asked

    def _copy_all(self, topic: str, tree: TableRoutes) -> list[Outgoing]:
        """Send copies to new replica holders, and drop the copies at former ones."""
        keepers = tuple(self.node.peers.replicas(self._keys[topic], self.replicas + 1)[1:])
        before = self._copied.get(topic, ())
        self._copied[topic] = keepers
        originals = {child: tree.filters_of(child) for child in tree.roles}
        return [
            Outgoing(keeper, TableCopy(child, FilterUpdate(filters, all=True, topic=topic)))
            for keeper in keepers
            if keeper not in before
            for child, filters in originals.items()
            if filters
        ] + self._dropped(topic, [keeper for keeper in before if keeper not in keepers])

    def _dropped(self, topic: str, keepers: Iterable[str]) -> list[Outgoing]:
        return [Outgoing(keeper, TableCopy(LOCAL, FilterUpdate(all=True, topic=topic))) for keeper in keepers]

    def _copied_on(self, copy: TableCopy) -> list[Outgoing]:
        return [Outgoing(keeper, copy) for keeper in self._copied.get(copy.update.topic, ())]

    # Filters and events

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Apply a change of the filters of clients, or of a broker below, on the trees of the topics."""
        if update.about == "advertisements":
            return []
        if sender != LOCAL and update.topic not in self._keys:
            raise ProtocolError(f"there is no topic {update.topic!r}: do all brokers have the same number of them?")
        if sender == LOCAL:
            return [to for topic, part in self._by_topic(update).items() for to in self._apply(part, topic, sender)]
        outgoing = self._apply(update, update.topic, sender)
        if update.topic not in self._copied and self._parent(update.topic) is None:
            return outgoing + self._copy_all(update.topic, self._tree(update.topic))
        return outgoing + self._copied_on(TableCopy(sender, update))

    def _apply(self, update: FilterUpdate, topic: str, sender: str) -> list[Outgoing]:
        tree = self._tree(topic)
        if sender != LOCAL and sender not in tree.roles:
            tree.connect(sender, Role.CHILD)
        return _about(topic, tree.apply(update, sender))

    def _by_topic(self, update: FilterUpdate) -> dict[str, FilterUpdate]:
        added = {filter: self.topics_of(filter) for filter in update.added}
        removed = {filter: self.topics_of(filter) for filter in update.removed}
        return {
            topic: FilterUpdate(
                tuple(filter for filter, topics in added.items() if topic in topics),
                tuple(filter for filter, topics in removed.items() if topic in topics),
            )
            for topic in self.topics
            if any(topic in topics for topics in (*added.values(), *removed.values()))
        }

    def topics_of(self, filter: Filter) -> frozenset[str]:
        """Return the topics of the events that a filter may match."""
        found: set[str] = set()
        for branch in filter.boxes:
            wanted = branch.on(self.field).values
            names = wanted.strings.points() if isinstance(wanted.strings, Intervals) else None
            others = wanted.atoms or any(kind.name != "STRING" for kind, _ in wanted.kinds())
            if names is None or others:
                return frozenset(self.topics)
            found.update(map(self.topic_of, names))
        return frozenset(found)

    def topic_of(self, type: object) -> str:
        """Return the topic of an event type; values that are no text, or missing, have a topic too."""
        return self.topics[key_of(type if isinstance(type, str) else "") % len(self.topics)]

    def publish(self, event: Forward) -> list[Outgoing]:
        """Release an event in the order of its publisher."""
        return self._publisher_order.publish(self._topic(event.event), event)

    @property
    def needs_sweep(self) -> bool:
        """Whether publishers or flush requests are remembered."""
        return self._publisher_order.needs_sweep

    def sweep(self) -> list[Outgoing]:
        """End flush requests that stay without a reply."""
        return self._publisher_order.sweep()

    def _topic(self, event: Mapping[str, object]) -> str:
        return self.topic_of(fields_of(event).get(self.field))

    def _around(self, topic: str) -> Collection[str]:
        """Return the adjacent brokers on the tree of a topic."""
        if topic in self._trees:
            return self._trees[topic].roles
        parent = self._parent(topic) if topic in self._keys else None
        return () if parent is None else (parent,)

    def match(self, event: Forward, sender: str, matched: Entries) -> set[str]:
        """Return the recipients of an event on the tree of its topic: the parent, and matching children."""
        topic = self._topic(event.event)
        if topic in self._trees:
            return self._trees[topic].match(event, sender, matched)
        return set(self._around(topic)) - {sender}

    @property
    def entries(self) -> int:
        """The number of table entries of all trees."""
        return sum(tree.entries for tree in self._trees.values())


def _about(topic: str, outgoing: list[Outgoing]) -> list[Outgoing]:
    return [
        Outgoing(neighbour, FilterUpdate(message.added, message.removed, all=message.all, topic=topic))
        for neighbour, message in outgoing
        if isinstance(message, FilterUpdate)
    ]
