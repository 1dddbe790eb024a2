-- Returns why a tenant has no active endpoint. Operators see this as the reason of a hold or of a
-- failed test. Partners see only the first reason, whichever it is
-- (api/routes/send-test-notification.ts).
CREATE OR REPLACE FUNCTION no_endpoint_reason_1(of_partner text, of_environment text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    (SELECT 'endpoint_' || CASE WHEN e.disabled_reason IN ('gone', 'failing') THEN e.disabled_reason ELSE 'disabled' END
      FROM webhook_endpoints e
      WHERE e.partner_id = of_partner AND e.environment = of_environment AND e.state = 'disabled'),
    'webhook_not_registered')
$$;

-- What follows for the workflow of this generation, as the row of the delivery says (null: there is none): "over" when
-- it has ended, is held or belongs to another generation; "wait" with the reason, and with a moment unless it is
-- paused; null when an attempt may be made now. Moments are in Unix milliseconds.
CREATE OR REPLACE FUNCTION what_follows_2(d deliveries, id text, of_generation integer, moment timestamptz) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF d.notification_id IS NULL THEN
    RETURN coalesce(
      (SELECT json_build_object('kind', 'over', 'status', n.end_state, 'reason', n.end_reason) FROM notifications n
        WHERE n.notification_id = id AND n.generation = of_generation AND n.end_state IS NOT NULL),
      json_build_object('kind', 'over', 'status', 'superseded', 'reason', NULL));
  END IF;
  RETURN CASE
    WHEN d.generation <> of_generation THEN json_build_object('kind', 'over', 'status', 'superseded', 'reason', NULL)
    WHEN d.state = 'held' THEN json_build_object('kind', 'over', 'status', 'held', 'reason', d.hold_reason)
    WHEN d.hurried_at IS NOT NULL THEN NULL
    WHEN d.paused_at IS NOT NULL THEN json_build_object('kind', 'wait', 'because', 'paused', 'attempts', d.attempts,
      'sinceMs', floor(extract(epoch FROM d.paused_at) * 1000), 'waitMs', NULL, 'untilMs', NULL)
    WHEN d.next_attempt_at > moment THEN json_build_object('kind', 'wait', 'because', coalesce(d.waits_for, 'ladder'),
      'attempts', d.attempts, 'sinceMs', NULL, 'waitMs', ceil(extract(epoch FROM d.next_attempt_at - moment) * 1000),
      'untilMs', floor(extract(epoch FROM d.next_attempt_at) * 1000))
  END;
END $$;

