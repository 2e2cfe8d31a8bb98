"""TLS: trusted authorities, and files that contain no certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from tests.certificates import pem, self_signed

from fieldfare.node.config import Config, ConfigError, Tls
from fieldfare.node.security import (
    tls_context,
)


def certificate(folder: Path, name: str) -> Tls:
    """A certificate that vouches for itself."""
    files = {"certificate": str(folder / f"{name}.pem"), "key": str(folder / f"{name}.key")}
    self_signed(Path(files["certificate"]), Path(files["key"]), name)
    return Tls(**files, authorities=files["certificate"])


def handshake(client: ssl.SSLContext, server: Tls) -> None:
    """Let a client and a server meet, in memory."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.certificate, server.key)
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(here, there, server_hostname="localhost"), context.wrap_bio(there, here, server_side=True)]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass


def test_a_client_trusts_the_given_authorities_only(tmp_path: Path) -> None:
    assert tls_context(Config()) is None
    oslo, rome = certificate(tmp_path, "oslo"), certificate(tmp_path, "rome")
    context = tls_context(Config(tls=oslo))
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    handshake(context, oslo)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, rome)
    machine = tls_context(Config(tls=Tls()))
    assert machine is not None
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(machine, oslo)


def test_files_that_hold_no_certificates_are_named(tmp_path: Path) -> None:
    oslo, rome = certificate(tmp_path, "oslo"), certificate(tmp_path, "rome")
    locked = tmp_path / "locked.key"
    locked.write_bytes(pem(serialization.load_pem_private_key(Path(oslo.key).read_bytes(), None), b"abcd"))
    (tmp_path / "empty.pem").touch()
    for tls, problem in [
        (Tls(authorities=str(tmp_path / "empty.pem")), "tls.authorities: contains no certificates"),
        (Tls(authorities=oslo.key), "tls.authorities: contains no certificates"),
        (Tls(certificate=oslo.certificate, key=rome.key), "must be a pair in PEM"),
        (Tls(certificate=oslo.certificate, key=str(locked)), "without a passphrase"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            tls_context(Config(tls=tls))
