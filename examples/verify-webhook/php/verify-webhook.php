<?php
// Verifies a webhook of the Partner Finance Quote Service. PHP 8.0 or later, no dependencies.
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/** The bytes of a secret: `whsec_` and base64. */
function webhook_key(string $secret): string
{
    return base64_decode(preg_replace('/^whsec_/', '', $secret), true) ?: throw new InvalidArgumentException('bad secret');
}

function is_fresh(string $timestamp, int $now): bool
{
    return preg_match('/^[0-9]{1,12}$/D', $timestamp) === 1 && abs($now - (int) $timestamp) <= TOLERANCE_SECONDS;
}

/** `Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of our live secrets. */
function verify_service_signature(string $body, string $header, array $secrets, ?int $now = null): bool
{
    $timestamp = '';
    $given = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', trim($part), 2), 2, '');
        if ($name === 't') $timestamp = $value;
        if ($name === 'v1') $given[] = $value;
    }
    if (!is_fresh($timestamp, $now ?? time())) return false;
    foreach ($secrets as $secret) {
        $expected = hash_hmac('sha256', "$timestamp.$body", webhook_key($secret));
        foreach ($given as $signature) {
            if (hash_equals($expected, $signature)) return true;
        }
    }
    return false;
}

/** Standard Webhooks: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…` separated by spaces. */
function verify_standard_webhook(
    string $body,
    string $id,
    string $timestamp,
    string $signature,
    array $secrets,
    ?int $now = null
): bool {
    if (!is_fresh($timestamp, $now ?? time())) return false;
    foreach ($secrets as $secret) {
        $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", webhook_key($secret), true));
        foreach (explode(' ', $signature) as $one) {
            if (hash_equals($expected, $one)) return true;
        }
    }
    return false;
}

/**
 * Standard Webhooks without a shared secret: Ed25519 over the same in base64, `v1a,…`; the keys of `GET /v1/webhook-keys`.
 * It needs the extension sodium, which comes with PHP.
 */
function verify_with_public_keys(
    string $body,
    string $id,
    string $timestamp,
    string $signature,
    array $public_keys,
    ?int $now = null
): bool {
    if (!is_fresh($timestamp, $now ?? time())) return false;
    foreach ($public_keys as $public_key) {
        $key = base64_decode(preg_replace('/^whpk_/', '', $public_key), true) ?: throw new InvalidArgumentException('bad key');
        foreach (explode(' ', $signature) as $part) {
            [$name, $text] = array_pad(explode(',', $part, 2), 2, '');
            $one = base64_decode($text, true);
            if ($name !== 'v1a' || $one === false || strlen($one) !== SODIUM_CRYPTO_SIGN_BYTES) continue;
            if (sodium_crypto_sign_verify_detached($one, "$id.$timestamp.$body", $key)) return true;
        }
    }
    return false;
}
