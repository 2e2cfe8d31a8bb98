"""The answers and request bodies of `/admin`: a field here is a member of the JSON, and `openapi` shows the types."""

from __future__ import annotations

from typing import Any

import msgspec


class LinkView(msgspec.Struct, frozen=True):
    """A neighbour, connected or not."""

    name: str
    url: str
    up: bool
    role: str
    outbox: int
    """messages that the neighbour has not acknowledged"""
    traffic: dict[str, int]
    wanted: int = 0
    """events of the neighbour that clients here or other neighbours wanted"""
    unwanted: int = 0
    """events of the neighbour for nobody, as with merged filters that are too wide"""


class LogView(msgspec.Struct, frozen=True):
    """The log of events: first and last position, and size."""

    first: int
    last: int
    bytes: int


class Rates(msgspec.Struct, frozen=True):
    """Averages for a second, over the last ten seconds."""

    events_in: float = 0.0
    deliveries: float = 0.0
    busy: float = 0.0
    """share of the time in which the broker worked"""


class TreeView(msgspec.Struct, frozen=True):
    """A prefix tree by which this node forwards events."""

    part: int
    optimizer: str
    """node in charge, with a mark of its present life"""
    round: int
    """number of times that a node has taken charge"""
    number: int
    """number of the version within the round"""
    nodes: int
    loose: int
    """alternatives of filters that have no nodes in the tree yet"""


class PrefixView(msgspec.Struct, frozen=True):
    """The counters and trees of the strategy `prefix`."""

    by_tag: int
    by_content: int
    """events without a tag, or with a tag of an unknown version"""
    trees: list[TreeView]


class ChannelView(msgspec.Struct, frozen=True):
    """A type of events with one order everywhere."""

    type: str
    home: str
    """node that numbers the events"""
    count: int | None
    """number of the last event; None at a node that is not the home"""
    open: bool
    """whether events of the type can be published here: the home has answered"""
    target: str = ""
    """at the home: node to which the channel goes"""
    held: int = 0
    """events that wait here until the move to this node is complete"""


class Overview(msgspec.Struct, frozen=True):
    """The state of a node at a glance: counters, rates, log and neighbours."""

    name: str
    url: str
    version: str
    uptime: float
    strategy: str
    traffic: dict[str, float]
    """counters since the start of the node"""
    rates: Rates
    sessions: int
    here: int
    """sessions with a connected client"""
    pending: int
    """events that wait for sessions"""
    subscriptions: int
    table: int
    """entries of the routing table"""
    log: LogView
    memory: int
    """bytes of the process"""
    links: list[LinkView]
    overlay: dict[str, str]
    """all nodes that this node reaches, with their addresses"""
    webhooks: int
    beside: dict[str, Any]
    """states of the bridges, by name"""
    prefix: PrefixView | None = None
    """None: another strategy"""
    channels: list[ChannelView] = []
    domain: str = ""
    """domain of the node, if it has borders"""
    domains: list[str] = []
    """other domains that the node reaches"""


class SessionView(msgspec.Struct, frozen=True):
    """A session in a list."""

    name: str
    owner: str
    durable: bool
    here: bool
    seen: float
    """time at which the client connected or disconnected last"""
    published: int
    delivered: int
    """number of the last delivery"""
    acknowledged: int
    pending: int
    dropped: int
    subscriptions: int
    advertisements: int
    members: int
    """number of workers that share the session now"""
    devices: int
    """number of devices of the session, connected or not"""
    place: str
    """place that the session has stated"""
    parameters: dict[str, Any]
    """values that the session has stated for the parameters of filters, in the form of events in JSON"""


class MemberView(msgspec.Struct, frozen=True):
    """A worker that shares a session."""

    name: str
    """name that the member has given itself; empty if none"""
    holds: int
    """deliveries without an acknowledgement"""
    credit: int
    """deliveries that the member can take besides"""


class DeviceView(msgspec.Struct, frozen=True):
    """A device of a session."""

    name: str
    here: bool
    """whether the device is connected"""
    seen: float
    """time at which the device connected or disconnected last"""
    acknowledged: int
    """number of the last delivery that the device has acknowledged"""
    pending: int
    """deliveries that the device has not acknowledged"""
    dropped: int
    """deliveries that were dropped before the device acknowledged them"""


