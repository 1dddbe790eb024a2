<?php
// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
declare(strict_types=1);

require __DIR__ . '/verify-webhook.php';

$body = stream_get_contents(STDIN);
$now = getenv('NOW') === false ? null : (int) getenv('NOW');
$own = getenv('SERVICE_SIGNATURE');
$public_keys = getenv('PUBLIC_KEYS');
$standard = [$body, getenv('WEBHOOK_ID'), getenv('WEBHOOK_TIMESTAMP'), getenv('WEBHOOK_SIGNATURE')];
if ($own !== false) {
    $verified = verify_service_signature($body, $own, read_secrets(getenv('SECRETS')), $now);
} elseif ($public_keys === false) {
    $verified = verify_standard_webhook(...[...$standard, read_secrets(getenv('SECRETS')), $now]);
} else {
    $verified = verify_with_public_keys(...[...$standard, read_public_keys($public_keys), $now]);
}
echo $verified ? "verified\n" : "refused\n";
exit($verified ? 0 : 1);
