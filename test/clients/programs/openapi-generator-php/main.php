<?php
// A quote, a list, refusals with their typed errors, and values that this client does not know. Prints what it saw.
require 'GuzzleHttp/autoload.php';
spl_autoload_register(fn ($class) => require str_replace(['OpenAPI\\Client\\', '\\'], ['lib/', '/'], $class) . '.php');

use OpenAPI\Client\Api\{ApplicationsApi, NotificationsApi, QuotesApi};
use OpenAPI\Client\{ApiException, Configuration, ObjectSerializer};
use OpenAPI\Client\Model\QuoteRequest;

$configuration = (new Configuration())->setHost(getenv('BASE_URL'))->setAccessToken(getenv('API_KEY'));
$http = new GuzzleHttp\Client(['verify' => getenv('CA_FILE')]);
$quotes = new QuotesApi($http, $configuration);
$notifications = new NotificationsApi($http, $configuration);
$applications = new ApplicationsApi($http, $configuration);

$quote = fn ($merchant) => $quotes->getFinanceQuote(new QuoteRequest([
    'merchant_id' => $merchant,
    'partner_id' => getenv('PARTNER_ID'),
    'loan_amount' => '900.00',
    'customer_deposit' => '100.00',
    'merchant_finance_url' => 'https://shop.example/finance',
]))->getData();

function refused(callable $call): array
{
    try {
        $call();
    } catch (ApiException $exception) {
        $error = $exception->getResponseObject()->getError();
        return [$exception->getCode(), $error->getCode(), $error->getDetails()->getMerchantId()];
    }
    return [];
}

$got = $quote('M000001');
$one = $notifications->getNotification(getenv('NOTIFICATION_ID'))->getData();
// A DateTime in a query fails in the generated client, a string does not (openapi-generator 7.25).
$listed = $notifications->listNotifications(created_from: '2026-01-01T00:00:00Z', limit: 5)->getData()->getNotifications();
$event = ObjectSerializer::deserialize($one->getPayload(), '\OpenAPI\Client\Model\CreditApplicationEvent', []);
echo json_encode([
    'quote' => [$got->getSummary()->getDisplay(), $got->getProducts()[0]->getCustomerDeposit()],
    'listed' => array_map(fn ($item) => $item->getNotificationId(), $listed),
    'refused' => refused(fn () => $quote('M999999')),
    'state' => [$one->getStatus(), $one->getEventType(), $one->getAttemptLog()[0]->getFailure()],
    'code' => array_slice(refused(fn () => $applications->getCreditApplication(getenv('APPLICATION_ID'))), 0, 2),
    'event' => $event->getData()->getStatus(),
]);