-- Writes the row of an attempt before it is sent, and returns one JSON object: what the attempt needs,
-- or the reason why there is none to make ("kind"). The row of the delivery is locked first, so the
-- database numbers the attempts. An attempt that was left unfinished is closed as unknown, because its
-- process died.
-- only_endpoint: no other endpoint is used; null allows any. The first opening stores the ladder, which
-- then stays.
CREATE OR REPLACE FUNCTION open_attempt_1(
  id text, of_generation integer, only_endpoint text, test_limit integer, status_ladder integer[], test_ladder integer[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  moment timestamptz;
  delivery deliveries;
  answer json;
  n record;
  unit_month date;
BEGIN
  SELECT * INTO delivery FROM deliveries d WHERE d.notification_id = id FOR UPDATE;
  moment := service_now();
  answer := what_follows_2(delivery, id, of_generation, moment);
  IF answer ->> 'kind' = 'over' THEN
    RETURN answer;
  END IF;
  IF delivery.attempts > 0 THEN
    UPDATE delivery_attempts a SET finished_at = moment, outcome = 'unknown'
    WHERE a.notification_id = id AND a.finished_at IS NULL;
  END IF;
  IF answer IS NOT NULL THEN
    -- Event: wait.
    UPDATE deliveries d
    SET state = 'started', checked_at = moment, started_at = coalesce(d.started_at, moment), taken_at = NULL, ordered_at = NULL
    WHERE d.notification_id = id;
    RETURN answer;
  END IF;

  -- A command that pauses deliveries takes this lock exclusively. It waits for the attempts that are
  -- being opened, and later ones see the pause, so no attempt begins after the command has answered.
  PERFORM pg_advisory_xact_lock_shared(
    hashtext('delivery_pauses'), hashtext(delivery.partner_id || '/' || delivery.environment));
  IF deliveries_paused_1(delivery.partner_id, delivery.environment) THEN
    -- Event: park.
    UPDATE deliveries d
    SET state = 'queued', generation = d.generation + 1, due_at = moment, taken_at = NULL, started_at = NULL, checked_at = NULL,
      ordered_at = NULL
    WHERE d.notification_id = id;
    RETURN json_build_object('kind', 'paused');
  END IF;

  -- Every attempt uses the endpoint, secrets and key pairs of the moment when it is opened.
  SELECT s.*, e.endpoint_id, e.url, coalesce(e.surplus_at > moment - interval '1 day', false) AS alone,
    (SELECT json_agg(json_build_object('secretId', w.secret_id, 'keyId', w.key_id, 'ciphertext', encode(w.ciphertext, 'base64'))
        ORDER BY w.created_at DESC, w.secret_id DESC)
      FROM webhook_secrets w
      WHERE w.endpoint_id = e.endpoint_id AND (w.expires_at IS NULL OR w.expires_at > moment)) AS secrets,
    (SELECT json_agg(json_build_object('keyPairId', k.key_pair_id, 'publicKey', k.public_key, 'keyId', k.key_id,
        'ciphertext', encode(k.ciphertext, 'base64')) ORDER BY k.created_at DESC, k.key_pair_id DESC)
      FROM webhook_key_pairs k
      WHERE k.partner_id = s.partner_id AND k.environment = s.environment AND (k.expires_at IS NULL OR k.expires_at > moment)) AS key_pairs
  INTO n
  FROM notifications s
  LEFT JOIN webhook_endpoints e
    ON e.partner_id = s.partner_id AND e.environment = s.environment AND e.state = 'active'
  WHERE s.notification_id = id;
  IF (delivery.partner_id, delivery.environment, delivery.application_id) IS DISTINCT FROM (n.partner_id, n.environment, n.application_id) THEN
    RETURN json_build_object('kind', 'poison');
  ELSIF n.endpoint_id IS NULL THEN
    RETURN json_build_object('kind', 'no_endpoint', 'eventType', n.event_type,
      'reason', no_endpoint_reason_1(n.partner_id, n.environment));
  ELSIF n.endpoint_id <> only_endpoint THEN
    RETURN json_build_object('kind', 'other_endpoint');
  END IF;

  -- The unit of a test's quota moves to the UTC month that this attempt starts in.
  unit_month := delivery.reserved_month;
  IF unit_month <> service_month() THEN
    INSERT INTO monthly_counts AS c (partner_id, environment, month, event_type, reserved)
    VALUES (n.partner_id, n.environment, service_month(), n.event_type, 1)
    ON CONFLICT (partner_id, environment, month, event_type)
    DO UPDATE SET reserved = c.reserved + 1 WHERE c.delivered + c.reserved < test_limit
    RETURNING c.month INTO unit_month;
    IF NOT FOUND THEN
      RETURN json_build_object('kind', 'monthly_limit');
    END IF;
    UPDATE monthly_counts c SET reserved = greatest(c.reserved - 1, 0)
    WHERE c.partner_id = n.partner_id AND c.environment = n.environment AND c.month = delivery.reserved_month
      AND c.event_type = n.event_type;
  END IF;

  INSERT INTO delivery_attempts (notification_id, attempt_number, generation, endpoint_id, started_at)
  VALUES (id, delivery.attempts + 1, of_generation, n.endpoint_id, moment);
  -- Event: attempt. A delivery whose start was not confirmed in time has given its slot back, and takes
  -- one with its first attempt.
  UPDATE deliveries d
  SET state = 'started', checked_at = moment, started_at = coalesce(d.started_at, moment),
    first_attempt_at = coalesce(d.first_attempt_at, moment), attempts = d.attempts + 1, reserved_month = unit_month,
    ordered_at = NULL, ladder_ms = coalesce(d.ladder_ms, CASE WHEN d.test THEN test_ladder ELSE status_ladder END),
    taken_at = CASE WHEN d.first_attempt_at IS NULL THEN coalesce(d.taken_at, moment) ELSE d.taken_at END
  WHERE d.notification_id = id;

  RETURN json_build_object('kind', 'open', 'attemptNumber', delivery.attempts + 1,
    'notification', json_build_object('eventId', n.event_id, 'eventType', n.event_type, 'body', n.body,
      'partnerId', n.partner_id, 'environment', n.environment, 'applicationId', n.application_id, 'sequence', n.sequence,
      'merchantReference', n.merchant_reference, 'requestId', n.request_id, 'traceParent', n.trace_parent,
      'ageMs', extract(epoch FROM moment - n.created_at) * 1000),
    'endpoint', json_build_object('endpointId', n.endpoint_id, 'url', n.url, 'alone', n.alone),
    'secrets', coalesce(n.secrets, '[]'), 'keyPairs', coalesce(n.key_pairs, '[]'));
END $$;
