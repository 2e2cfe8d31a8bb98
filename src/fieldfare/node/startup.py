"""Start of a node: the broker recovers from the storage, and a new life of the log begins.

Each start is written to rows: neighbours and clients can tell the present run from earlier runs, and a copied
folder from the original.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from fieldfare.core.channel_map import ChannelMap, resolve
from fieldfare.core.core import Core
from fieldfare.core.recovery import life_rows
from fieldfare.node import machine
from fieldfare.node.config import NAME_FILE, Config, strategy_of
from fieldfare.node.config.federation import federation_of
from fieldfare.node.config.movement_graph import places_of
from fieldfare.node.config.patterns import bounds_of
from fieldfare.node.storage import private
from fieldfare.node.storage.rows import StoreError
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol.journal import JournalEntry, Row, StoredRows
from fieldfare.protocol.lineage import Lineage, as_lineage, extend
from fieldfare.routing.broker import Broker

EPOCH_2000: Final = 946_684_800.0
"""The year 2000 in seconds of Unix time; a broker without memory counts its lives by the seconds since then."""

logger = logging.getLogger("fieldfare.node")


def fresh_name() -> str:
    """Return a random, unique name."""
    return secrets.token_hex(8)


def check_owner(config: Config, storage: Storage, stored: StoredRows) -> None:
    """Raise StoreError if the folder belongs to a node of another name; otherwise note the name."""
    owner = stored.get("name", {}).get((), config.name)
    if owner != config.name:
        storage.close()
        raise StoreError(f"{config.data} belongs to the node {owner}, not to {config.name}: say --name {owner}")
    storage.remember(Row("name", (), config.name))


def folder_id(config: Config, storage: Storage, stored: StoredRows) -> str:
    """Return the random name of the folder, which tells two nodes of one name apart; empty without a folder."""
    if not config.data:
        return ""
    id = str(stored.get("id", {}).get((), "")) or fresh_name()
    storage.remember(Row("id", (), id))
    name = Path(config.data) / NAME_FILE
    if not name.exists():
        private.create(name, f"{config.name}\n".encode())
    return id


def recovered_core(
    config: Config,
    storage: Storage,
    stored: StoredRows,
    entries: Iterable[JournalEntry],
    *,
    clock: Callable[[], float],
    now: float,
) -> Core:
    """Return the broker of a node, in a new life of the log; `clock` is the wall clock, `now` never jumps."""
    # A clock alone could go back, and so could a row, with an earlier copy of the folder.
    life = max(int(stored.get("life", {}).get((), 0)) + 1, int(clock() - EPOCH_2000))
    for row in life_rows(life):
        storage.remember(row)
    core = Core(
        Broker(config.name, strategy_of(config), life=life, separate_names=True),
        stored,
        entries,
        limit=config.sessions.limit,
        queue=config.sessions.queue,
        policy=config.sessions.policy,
        replicas=config.sessions.replicas,
        channels=channel_map(config),
        federation=federation_of(config),
        places=places_of(config.places),
        secure=config.security is not None,
        publishers=config.mobility.policy,
        proxies=config.mobility.proxies,
        life=secrets.token_hex(6),
        bounds=bounds_of(config.limits),
        doubtful=_may_be_a_copy(config, storage, stored),
        speaks=config.speaks,
        now=now,
    )
    lost = core.position - storage.log.last
    if lost > 0:
        logger.error("the log of %s lacks its last %d events: was there a power failure?", config.name, lost)
        core.rewind(storage.log.last)
        core.checkpoint()
    return core


def channel_map(config: Config) -> ChannelMap:
    """Return the homes of all channels in the settings; warn of a home that will forget its numbers."""
    given = config.channels
    homes = resolve(given.types, given.hosts)
    here = [type for type, home in homes.items() if home == config.name]
    if here and not config.data:
        types = ", ".join(here)
        logger.warning("%s numbers the events of %s, and begins with 1 at each start: set data", config.name, types)
    return ChannelMap(homes, given.field, given.first)


def _may_be_a_copy(config: Config, storage: Storage, stored: StoredRows) -> bool:
    """Tell whether the folder may be a copy, or the log cut short: the file or the boot of the machine differ."""
    if not config.data:
        return False
    status = (Path(config.data) / "node.sqlite").stat()
    place = [status.st_dev, status.st_ino, machine.boot()]
    storage.remember(Row("place", (), place))
    return list(stored.get("place", {}).get((), place)) != place


def lives_of_log(core: Core, storage: Storage, stored: StoredRows) -> Lineage:
    """Return the lives in which the positions of the log were given, up to the present life."""
    lives = as_lineage(stored.get("lives", {}).get((), ()))
    lives = extend(lives, core.life, core.position + 1)
    storage.remember(Row("lives", (), lives))
    return lives
