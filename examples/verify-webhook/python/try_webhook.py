"""Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md)."""

import os
import sys

from verify_webhook import (
    read_public_keys,
    read_secrets,
    verify_service_signature,
    verify_standard_webhook,
    verify_with_public_keys,
)

env = os.environ
body = sys.stdin.buffer.read()
now = float(env["NOW"]) if "NOW" in env else None
if "SERVICE_SIGNATURE" in env:
    verified = verify_service_signature(body, env["SERVICE_SIGNATURE"], read_secrets(env.get("SECRETS")), now)
else:
    standard = (body, env["WEBHOOK_ID"], env["WEBHOOK_TIMESTAMP"], env["WEBHOOK_SIGNATURE"])
    if "PUBLIC_KEYS" in env:
        verified = verify_with_public_keys(*standard, read_public_keys(env["PUBLIC_KEYS"]), now)
    else:
        verified = verify_standard_webhook(*standard, read_secrets(env.get("SECRETS")), now)
print("verified" if verified else "refused")
sys.exit(0 if verified else 1)
