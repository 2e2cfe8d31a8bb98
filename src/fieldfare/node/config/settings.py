"""The settings of a node as immutable values with their defaults: `Config`, and the tables inside it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from fieldfare.node.config.secret import Secret
from fieldfare.protocol.versions import NEWEST, OLDEST
from fieldfare.routing.prefix.options import Layout, PrefixOptions
from fieldfare.routing.publisher_policies import DELAYED, POLICIES, PublisherPolicy

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 60)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e10)]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; an unknown key is a mistake."""


class Log(Part, frozen=True):
    """The log of events on disk: a row of segments. Deletion removes whole segments, the oldest first."""

    segment_bytes: Bytes = 64 << 20
    """size at which a segment is closed and the next segment begins"""
    segment_seconds: Seconds = 3600.0
    """age at which a segment is closed"""
    max_bytes: Bytes = 10 << 30
    """size of the whole log"""
    max_seconds: Seconds = 7 * 86400.0
    """age of the events in the log"""
    sync: Literal["normal", "full"] = "normal"
    """`normal`: accepted events survive a killed process; `full`: a power failure, too, at a price in speed"""
    archive: str = ""
    """the place where closed segments are copied before the disk may lose them: a folder, or `s3://BUCKET/PREFIX`"""


class Sessions(Part, frozen=True):
    """The bounds for events that wait for slow or absent subscribers."""

    limit: Count = 100_000
    """events of a session that may wait: not delivered, or delivered and not acknowledged"""
    policy: Literal["buffer", "drop-oldest", "disconnect"] = "buffer"
    """the reaction when the limit is reached. Below the limit no event is dropped; dropped events are counted.

    - `buffer`: events wait, those of a durable session on disk; at the limit the newest replace the oldest.
    - `drop-oldest`: the same, but for a subscriber without a durable session no more than `queue` events wait.
    - `disconnect`: as `drop-oldest`, and the node disconnects the subscriber, which so learns of the gap.
    """
    life_seconds: Seconds = 7 * 86400.0
    """time without its client after which a durable session ends"""
    replicas: Annotated[int, msgspec.Meta(ge=0, le=5)] = 0
    """neighbours that hold a copy of each durable session, in case this node fails for good"""
    patience_seconds: Seconds = 10.0
    """wait for a session that another node hands over; after it the node asks the replica holders, if any"""
    queue: Count = 1000
    """events that wait in memory for a subscriber without a durable session, unless the policy is `buffer`"""


class RoutingSettings(Part, frozen=True):
    """Options of the strategy `imperfect`, which merges filters although a few unwanted events may pass."""

    merging_budget: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.25
    """largest share of unwanted events: of a merged filter as expected, and of a neighbour's events as counted"""
    merging_statistics: str = ""
    """file of statistics of the events, as of `fieldfare statistics`; empty: values are taken to be spread evenly"""


class MobilitySettings(Part, frozen=True):
    """The advertisements of publishers that move, for strategies with `+ads`. No policy loses events."""

    publisher_policy: Literal["standard", "prefetching", "proxy", "delayed", "prefetch-delayed", "safe"] = "safe"
    """what is advertised where besides at the node of a publisher; `safe` and `standard`: nothing"""
    linger_seconds: Seconds = DELAYED.linger
    """time for which advertisements stay where the publisher was, with a delayed policy"""
    proxies: tuple[str, ...] = ()
    """names of the nodes that advertise for all publishers, with the policy `proxy`; the same at all nodes"""

    @property
    def policy(self) -> PublisherPolicy:
        """The policy with the time of these settings."""
        named = POLICIES[self.publisher_policy]
        return named._replace(linger=self.linger_seconds) if named.linger and not named.holds else named


_PREFIX: Final = PrefixOptions()


class PrefixSettings(Part, frozen=True):
    """Options of the strategy `prefix`. All nodes must have the same `parts`; the other options may differ."""

    optimizers: tuple[str, ...] = ()
    """names of the nodes that may be in charge of a tree, in order of preference; empty: all nodes"""
    parts: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """number of trees, each with its own optimizer; the first attribute of a filter decides the tree"""
    depth: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """depth of a tag; 0: as deep as the tree"""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = _PREFIX.threshold
    """difference from the last published tree, as a share, from which on a tree is published at once"""
    refresh_seconds: Seconds = _PREFIX.refresh
    """time after which a tree with any difference is published"""
    layout: Layout = _PREFIX.layout
    """order of the attributes: by name, by the number of filters with the attribute, or by the share of events"""
    beat_seconds: Seconds = _PREFIX.beat
    """interval between two heartbeats of the optimizer in charge"""
    patience_seconds: Seconds = _PREFIX.patience
    """silence after which another optimizer takes charge"""


