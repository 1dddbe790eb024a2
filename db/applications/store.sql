-- Opens an application and stores the notification of that, in one round trip. Returns the notification's state; null when
-- the reference, or the number among the simulated applications of the quote, is taken.
CREATE OR REPLACE FUNCTION open_application_1(
  opened_id text, of_lender text, reference text, of_quote text, of_partner text, of_environment text, of_merchant text,
  their_reference text, loan bigint, deposit bigint, product text, number smallint, service_key text, of_request text,
  moment timestamptz, id text, event text, event_body text, trace text
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  opened credit_applications;
BEGIN
  INSERT INTO credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment, merchant_id,
    merchant_reference, loan_pence, deposit_pence, credit_product, simulated, service_key_id, request_id, sequence,
    state_occurred_at, created_at, updated_at)
  VALUES (opened_id, of_lender, reference, of_quote, of_partner, of_environment, of_merchant,
    their_reference, loan, deposit, product, number, service_key, of_request, 1, moment, moment, moment)
  ON CONFLICT DO NOTHING
  RETURNING * INTO opened;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  RETURN store_status_1(id, event, opened, event_body, of_request, trace);
END $$;

-- Brings an application, whose row is locked, into the state of an event of its lender, and stores the notification of
-- that. Returns the notification's state.
CREATE OR REPLACE FUNCTION apply_event_1(
  of_application text, number bigint, previous text, reached text, occurred timestamptz, moment timestamptz, id text,
  event text, event_body text, of_request text, trace text
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  moved credit_applications;
BEGIN
  UPDATE credit_applications a
  SET state = reached, state_occurred_at = occurred, sequence = a.sequence + 1, updated_at = moment
  WHERE a.application_id = of_application
  RETURNING a.* INTO moved;
  UPDATE lender_events e
  SET previous_state = previous, sequence = moved.sequence, applied_at = moment, waits_until = NULL
  WHERE e.event_number = number;
  RETURN store_status_1(id, event, moved, event_body, of_request, trace);
END $$;
