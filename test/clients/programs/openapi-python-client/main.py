"""A quote, a list, refusals with their typed errors, and values that this client does not know. Prints what it saw."""
import json
import os

from partner_finance_quote_service_client import AuthenticatedClient
from partner_finance_quote_service_client.api.applications import get_credit_application
from partner_finance_quote_service_client.api.notifications import get_notification, list_notifications
from partner_finance_quote_service_client.api.quotes import get_finance_quote
from partner_finance_quote_service_client.models import QuoteRequest

env = os.environ
client = AuthenticatedClient(base_url=env["BASE_URL"], token=env["API_KEY"], verify_ssl=env["CA_FILE"])


def quote(merchant_id):
    body = QuoteRequest(
        merchant_id=merchant_id,
        partner_id=env["PARTNER_ID"],
        loan_amount="900.00",
        customer_deposit="100.00",
        merchant_finance_url="https://shop.example/finance",
    )
    return get_finance_quote.sync_detailed(client=client, body=body)


got = quote("M000001").parsed.data
one = get_notification.sync(env["NOTIFICATION_ID"], client=client).data
refused = quote("M999999")
hidden = get_credit_application.sync_detailed(env["APPLICATION_ID"], client=client)
print(
    json.dumps(
        {
            "quote": [got.summary.display, got.products[0].customer_deposit],
            "listed": [item.notification_id for item in list_notifications.sync(client=client, limit=5).data.notifications],
            "refused": [refused.status_code, refused.parsed.error.code, refused.parsed.error.details.merchant_id],
            "state": [one.status, one.event_type, one.attempt_log[0].failure],
            "code": [hidden.status_code, hidden.parsed.error.code],
        }
    )
)
