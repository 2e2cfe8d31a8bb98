"""The servers beside which a node is measured, as far as they are installed."""

from __future__ import annotations

from typing import NamedTuple

from fieldfare_lab.node import mosquitto, nats, rabbitmq
from fieldfare_lab.node.client_processes import Contender


class Peers(NamedTuple):
    """The contenders that can run here, and for each server that cannot, how to install it."""

    contenders: list[Contender]
    missing: list[str]


def peers(*, quick: bool) -> Peers:
    """Return the servers of others; if `quick`, RabbitMQ in one variant only."""
    rabbits = rabbitmq.VARIANTS[: 1 if quick else None]
    found = (
        (nats.missing(), [nats.contender(variant) for variant in nats.VARIANTS]),
        (mosquitto.missing(), [mosquitto.contender()]),
        (rabbitmq.missing(), [rabbitmq.contender(variant) for variant in rabbits]),
    )
    return Peers(
        [one for missing, contenders in found if missing is None for one in contenders],
        [missing for missing, _ in found if missing is not None],
    )
