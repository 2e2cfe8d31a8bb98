"""The TLS context with which a node connects to other nodes."""

from __future__ import annotations

import ssl

from fieldfare.node.config import Config, ConfigError


def tls_context(config: Config) -> ssl.SSLContext | None:
    """Return a context that trusts the given authorities only, and shows the node's certificate if asked.

    None: there is no `[tls]` section, and the authorities of the machine count.
    """
    tls = config.tls
    if tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=tls.authorities or None)
    except (ssl.SSLError, OSError):
        raise ConfigError(tls.authorities, "tls.authorities", "contains no certificates in PEM") from None
    if tls.certificate:
        try:
            # An empty passphrase: without one OpenSSL would ask at the terminal, and wait.
            context.load_cert_chain(tls.certificate, tls.key, password="")
        except (ssl.SSLError, OSError):
            raise ConfigError(
                tls.certificate, "tls.certificate", "this and tls.key must be a pair in PEM, without a passphrase"
            ) from None
    return context
