"""Hooks of `npm run test:fuzz`: they bring generated requests past the first refusal, and judge what the contract
says beyond its schemas. The environment variables come from run.ts."""

import os
import re

import schemathesis

PARTNER_ID = os.environ["FUZZ_PARTNER_ID"]
# Merchants that are quoted for, and M000005, whose set-up is incomplete.
MERCHANTS = os.environ["FUZZ_MERCHANTS"].split(",")
INCOMPLETE = "M000005"
QUOTES = os.environ["FUZZ_QUOTES"].split(",")
# Simulated ones.
APPLICATIONS = os.environ["FUZZ_APPLICATIONS"].split(",")

MERCHANT_FORMAT = re.compile(r"(M[0-9]{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})")
PARTNER_FORMAT = re.compile(r"P[0-9]{6}")
VISIBLE = re.compile(r"[!-~]{1,64}")
LONGEST_PRODUCT = 200
LOAN_FORMAT = re.compile(r"[1-9][0-9]*(\.[0-9]{1,2})?")


def matches(pattern, value):
    return isinstance(value, str) and pattern.fullmatch(value) is not None


@schemathesis.hook
def map_body(context, body):
    """Puts the key's own partner, and mostly a merchant that exists, where a well-formed id was generated, and
    brings well-formed loans into the range of products: a random one is refused for what it is, and nothing behind that
    check would ever be reached. Valid bodies stay valid and invalid ones invalid. Some are left as they were."""
    if not isinstance(body, dict):
        return body
    body = dict(body)
    merchant, partner = body.get("merchant_id"), body.get("partner_id")
    draw = sum(map(ord, merchant)) if matches(MERCHANT_FORMAT, merchant) else 0
    if matches(PARTNER_FORMAT, partner) and draw % 32 != 0:
        body["partner_id"] = PARTNER_ID
    if matches(MERCHANT_FORMAT, merchant) and draw % 4 != 0:
        body["merchant_id"] = MERCHANTS[draw % len(MERCHANTS)]
    loan = body.get("loan_amount")
    if matches(LOAN_FORMAT, loan) and draw % 4 != 1:
        # Most generated amounts are beyond every product.
        pounds, point, pence = loan.partition(".")
        body["loan_amount"] = f"{int(pounds[-7:]) % 2_000_000 + 10}{point}{pence}"
    quote = body.get("service_quote_id")
    draw = sum(map(ord, quote)) if matches(VISIBLE, quote) else 0
    if draw % 4 != 0:
        body["service_quote_id"] = QUOTES[draw % len(QUOTES)]
        # A generated name is no product of a quote. One that is too long has to be refused, so it stays.
        product = body.get("credit_product")
        if isinstance(product, str) and len(product) <= LONGEST_PRODUCT and draw % 4 != 1:
            del body["credit_product"]
    return body


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Puts a simulated application where an id of one is asked for, in every second case."""
    given = (path_parameters or {}).get("credit_application_id")
    if not isinstance(given, str) or sum(map(ord, given)) % 2 == 0:
        return path_parameters
    return {**path_parameters, "credit_application_id": APPLICATIONS[len(given) % len(APPLICATIONS)]}


def error_of(response):
    return response.json().get("error", {})


def is_incomplete_merchant(case, response):
    """The one 500 that a request can ask for: documented, with its own code and details."""
    if response.status_code != 500 or not isinstance(case.body, dict) or case.body.get("merchant_id") != INCOMPLETE:
        return False
    error = error_of(response)
    details = error.get("details", {})
    return (
        error.get("code") == "MERCHANT_CONFIGURATION_INCOMPLETE"
        and details.get("merchant_id") == INCOMPLETE
        and len(details.get("missing_fields", [])) > 0
    )


def is_older_client(case):
    """Amounts are documented as text, and taken as numbers too."""
    body = case.body if isinstance(case.body, dict) else {}
    return any(isinstance(body.get(field), (int, float)) for field in ("loan_amount", "customer_deposit"))


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Both checks stay on: only M000005's documented 500 passes the first, and an amount as a number the second."""
    return not (
        ("not_a_server_error" in failure.checks and is_incomplete_merchant(case, response))
        or ("negative_data_rejection" in failure.checks and is_older_client(case))
    )


@schemathesis.check
def request_id_is_echoed_or_made(ctx, response, case):
    """The caller's id when it is 1 to 128 visible ASCII characters, else one of ours."""
    answered = response.headers["x-request-id"][0]
    usable = re.compile(r"[\x21-\x7e]{1,128}")
    sent = [response.request.headers.get(name, "") for name in ("X-Request-Id", "X-Correlation-Id")]
    sent = [value.decode("latin-1") if isinstance(value, bytes) else value for value in sent]
    usable_ids = [value for value in sent if usable.fullmatch(value)]
    if usable_ids:
        assert answered == usable_ids[0], f"{usable_ids[0]!r} was sent, {answered!r} answered"
    else:
        assert re.fullmatch(r"rq_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", answered), answered


@schemathesis.check
def error_code_fits_status(ctx, response, case):
    """The document has an example of each code of a status, but not the answer to another method."""
    if response.status_code in (200, 201, 202):
        return
    documented = case.operation.definition.raw["responses"].get(str(response.status_code), {})
    codes = documented.get("content", {}).get("application/json", {}).get("examples", {})
    code = error_of(response).get("code")
    assert code in codes or (code, response.status_code) == ("NOT_FOUND", 404), f"{code} with {response.status_code}"


def names_a_prototype(value):
    """Whether an object in it holds what the document's description of the body says is refused."""
    if isinstance(value, dict):
        constructor = value.get("constructor")
        return (
            "__proto__" in value
            or (isinstance(constructor, dict) and "prototype" in constructor)
            or any(map(names_a_prototype, value.values()))
        )
    return isinstance(value, list) and any(map(names_a_prototype, value))


@schemathesis.check
def valid_data_is_refused_for_a_known_reason_only(ctx, response, case):
    """Stands in for `positive_data_acceptance`, sharper than its list of statuses: what JSON Schema cannot say are
    whose key it is, which URIs are a finance page, and what a prototype is called."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 400:
        return
    error = error_of(response)
    field = error.get("details", {}).get("field")
    known = (
        (field == "partner_id" and "does not match" in error["message"])
        or field == "merchant_finance_url"
        # Nobody can make a cursor; and a span has an order, a length and a place in time.
        or field in ("cursor", "created_from", "created_to")
        # A sequence counts within an application.
        or (field == "sequence" and "needs credit_application_id" in error["message"])
        or names_a_prototype(case.body)
    )
    assert known, f"valid data refused: {error}"