class SessionDetails(SessionView, frozen=True):
    """A session with its subscriptions, advertisements, workers and devices."""

    wanted: dict[str, str]
    promised: dict[str, str]
    dynamic: dict[str, str]
    """filters with parameters; `wanted` has the same filters with the present values"""
    sharing: list[MemberView]
    key: str
    """field by which the members share the events; empty: any event may go to any member"""
    copies: list[DeviceView]
    """devices, each of which gets every event"""


class SubscriptionView(msgspec.Struct, frozen=True):
    """A subscription in a list, with the name of its session."""

    session: str
    id: str
    filter: str


class Sessions(msgspec.Struct, frozen=True):
    """A page of the sessions, in the order of their names."""

    total: int
    offset: int
    items: list[SessionView]


class Subscriptions(msgspec.Struct, frozen=True):
    """A page of the subscriptions of all sessions."""

    total: int
    offset: int
    items: list[SubscriptionView]


class TableNode(msgspec.Struct, frozen=True):
    """A filter of the routing table, and the interfaces that need its events."""

    filter: str
    interfaces: list[str]


class TableView(msgspec.Struct, frozen=True):
    """The filters of the routing table; an edge leads from a filter to a filter that the first covers directly."""

    total: int
    nodes: list[TableNode]
    edges: list[tuple[int, int]]
    truncated: bool
    """the table has more filters; the edges are those between the shown ones"""


class ToExplain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request body of `/admin/explain`."""

    filter: Any
    """text of the native language, or a filter document of CloudEvents Subscriptions"""


class ToMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request body of `/admin/moves`: a session to hand over to another node."""

    session: str
    to: str
    """name of the other node"""


class ChannelToMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request body of `/admin/channels`: a channel that gets another home."""

    type: str
    to: str
    """name of the node that is to number the events"""


class Explanation(msgspec.Struct, frozen=True):
    """The normal form of a filter, and its relations to the filters of this node."""

    normal: str
    covers: list[str]
    covered_by: list[str]
    overlaps: list[str]
    """filters with common events, and without covering"""
    wanted: int
    """number of filters in the comparison"""


class ToMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request body of `/admin/match`: a filter and an event."""

    filter: Any
    event: msgspec.Raw


class Finding(msgspec.Struct, frozen=True):
    """A condition of a filter, with the value that an event has."""

    field: str
    wanted: str
    actual: Any
    ok: bool


class Branch(msgspec.Struct, frozen=True):
    """An alternative of a filter; an event matches if all conditions of one alternative are fulfilled."""

    filter: str
    ok: bool
    findings: list[Finding]


class MatchAnswer(msgspec.Struct, frozen=True):
    """The result of a match, with the conditions of each alternative as the reason."""

    matches: bool
    branches: list[Branch]


class PatternState(msgspec.Struct, frozen=True):
    """A waiting state of a pattern's automaton."""

    number: int
    waits: str
    """events that lead on"""
    fails: str
    """events that end a run here"""
    first: bool
    """whether a run may begin here"""
    open: int
    """open instances with a run in this state, among the first 1,000"""


class PatternKey(msgspec.Struct, frozen=True):
    """A key with open instances of a pattern."""

    values: list[Any]
    instances: int


class DetectionView(msgspec.Struct, frozen=True):
    """A detection of a pattern: time, position in the log, and the composite event."""

    time: float
    position: int
    event: msgspec.Raw


class PatternView(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern that stands in the node."""

    name: str
    """name in the settings, else the type"""
    type: str
    """type of the composite events"""
    text: str
    named: bool
    """whether the settings of the node have the pattern"""
    mermaid: str
    """the automaton as a diagram for Mermaid"""
    states: list[PatternState]
    transitions: list[tuple[int, int]]
    """pairs of states; -1 is the detection"""
    users: list[str]
    """sessions and ids of the subscriptions"""
    instances: int
    """open instances over all keys"""
    keys: list[PatternKey]
    """the keys with the oldest state"""
    detections: int
    last_minute: int
    """detections in the last minute, 20 at most"""
    dropped: int
    """instances and ways that exceeded a limit, since the start of the node or the last rows"""
    late: int
    """events that came later than the pattern allows"""
    latest: list[DetectionView]
    """the last detections since the start of the node, the latest first"""
