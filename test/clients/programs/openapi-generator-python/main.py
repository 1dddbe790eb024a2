"""A quote, a list, refusals with their typed errors, and values that this client does not know. Prints what it saw."""
import json
import os

import openapi_client as client
from openapi_client.models import QuoteRequest

env = os.environ
configuration = client.Configuration(host=env["BASE_URL"], access_token=env["API_KEY"], ssl_ca_cert=env["CA_FILE"])
api = client.ApiClient(configuration)
quotes, notifications, applications = client.QuotesApi(api), client.NotificationsApi(api), client.ApplicationsApi(api)


def quote(merchant_id):
    return quotes.get_finance_quote(
        QuoteRequest(
            merchant_id=merchant_id,
            partner_id=env["PARTNER_ID"],
            loan_amount="900.00",
            customer_deposit="100.00",
            merchant_finance_url="https://shop.example/finance",
        )
    ).data


def refused(call):
    try:
        call()
    except client.ApiException as error:
        return [error.status, error.data.error.code, error.data.error.details.merchant_id]


got = quote("M000001")
one = notifications.get_notification(env["NOTIFICATION_ID"]).data
print(
    json.dumps(
        {
            "quote": [got.summary.display, got.products[0].customer_deposit],
            "listed": [item.notification_id for item in notifications.list_notifications(limit=5).data.notifications],
            "refused": refused(lambda: quote("M999999")),
            "state": [one.status, one.event_type, one.attempt_log[0].failure],
            "code": refused(lambda: applications.get_credit_application(env["APPLICATION_ID"]))[:2],
        }
    )
)
