"""The Streamable HTTP channel over TLS: what is trusted, and what is said of what is not."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bridge.upstream.channel import ChannelError, Limits
from bridge.upstream.http import open_http
from tests.upstream.scripted_http import scripted
from tests.upstream.test_http_channel import echo


def certificate(place: Path, address: str, valid_days: int) -> ssl.SSLContext:
    """A server's side: a certificate for `address`, signed by itself, which `place` then holds."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=valid_days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    place.write_bytes(made.public_bytes(pem))
    secret = place.with_suffix(".key")
    secret.write_bytes(key.private_bytes(pem, *private))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place, secret)
    return context


async def test_server_that_is_trusted_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certificate(tmp_path / "good.pem", "127.0.0.1", 10)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "good.pem"))
    async with (
        scripted(echo, tls) as server,
        open_http(server.url, {}, lambda *_: None, Limits()) as channel,
    ):
        for number in range(3):
            assert await channel.request("m", {"n": number}) == {"asked": {"n": number}}

        assert server.connections == 1


@pytest.mark.parametrize(
    ("address", "valid_days", "trusted", "says"),
    [
        ("127.0.0.1", 10, False, "certificate verify failed: "),
        ("127.0.0.1", -1, True, "certificate has expired"),
        ("192.0.2.1", 10, True, "certificate is not valid for '127.0.0.1'"),
    ],
)
async def test_server_that_is_not_trusted_saw_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    valid_days: int,
    trusted: bool,
    says: str,
) -> None:
    tls = certificate(tmp_path / "bad.pem", address, valid_days)
    certificate(tmp_path / "other.pem", address, 10)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / ("bad.pem" if trusted else "other.pem")))
    async with (
        scripted(echo, tls) as server,
        open_http(server.url, {}, lambda *_: None, Limits()) as channel,
    ):
        with pytest.raises(ChannelError, match=says) as caught:
            await channel.request("m", {})

    assert not caught.value.sent
    assert server.requests == []
