"""What is secret in a subscription is shown as `***`; and what comes back so stands for what it was.

A sink's credential is never shown. Headers may hold one too, and so may the path and query of a URL: so the values of
headers that sound like it are masked for everybody, and all of them, and URLs, for whoever is not the owner. Somebody
who was shown a subscription can send it back changed. But a secret goes to no other sink than before, or an
administrator could have it sent to their own.
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
    """What was asked for, as its owner may see it, or somebody else."""
    settings = description.protocolsettings
    headers = {name: value if own and not _SECRET.search(name) else MASK for name, value in settings.headers.items()}
    shown = replace(description, protocolsettings=replace(settings, headers=headers), sinkcredential=None)
    if own:
        return shown
    config = replace(description.config, deadlettersink=sinks.masked(description.config.deadlettersink))
    return replace(shown, sink=sinks.masked(description.sink), config=config)


def unmasked(description: Description, before: Description) -> Description:
    """What is asked for now, with all that is masked in it as it was before."""
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
        problem = "the value of a header is masked, and goes to no other sink than before: write it anew"
        raise Problem(400, problem, member="protocolsettings.headers")
    return replace(description, protocolsettings=replace(description.protocolsettings, headers=headers))
