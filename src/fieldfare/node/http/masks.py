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

from fieldfare.node.http import sinks
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.sinks import MASK
from fieldfare.node.http.webhooks import Wanted

_SECRET: Final = re.compile(r"auth|cookie|token|key|secret|password|credential|signature", re.IGNORECASE)


def masked(wanted: Wanted, *, own: bool) -> Wanted:
    """What was asked for, as its owner may see it, or somebody else."""
    settings = wanted.protocolsettings
    headers = {name: value if own and not _SECRET.search(name) else MASK for name, value in settings.headers.items()}
    shown = replace(wanted, protocolsettings=replace(settings, headers=headers), sinkcredential=None)
    if own:
        return shown
    config = replace(wanted.config, deadlettersink=sinks.masked(wanted.config.deadlettersink))
    return replace(shown, sink=sinks.masked(wanted.sink), config=config)


def unmasked(wanted: Wanted, before: Wanted) -> Wanted:
    """What is asked for now, with all that is masked in it as it was before."""
    config = wanted.config
    if config.deadlettersink and config.deadlettersink == sinks.masked(before.config.deadlettersink):
        wanted = replace(wanted, config=replace(config, deadlettersink=before.config.deadlettersink))
    if wanted.sink == sinks.masked(before.sink):
        wanted = replace(wanted, sink=before.sink)
    known = before.protocolsettings.headers if wanted.sink == before.sink else {}
    headers = {
        name: known.get(name, value) if value == MASK else value
        for name, value in wanted.protocolsettings.headers.items()
    }
    if MASK in headers.values():
        problem = "the value of a header is masked, and goes to no other sink than before: write it anew"
        raise Problem(400, problem, member="protocolsettings.headers")
    return replace(wanted, protocolsettings=replace(wanted.protocolsettings, headers=headers))