class ChannelSettings(Part, frozen=True):
    """Types of events with a total order in the whole overlay. All nodes must have the same values."""

    types: tuple[str, ...] = ()
    """types with a channel, each alone or with the node that numbers its events, as `quote` or `quote=oslo`; or with
    the domain of that node, as `bid=@south`"""
    hosts: tuple[str, ...] = ()
    """names of the nodes among which the types without a node are divided, by hashing"""
    field: str = "type"
    """field of an event with the type"""
    first: Count = 1
    """number of the first event in a new channel; higher than all former numbers after the loss of a node's folder"""


class BorderSettings(Part, frozen=True):
    """The border to another domain: who dials, and which events cross, in either direction."""

    url: str = ""
    """node of the other domain to connect to, as a ws:// or wss:// URL; empty: that node connects to this one"""
    token: Secret = Secret("")
    """token for that node, made there for the name NODE@DOMAIN of this node"""
    share: bool | str = False
    """events that cross: all (true), none, or those of a filter. Both sides must share an event"""


class FederationSettings(Part, frozen=True):
    """Other domains: overlays that share some events with this one, and know nothing of its nodes."""

    domain: str = ""
    """name of this domain, as others know it; nodes with borders need it"""
    borders: dict[str, BorderSettings] = {}
    """borders of this node, by the name of the other domain: [federation.borders.NAME]"""


class Limits(Part, frozen=True):
    """The bounds beyond which the node refuses a request."""

    frame_bytes: Bytes = 1 << 20
    """size of a WebSocket message"""
    body_bytes: Bytes = 1 << 20
    """size of the body of an HTTP request"""
    header_bytes: Bytes = 64 << 10
    """size of the headers of a request, URL included"""
    hello_seconds: Seconds = 10.0
    """time for a new connection to send the headers of its request, and then for its Hello"""
    message_seconds: Seconds = 60.0
    """time to complete a body or message, and for the other side to read some of ours"""
    batch: Count = 10_000
    """events in one publish request"""
    filter_chars: Count = 10_000
    """characters of a filter"""
    filter_seconds: Seconds = 5.0
    """time to parse a filter"""
    subscriptions: Count = 10_000
    """subscriptions of a session"""
    dynamic_filters: Count = 100
    """subscriptions of a session whose filters have parameters"""
    parameters: Count = 100
    """parameters of a session"""
    parameter_bytes: Bytes = 10_000
    """size of all parameters of a session"""
    parameter_changes: Count = 50
    """changes of parameters in a second by a client; a client with more is slowed down"""
    patterns: Count = 100
    """patterns of a session"""
    pattern_states: Count = 1000
    """states of the automaton of a pattern, with repetitions written out"""
    pattern_instances: Count = 100_000
    """open instances of a pattern over all keys; beyond it the key with the oldest state is dropped, and counted"""
    pattern_events: Count = 10_000
    """events in an instance of a pattern; a longer instance is dropped, and counted"""
    pattern_seconds: Seconds = 31 * 86400.0
    """longest duration in a pattern"""
    connections: Count = 20_000
    """connections of all kinds, unauthenticated ones included; fewer where file descriptors are scarce"""
    sessions: Count = 100_000
    """sessions of all owners"""
    owner_sessions: Count = 1000
    """sessions of one owner, where there is `[security]`"""


class PatternSettings(Part, frozen=True):
    """A pattern that stands in this node, under the name of its table."""

    text: str
    """pattern, as in the reference of patterns"""
    placement: Literal["here", "bandwidth", "impact", "load"] = "here"
    """where the pattern and its parts are detected: here, or as the policy says, at any node"""


class PlacesSettings(Part, frozen=True):
    """The places of sessions, for filters such as `location IN myloc`. All nodes should have the same."""

    graph: str = ""
    """file of the movement graph, in TOML or JSON; empty: any place is allowed, and only the place itself counts as
    here"""
    here: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """steps up to which places count as here"""
    ahead: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """steps up to which neighbours are asked for the events of further places, so that a move has no gap"""


class Http(Part, frozen=True):
    """The web pages that may use this node, and the host names that requests may have."""

    origins: tuple[str, ...] = ()
    """origins of pages besides the node's own, as https://app.example.org"""
    hosts: tuple[str, ...] = ()
    """names of this node, besides its addresses, localhost, the machine's name, `host` and that of `public_url`"""


