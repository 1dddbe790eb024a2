-- Records the outcome of an attempt, or an end without one: it finishes the row of the attempt, and
-- changes the notification, the counts, the quota, later events of the application and the health of
-- the endpoint. A second call with the same result changes nothing. The notification is locked before
-- its row in deliveries. The endpoint comes last, because all of its attempts share that row.
--
-- attempt: its number; null when the notification of "of_generation" ends, or is held, without one.
-- result: kind (delivered, failed, or ours: by a fault of our network), failure, httpStatus, durationMs, retryAfterMs, waitMs (of
-- ours), address. ends_as: failed, cancelled, expired or held, of an end without an attempt. Returns one
-- JSON object, in which "follows" is what the workflow does next. With "foreign" in it, no attempt of
-- ours had this result and nothing has changed.
CREATE OR REPLACE FUNCTION record_attempt_1(
  id text, of_generation integer, attempt integer, result jsonb, ends_as text, why text, order_wait interval
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  moment timestamptz;
  n notifications;
  delivery deliveries;
  made delivery_attempts;
  health webhook_endpoints;
  news json;
  kind constant text := result ->> 'kind';
  -- A forged step ends its ladder, and does not overflow.
  most_steps constant integer := 9999;
  -- Of Retry-After, and of a wait for our own network.
  longest_ms constant integer := 36000000;
  step_ms integer;
  retry_after_ms float8;
  wait_ms float8;
  because text;
  gone constant boolean := coalesce(result ->> 'failure' = 'gone', false);
  fresh boolean := false;
  current boolean;
  ended text;
  freed boolean := false;
  later boolean := false;
  in_month date;
BEGIN
  IF kind = 'delivered' OR ends_as IS NOT NULL OR kind = 'failed' AND (gone OR EXISTS (
    SELECT FROM deliveries d WHERE d.notification_id = id AND d.step + 2 > cardinality(d.ladder_ms)))
  THEN
    SELECT * INTO n FROM notifications s WHERE s.notification_id = id FOR UPDATE;
  END IF;
  SELECT * INTO delivery FROM deliveries d WHERE d.notification_id = id FOR UPDATE;
  moment := service_now();

  IF attempt IS NOT NULL THEN
    UPDATE delivery_attempts a
    SET finished_at = moment, outcome = kind, failure = result ->> 'failure', http_status = (result ->> 'httpStatus')::integer,
      duration_ms = (result ->> 'durationMs')::integer, retry_after_ms = (result ->> 'retryAfterMs')::integer,
      address = result ->> 'address'
    WHERE a.notification_id = id AND a.attempt_number = attempt AND a.finished_at IS NULL
    RETURNING * INTO made;
    fresh := FOUND;
    IF NOT fresh THEN
      SELECT * INTO made FROM delivery_attempts a WHERE a.notification_id = id AND a.attempt_number = attempt;
      IF NOT FOUND THEN
        RETURN json_build_object('foreign', 'has no row');
      ELSIF made.outcome NOT IN ('unknown', kind) THEN
        RETURN json_build_object('foreign', 'is recorded as ' || made.outcome);
      END IF;
    END IF;
    of_generation := made.generation;
  END IF;
  -- A late result of an older generation ends the current one only if it is a delivery.
  current := coalesce(delivery.generation = of_generation, false);

  IF fresh AND current AND delivery.state <> 'held' AND kind = 'ours' THEN
    -- It spends no step.
    wait_ms := least(coalesce((result ->> 'waitMs')::float8, 30000), longest_ms);
    because := 'outage';
  ELSIF fresh AND current AND delivery.state <> 'held' AND kind = 'failed' THEN
    -- The ladder begins with the wait before the first attempt. A delivery that an older build opened has
    -- none until it is opened again.
    step_ms := CASE WHEN delivery.ladder_ms IS NULL THEN 5000 ELSE delivery.ladder_ms[delivery.step + 2] END;
    IF gone OR step_ms IS NULL THEN
      ends_as := 'failed';
      why := CASE WHEN gone THEN 'gone' ELSE 'exhausted' END;
    ELSE
      -- Jitter only adds: a tenth of the step, but at least 1 s, or it spreads nothing, and at most 15 min.
      wait_ms := step_ms + CASE WHEN step_ms > 0 THEN floor(random() * least(greatest(step_ms * 0.1, 1000), 900000)) ELSE 0 END;
      retry_after_ms := least(coalesce((result ->> 'retryAfterMs')::float8, 0), longest_ms);
      because := CASE WHEN retry_after_ms > wait_ms THEN 'retry_after' ELSE 'ladder' END;
      wait_ms := greatest(wait_ms, retry_after_ms);
    END IF;
  END IF;

  IF kind = 'delivered' AND n.notification_id IS NOT NULL AND (current OR n.delivered_at IS NULL) THEN
    ended := 'delivered';
    in_month := date_trunc('month', made.started_at AT TIME ZONE 'UTC')::date;
    IF n.delivered_at IS NULL THEN
      -- Counted once, in the month of its attempt. A test's unit of the quota becomes the count.
      freed := delivery.reserved_month = in_month;
      INSERT INTO monthly_counts AS c (partner_id, environment, month, event_type, delivered)
      VALUES (n.partner_id, n.environment, in_month, n.event_type, 1)
      ON CONFLICT (partner_id, environment, month, event_type)
      DO UPDATE SET delivered = c.delivered + 1, reserved = greatest(c.reserved - coalesce(freed, false)::integer, 0);
      IF n.failed_month IS NOT NULL THEN
        UPDATE monthly_counts c SET failed = c.failed - 1
        WHERE c.partner_id = n.partner_id AND c.environment = n.environment AND c.month = n.failed_month
          AND c.event_type = n.event_type;
      END IF;
    END IF;
  ELSIF wait_ms IS NOT NULL THEN
    -- Event: retry. An order to retry now that was given during the attempt is for the next one.
    UPDATE deliveries d
    SET taken_at = NULL, next_attempt_at = moment + make_interval(secs => wait_ms / 1000), waits_for = because, ordered_at = NULL,
      step = least(d.step, most_steps) + (kind = 'failed')::integer,
      hurried_at = CASE WHEN d.hurried_at > made.started_at THEN d.hurried_at END
    WHERE d.notification_id = id;
    IF delivery.step = 0 AND delivery.application_id IS NOT NULL AND NOT delivery.delivered THEN
      -- Later events wait a minute for this one. They are not due until then, so that claims do not
      -- read them. Locked rows are skipped: the claim checks the order anyway. Event: put_off.
      UPDATE deliveries d SET due_at = delivery.first_attempt_at + order_wait
      FROM (
        SELECT l.notification_id FROM deliveries l
        WHERE l.application_id = delivery.application_id AND l.sequence > delivery.sequence AND l.state = 'queued'
          AND l.taken_at IS NULL AND l.priority >= delivery.priority AND l.due_at < delivery.first_attempt_at + order_wait
        FOR UPDATE SKIP LOCKED) l
      WHERE d.notification_id = l.notification_id;
    END IF;
  ELSIF current AND (ends_as = 'cancelled' OR (ends_as = 'expired') = (delivery.state = 'held')) THEN
    ended := ends_as;
    UPDATE delivery_attempts a SET finished_at = moment, outcome = 'unknown'
    WHERE a.notification_id = id AND a.finished_at IS NULL AND delivery.attempts > 0;
    -- Counted once, in the month of its end; a later delivery takes that back.
    -- A row without a notification is nobody's.
    IF ended IN ('failed', 'expired') AND n.notification_id IS NOT NULL AND n.delivered_at IS NULL AND n.failed_month IS NULL THEN
      in_month := service_month();
      INSERT INTO monthly_counts AS c (partner_id, environment, month, event_type, failed)
      VALUES (n.partner_id, n.environment, in_month, n.event_type, 1)
      ON CONFLICT (partner_id, environment, month, event_type)
      DO UPDATE SET failed = c.failed + 1;
    END IF;
  END IF;

  IF ended IS NOT NULL THEN
    IF delivery.reserved_month IS NOT NULL AND NOT coalesce(freed, false) THEN
      -- Not below zero: the check would otherwise refuse a forged row, which reserved no unit, every
      -- time.
      UPDATE monthly_counts c SET reserved = greatest(c.reserved - 1, 0)
      WHERE c.partner_id = delivery.partner_id AND c.environment = delivery.environment AND c.month = delivery.reserved_month
        AND c.event_type = n.event_type;
    END IF;
    IF ended = 'held' THEN
      -- Event: hold.
      UPDATE deliveries d
      SET state = 'held', held_at = moment, hold_reason = why, taken_at = NULL, next_attempt_at = NULL, paused_at = NULL,
        paused_by = NULL, hurried_at = NULL, ordered_at = NULL, reserved_month = NULL
      WHERE d.notification_id = id;
    ELSE
      UPDATE notifications s
      SET end_state = ended, end_reason = CASE WHEN ended <> 'delivered' THEN why END, ended_at = moment,
        delivered_at = CASE WHEN ended = 'delivered' THEN coalesce(s.delivered_at, moment) ELSE s.delivered_at END,
        failed_month = CASE WHEN ended = 'delivered' THEN NULL ELSE coalesce(s.failed_month, in_month) END,
        generation = coalesce(delivery.generation, s.generation), attempts = coalesce(delivery.attempts, s.attempts)
      WHERE s.notification_id = id;
      DELETE FROM deliveries d WHERE d.notification_id = id;
    END IF;
    IF (delivery.step > 0 OR delivery.attempts > 1) AND delivery.application_id IS NOT NULL THEN
      -- Later events may have been put off when the first attempt failed. They are due now. Event:
      -- due_now.
      UPDATE deliveries d SET due_at = moment
      FROM (
        SELECT l.notification_id FROM deliveries l
        WHERE l.application_id = delivery.application_id AND l.sequence > delivery.sequence AND l.state = 'queued'
          AND l.taken_at IS NULL AND l.due_at > moment
        FOR UPDATE SKIP LOCKED) l
      WHERE d.notification_id = l.notification_id;
      later := FOUND;
    END IF;
  END IF;

  IF fresh AND kind = 'failed' THEN
    -- A 410 disables the endpoint at once. The caller judges other failures (noteHealth). A late failure, of an attempt that was
    -- closed as unknown, does not count: it may be recorded twice, and the next attempt counts.
    UPDATE webhook_endpoints e
    SET failing_since = coalesce(e.failing_since, moment), failures_since_success = e.failures_since_success + 1,
      state = CASE WHEN gone THEN 'disabled' ELSE e.state END,
      disabled_reason = CASE WHEN gone THEN 'gone' ELSE e.disabled_reason END,
      updated_at = CASE WHEN gone THEN moment ELSE e.updated_at END
    WHERE e.endpoint_id = made.endpoint_id AND e.state = 'active'
    RETURNING e.* INTO health;
  ELSIF kind = 'delivered' AND (fresh OR made.outcome = 'unknown') THEN
    -- A success is written at most once a minute unless the endpoint was failing, because every
    -- delivery would otherwise wait for this row.
    SELECT e.* INTO health FROM webhook_endpoints e
    WHERE e.endpoint_id = made.endpoint_id AND e.state = 'active'
      AND (e.failing_since IS NOT NULL OR coalesce(e.last_success_at < moment - interval '1 minute', true));
    IF FOUND THEN
      SELECT e.* INTO health FROM webhook_endpoints e WHERE e.endpoint_id = made.endpoint_id AND e.state = 'active' FOR NO KEY UPDATE;
      UPDATE webhook_endpoints e
      SET last_success_at = moment, failing_since = NULL, failures_since_success = 0, warned_hours = 0
      WHERE e.endpoint_id = health.endpoint_id;
    END IF;
  END IF;

  -- The operator event is stored in the transaction of the change.
  IF gone AND health.endpoint_id IS NOT NULL THEN
    news := json_build_object('kind', 'endpoint_disabled', 'details', json_build_object('reason', 'gone',
      'hours', floor(extract(epoch FROM moment - health.failing_since) / 3600), 'failures', health.failures_since_success,
      'last_success_at', to_char(health.last_success_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')));
  ELSIF kind = 'delivered' AND health.warned_hours > 0 THEN
    news := json_build_object('kind', 'endpoint_recovered', 'details', json_build_object(
      'hours', floor(coalesce(extract(epoch FROM moment - health.failing_since) / 3600, 0)),
      'failures', health.failures_since_success));
  END IF;
  IF news IS NOT NULL THEN
    INSERT INTO operator_events (kind, partner_id, environment, endpoint_id, details)
    VALUES (news ->> 'kind', health.partner_id, health.environment, health.endpoint_id, (news -> 'details')::jsonb);
  END IF;

  RETURN json_build_object(
    'follows', CASE
      WHEN attempt IS NULL THEN NULL
      WHEN ended = 'delivered' THEN json_build_object('kind', 'over', 'status', 'delivered', 'reason', NULL)
      ELSE coalesce(
        (SELECT what_follows_2(d, id, of_generation, moment) FROM (SELECT 1) one LEFT JOIN deliveries d ON d.notification_id = id),
        json_build_object('kind', 'due')) END,
    'ended', ended, 'eventType', n.event_type, 'test', coalesce(delivery.test, false), 'later', later,
    'news', news, 'health', CASE WHEN health.endpoint_id IS NOT NULL THEN json_build_object(
      'endpointId', health.endpoint_id, 'partnerId', health.partner_id, 'environment', health.environment,
      'failures', health.failures_since_success, 'warnedHours', health.warned_hours,
      'hours', coalesce(extract(epoch FROM moment - health.failing_since) / 3600, 0),
      'lastSuccessAt', to_char(health.last_success_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')) END);
END $$;
