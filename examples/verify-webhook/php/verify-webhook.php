<?php
// Verifies a webhook of the Partner Finance Quote Service. PHP 8.0 or later, no dependencies.
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/**
 * The secrets in a text, separated by white space. Call it when your receiver starts.
 * It throws InvalidArgumentException when there is none, or one is malformed.
 */
function read_secrets(#[SensitiveParameter] string|false|null $text): array
{
    $secrets = preg_split('/\s+/', (string) $text, -1, PREG_SPLIT_NO_EMPTY);
    webhook_keys($secrets, 'whsec_');
    return $secrets;
}

/** The same of public keys. */
function read_public_keys(string|false|null $text): array
{
    $public_keys = preg_split('/\s+/', (string) $text, -1, PREG_SPLIT_NO_EMPTY);
    webhook_keys($public_keys, 'whpk_');
    return $public_keys;
}

/**
 * The bytes of keys. Whoever knows an empty or guessable key can sign, so nothing but 32 bytes in base64 is a key. The exception does
 * not show it.
 */
function webhook_keys(#[SensitiveParameter] array $keys, string $prefix): array
{
    if ($keys === [])
        throw new InvalidArgumentException("there is no $prefix key: is the variable that should contain it unset or empty?");
    $bytes = [];
    foreach ($keys as $key) {
        if (!is_string($key) || !str_starts_with($key, $prefix))
            throw new InvalidArgumentException("a key does not begin with $prefix: is it a placeholder, or in quotes?");
        $base64 = substr($key, strlen($prefix));
        if (preg_match('~^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$~D', $base64) !== 1)
            throw new InvalidArgumentException("behind $prefix must come 32 bytes in base64, 44 characters: was the key cut off?");
        $bytes[] = base64_decode($base64, true);
    }
    return $bytes;
}

function is_fresh(string $timestamp, int $now): bool
{
    return preg_match('/^[0-9]{1,12}$/D', $timestamp) === 1 && abs($now - (int) $timestamp) <= TOLERANCE_SECONDS;
}

/** What is signed has points between its parts, so a point in the id would let somebody divide it differently. */
function is_webhook_id(string $id): bool
{
    return $id !== '' && !str_contains($id, '.');
}

/** `Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of our live secrets. */
function verify_service_signature(string $body, string $header, array $secrets, ?int $now = null): bool
{
    $keys = webhook_keys($secrets, 'whsec_');
    $timestamp = '';
    $given = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', trim($part), 2), 2, '');
        if ($name === 't') $timestamp = $value;
        if ($name === 'v1') $given[] = $value;
    }
    if (!is_fresh($timestamp, $now ?? time())) return false;
    foreach ($keys as $key) {
        $expected = hash_hmac('sha256', "$timestamp.$body", $key);
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
    $keys = webhook_keys($secrets, 'whsec_');
    if (!is_webhook_id($id) || !is_fresh($timestamp, $now ?? time())) return false;
    foreach ($keys as $key) {
        $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
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
    $keys = webhook_keys($public_keys, 'whpk_');
    if (!is_webhook_id($id) || !is_fresh($timestamp, $now ?? time())) return false;
    foreach ($keys as $key) {
        foreach (explode(' ', $signature) as $part) {
            [$name, $text] = array_pad(explode(',', $part, 2), 2, '');
            $one = base64_decode($text, true);
            if ($name !== 'v1a' || $one === false || strlen($one) !== SODIUM_CRYPTO_SIGN_BYTES) continue;
            if (sodium_crypto_sign_verify_detached($one, "$id.$timestamp.$body", $key)) return true;
        }
    }
    return false;
}
