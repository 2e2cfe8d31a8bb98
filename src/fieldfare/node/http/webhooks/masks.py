"""Masks: answers show the secrets of a description as `***`, and a `***` that comes back stands for the old secret.

The credential of a sink is never shown. Headers may contain a credential, too, and so may the path and query of a URL:
headers with telling names are masked for everybody, all headers and URLs for everybody but the owner. So a client can
change one member of a shown description, and send the rest back as shown. But a masked secret goes to no other sink
than before: an administrator could have the secret sent to a sink of their own.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from fieldfare.node.http.errors import Problem
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.http.webhooks.description import Description
from fieldfare.node.http.webhooks.sinks import MASK

_SECRET: Final = re.compile(r"auth|cookie|token|key|secret|password|credential|signature", re.IGNORECASE)


def masked(description: Description, *, own: bool) -> Description:
    """Return a description as its owner may see it (`own`), or others."""
    settings = description.protocolsettings
    headers = {name: value if own and not _SECRET.search(name) else MASK for name, value in settings.headers.items()}
    shown = replace(description, protocolsettings=replace(settings, headers=headers), sinkcredential=None)
    if own:
        return shown
    config = replace(description.config, deadlettersink=sinks.masked(description.config.deadlettersink))
    return replace(shown, sink=sinks.masked(description.sink), config=config)


def unmasked(description: Description, before: Description) -> Description:
    """Return a new description with the masked members as in the description before; Problem 400 for another sink."""
    config = description.config
    if config.deadlettersink and config.deadlettersink == sinks.masked(before.config.deadlettersink):
        description = replace(description, config=replace(config, deadlettersink=before.config.deadlettersink))
    if description.sink == sinks.masked(before.sink):
        description = replace(description, sink=before.sink)
    known = before.protocolsettings.headers if description.sink == before.sink else {}
    headers = {
        name: known.get(name, value) if value == MASK else value
        for name, value in description.protocolsettings.headers.items()
    }
    if MASK in headers.values():
        problem = "the value of a header is masked, and goes to no other sink than before: write the value"
        raise Problem(400, problem, member="protocolsettings.headers")
    return replace(description, protocolsettings=replace(description.protocolsettings, headers=headers))
