-- Stores the notification of the state that an application has just reached. It is queued, or held without an active
-- endpoint. The application is stored first, because a policy compares the notification with it. Returns the state.
CREATE OR REPLACE FUNCTION store_status_1(
  id text, event text, a credit_applications, event_body text, of_request text, trace text
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  born text;
BEGIN
  INSERT INTO notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
    merchant_reference, body, created_at, request_id, trace_parent)
  VALUES (id, event, 'credit_application.' || a.state, a.partner_id, a.environment, a.application_id, a.sequence,
    a.merchant_reference, event_body, a.updated_at, of_request, trace);
  born := CASE WHEN EXISTS (
    SELECT FROM webhook_endpoints e
    WHERE e.partner_id = a.partner_id AND e.environment = a.environment AND e.state = 'active') THEN 'queued' ELSE 'held' END;
  INSERT INTO deliveries (notification_id, partner_id, environment, application_id, sequence, test, state, hold_reason, held_at)
  VALUES (id, a.partner_id, a.environment, a.application_id, a.sequence, false, born,
    CASE WHEN born = 'held' THEN no_endpoint_reason_1(a.partner_id, a.environment) END,
    CASE WHEN born = 'held' THEN service_now() END);
  RETURN born;
END $$;