class Tls(Part, frozen=True):
    """Files of TLS, in PEM."""

    certificate: str = ""
    """certificate of this node, with the chain up to an authority"""
    key: str = ""
    """private key of the certificate, without a passphrase"""
    authorities: str = ""
    """certificates to trust when this node connects to others; empty: those of the machine"""


class RoleSettings(Part, frozen=True):
    """The permissions of a role, each nothing, all (true), or a filter; `security.Role` has the filters parsed."""

    publish: bool | str = False
    subscribe: bool | str = False
    advertise: bool | str | None = None
    """None: as `publish`"""
    administer: bool = False
    join: bool = False
    """be a neighbour: a node whose clients' events and subscriptions pass unchecked"""
    interest: bool = False
    """learn what others here subscribe to (`client.interest`, `quench`), as far as it lies inside `publish`"""


STANDARD_ROLES: Final = {
    "admin": RoleSettings(publish=True, subscribe=True, administer=True, interest=True),
    "client": RoleSettings(publish=True, subscribe=True),
    "node": RoleSettings(join=True),
}
"""roles where tokens are checked with a secret and the settings describe no role"""


class SecuritySettings(Part, frozen=True):
    """The rules of access. Tokens are checked with a secret or with a public key, never with both."""

    secret: Secret = Secret("")
    """secret of the tokens, at least as long as the hash: 32 bytes for HS256"""
    public_key: str = ""
    """file of the public key in PEM; needs the package `cryptography`"""
    algorithms: tuple[str, ...] = ()
    """algorithms that may sign a token; HS256 with a secret, no default with a public key"""
    issuer: str = ""
    """issuer that tokens must have; empty: any issuer"""
    audience: str = ""
    """audience that tokens must have; empty: tokens for a named audience are refused"""
    anonymous: str = ""
    """role of clients without a token; empty: refuse them"""
    void: str = ""
    """file of tokens that are void before their time; the node reads each new version"""
    roles: dict[str, RoleSettings] = {}
    """roles by name; empty, with a secret: STANDARD_ROLES"""


class Config(Part, frozen=True):
    """All settings of a node. Only `load` checks them: a `Config` made by hand may be wrong."""

    name: str = ""
    """name of the node, unique in the overlay. Without it, `load` takes the name that the folder `data` keeps, or
    makes one of host name, port and machine; a node without a folder may have another name after each start"""
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 7400
    """port of all protocols; 0: any free port"""
    data: str = ""
    """folder of the durable data; empty: keep all in memory, and lose it with the process"""
    join: tuple[str, ...] = ()
    """nodes to connect to, as ws:// or wss:// URLs"""
    role: Literal["peer", "parent"] = "peer"
    """relation of those nodes to this one: peers make a peer-to-peer overlay, parents a hierarchical one"""
    join_token: Secret = Secret("")
    """token for those nodes; not needed where they share the secret of this node"""
    strategy: str = "covering"
    speaks: Annotated[int, msgspec.Meta(ge=OLDEST, le=NEWEST)] = NEWEST
    """highest version that the node speaks with clients and nodes, and of which it stores anything. The version before
    the newest lets the network go back to the Fieldfare before; see the upgrade of a network"""
    clients: bool = True
    """whether clients are served; without them the node hosts channels, holds replicas and passes events on"""
    dashboard: bool = True
    public_url: str = ""
    """URL at which others reach this node"""
    insecure: bool = False
    """let anybody who reaches this node do anything, whatever `host` is"""
    log: Log = Log()
    sessions: Sessions = Sessions()
    routing: RoutingSettings = RoutingSettings()
    mobility: MobilitySettings = MobilitySettings()
    prefix: PrefixSettings = PrefixSettings()
    channels: ChannelSettings = ChannelSettings()
    federation: FederationSettings = FederationSettings()
    limits: Limits = Limits()
    patterns: dict[str, PatternSettings] = {}
    """patterns of events by name, whose composite events everybody may subscribe to: `pattern = 'NAME'`"""
    places: PlacesSettings = PlacesSettings()
    http: Http = Http()
    tls: Tls | None = None
    security: SecuritySettings | None = None
    """None: everybody may do everything"""
    bridge: tuple[dict[str, Any], ...] = ()
    """tables of the bridges; each kind of bridge checks its own"""


SECTIONS: Final[dict[str, type[Part]]] = {
    "log": Log,
    "sessions": Sessions,
    "routing": RoutingSettings,
    "mobility": MobilitySettings,
    "prefix": PrefixSettings,
    "channels": ChannelSettings,
    "federation": FederationSettings,
    "limits": Limits,
    "places": PlacesSettings,
    "http": Http,
    "tls": Tls,
    "security": SecuritySettings,
}
"""the tables of the file whose keys a variable or a flag can give, too"""
