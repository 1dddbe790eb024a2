"""Verifies a webhook of the Partner Finance Quote Service. Python 3.8 or later, no dependencies but for public keys."""

import base64
import hashlib
import hmac
import re
import time

TOLERANCE_SECONDS = 300


def _key(secret):
    """The bytes of a secret: `whsec_` and base64."""
    return base64.b64decode(secret[len("whsec_") :] if secret.startswith("whsec_") else secret)


def _is_fresh(timestamp, now):
    return re.fullmatch(r"[0-9]{1,12}", timestamp) is not None and abs(now - int(timestamp)) <= TOLERANCE_SECONDS


def verify_service_signature(body, header, secrets, now=None):
    """`Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of our live secrets."""
    now = time.time() if now is None else now
    parts = [part.strip().partition("=") for part in header.split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    if not _is_fresh(timestamp, now):
        return False
    given = [value.encode() for name, _, value in parts if name == "v1"]
    for secret in secrets:
        signed = timestamp.encode() + b"." + body
        expected = hmac.new(_key(secret), signed, hashlib.sha256).hexdigest().encode()
        if any(hmac.compare_digest(signature, expected) for signature in given):
            return True
    return False


def verify_standard_webhook(body, webhook_id, timestamp, signature, secrets, now=None):
    """Standard Webhooks: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…` separated by spaces."""
    now = time.time() if now is None else now
    if not _is_fresh(timestamp, now):
        return False
    parts = [part.partition(",") for part in signature.split(" ")]
    given = [value.encode() for name, _, value in parts if name == "v1"]
    for secret in secrets:
        signed = webhook_id.encode() + b"." + timestamp.encode() + b"." + body
        expected = base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(one, expected) for one in given):
            return True
    return False


def verify_with_public_keys(body, webhook_id, timestamp, signature, public_keys, now=None):
    """Standard Webhooks without a shared secret: Ed25519 over the same in base64, `v1a,…`; the keys of `GET /v1/webhook-keys`.
    Python has no Ed25519 of its own: `pip install cryptography`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    now = time.time() if now is None else now
    if not _is_fresh(timestamp, now):
        return False
    parts = [part.partition(",") for part in signature.split(" ")]
    signed = webhook_id.encode() + b"." + timestamp.encode() + b"." + body
    for public_key in public_keys:
        text = public_key[len("whpk_") :] if public_key.startswith("whpk_") else public_key
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(text))
        for one in [value for name, _, value in parts if name == "v1a"]:
            try:
                key.verify(base64.b64decode(one), signed)
                return True
            except (ValueError, InvalidSignature):
                continue
    return False
