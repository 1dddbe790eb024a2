<?php
// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
declare(strict_types=1);

require __DIR__ . '/verify-webhook.php';

$body = stream_get_contents(STDIN);
$secrets = explode(' ', getenv('SECRETS'));
$now = getenv('NOW') === false ? null : (int) getenv('NOW');
$own = getenv('SERVICE_SIGNATURE');
$verified = $own !== false
    ? verify_service_signature($body, $own, $secrets, $now)
    : verify_standard_webhook(
        $body,
        getenv('WEBHOOK_ID'),
        getenv('WEBHOOK_TIMESTAMP'),
        getenv('WEBHOOK_SIGNATURE'),
        $secrets,
        $now
    );
echo $verified ? "verified\n" : "refused\n";
exit($verified ? 0 : 1);
