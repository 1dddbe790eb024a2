"""Verifies a webhook of the Partner Finance Quote Service. Python 3.8 or later, no dependencies but for public keys."""

import base64
import hashlib
import hmac
import re
import time

TOLERANCE_SECONDS = 300


def read_secrets(text):
    """The secrets in a text, separated by white space. Call it when your receiver starts.
    Raises ValueError when there is none, or one is malformed."""
    return _checked((text or "").split(), "whsec_")


def read_public_keys(text):
    """The same of public keys."""
    return _checked((text or "").split(), "whpk_")


def _checked(keys, prefix):
    """Whoever knows an empty or guessable key can sign, so nothing but 32 bytes in base64 is a key. The error does not show it."""
    if not isinstance(keys, (list, tuple)) or not keys:
        raise ValueError(f"there is no {prefix} key: is the variable that should contain it unset or empty?")
    for key in keys:
        if not isinstance(key, str) or not key.startswith(prefix):
            raise ValueError(f"a key does not begin with {prefix}: is it a placeholder, or in quotes?")
        if re.fullmatch(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=", key[len(prefix) :]) is None:
            raise ValueError(f"behind {prefix} must come 32 bytes in base64, 44 characters: was the key cut off?")
    return keys


def _bytes(key):
    return base64.b64decode(key.partition("_")[2])


def _is_fresh(timestamp, now):
    return re.fullmatch(r"[0-9]{1,12}", timestamp) is not None and abs(now - int(timestamp)) <= TOLERANCE_SECONDS


def _is_id(webhook_id):
    """What is signed has points between its parts, so a point in the id would let somebody divide it differently."""
    return webhook_id != "" and "." not in webhook_id


def verify_service_signature(body, header, secrets, now=None):
    """`Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of our live secrets."""
    keys = [_bytes(secret) for secret in _checked(secrets, "whsec_")]
    now = time.time() if now is None else now
    parts = [part.strip().partition("=") for part in header.split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    if not _is_fresh(timestamp, now):
        return False
    given = [value.encode() for name, _, value in parts if name == "v1"]
    for key in keys:
        signed = timestamp.encode() + b"." + body
        expected = hmac.new(key, signed, hashlib.sha256).hexdigest().encode()
        if any(hmac.compare_digest(signature, expected) for signature in given):
            return True
    return False


def verify_standard_webhook(body, webhook_id, timestamp, signature, secrets, now=None):
    """Standard Webhooks: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…` separated by spaces."""
    keys = [_bytes(secret) for secret in _checked(secrets, "whsec_")]
    now = time.time() if now is None else now
    if not _is_id(webhook_id) or not _is_fresh(timestamp, now):
        return False
    parts = [part.partition(",") for part in signature.split(" ")]
    given = [value.encode() for name, _, value in parts if name == "v1"]
    for key in keys:
        signed = webhook_id.encode() + b"." + timestamp.encode() + b"." + body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(one, expected) for one in given):
            return True
    return False


def verify_with_public_keys(body, webhook_id, timestamp, signature, public_keys, now=None):
    """Standard Webhooks without a shared secret: Ed25519 over the same in base64, `v1a,…`; the keys of `GET /v1/webhook-keys`.
    Python has no Ed25519 of its own: `pip install cryptography`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    keys = [_bytes(public_key) for public_key in _checked(public_keys, "whpk_")]
    now = time.time() if now is None else now
    if not _is_id(webhook_id) or not _is_fresh(timestamp, now):
        return False
    parts = [part.partition(",") for part in signature.split(" ")]
    signed = webhook_id.encode() + b"." + timestamp.encode() + b"." + body
    for raw in keys:
        key = Ed25519PublicKey.from_public_bytes(raw)
        for one in [value for name, _, value in parts if name == "v1a"]:
            try:
                key.verify(base64.b64decode(one), signed)
                return True
            except (ValueError, InvalidSignature):
                continue
    return False
