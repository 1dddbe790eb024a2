-- The claim, and what operators are shown (operator.ts), ask these functions whether a notification may
-- go now. delivery_queue is about the queue of a partner and environment, which has one endpoint;
-- earlier_events about the order of an application's events.

-- Whether deliveries to a partner are paused (`ops partners pause-deliveries`), so that no attempt
-- begins.
CREATE OR REPLACE FUNCTION deliveries_paused_1(of_partner text, of_environment text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT 0 < (
    SELECT count(*) FROM delivery_pauses p
    WHERE p.partner_id = of_partner AND p.environment = of_environment AND p.resumed_at IS NULL)
$$;

-- Returns whether there is an active endpoint, how many of its slots are free, and whether tests have
-- to wait.
CREATE OR REPLACE FUNCTION delivery_queue_1(of_partner text, of_environment text, slots integer, moment timestamptz)
RETURNS TABLE (active boolean, free integer, tests_wait boolean) LANGUAGE sql STABLE AS $$
  SELECT
    0 < (
      SELECT count(*) FROM webhook_endpoints e
      WHERE e.partner_id = of_partner AND e.environment = of_environment AND e.state = 'active'),
    -- A lease that has ended takes no slot, because its dispatcher died.
    slots - (SELECT count(*)::integer FROM (
      SELECT FROM deliveries d
      WHERE d.partner_id = of_partner AND d.environment = of_environment AND d.taken_at IS NOT NULL
        AND (d.state = 'started' OR d.due_at > moment)
      LIMIT slots) taken),
    -- While four tests of an endpoint are under way or wait for a retry, no other starts. Delivered
    -- tests end in milliseconds. Failing ones stay for the 35 s of their ladder, so that a partner who
    -- keeps sending tests to a failing endpoint causes only a few attempts a second.
    4 = (SELECT count(*) FROM (
      SELECT FROM deliveries d
      WHERE d.partner_id = of_partner AND d.environment = of_environment AND d.test AND d.state = 'started'
      LIMIT 4) tests)
$$;

-- The earlier events under way that an event of the same application may not overtake. Left out are
-- events whose first attempt was long enough ago, bulk recoveries, and events that were delivered before.
CREATE OR REPLACE FUNCTION earlier_events_1(
  of_application text, before_sequence integer, at_priority smallint, order_wait interval, moment timestamptz
) RETURNS TABLE (notification_id text, sequence integer) LANGUAGE sql STABLE AS $$
  SELECT d.notification_id, d.sequence FROM deliveries d
  WHERE d.application_id = of_application AND d.sequence < before_sequence
    AND d.priority <= at_priority AND NOT d.delivered
    AND (d.first_attempt_at IS NULL OR d.first_attempt_at > moment - order_wait)
$$;

-- The claim of the dispatcher: takes up to "most" due notifications from the queues in turn, beginning
-- after the given queue. A queue has at most "slots" first attempts under way, over all workers.
-- Priority 0 goes before 1.
--
-- The claims of one queue take turns by an advisory lock, because each has to count what the claims
-- before it have taken, which row locks do not show. Each statement of this function has its own
-- snapshot, and the counting one is newer than the locks. A claim never waits: it skips a queue that
-- another claim has locked, and reports that as "contended".
CREATE OR REPLACE FUNCTION claim_notifications_1(
  most integer, slots integer, lease interval, order_wait interval, after_partner text, after_environment text,
  OUT claimed json, OUT waiting boolean, OUT contended boolean, OUT last_partner text, OUT last_environment text
) LANGUAGE plpgsql
-- These settings make plans follow the indexes, because the statistics of a table that fills and
-- empties mislead. Without them the first claim of a backlog of 100,000 reads all of it (0.2 to 0.4 s).
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  moment constant timestamptz := service_now();
  queue record;
  partners text[] := '{}';
  environments text[] := '{}';
  bulk boolean := false;
  taken text[] := '{}';
  more text[];
BEGIN
  -- A claim that a crash of Postgres undoes is made again, and no workflow is started twice, so the
  -- commit need not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  claimed := '[]';
  waiting := false;
  contended := false;
  last_partner := after_partner;
  last_environment := after_environment;

  -- The queues with due rows, in turn. The index leads from one to the next, so that a backlog costs
  -- one row.
  FOR queue IN
    WITH RECURSIVE walk AS (
      SELECT after_partner AS partner_id, after_environment AS environment, NULL::smallint AS priority, NULL::timestamptz AS due_at,
        false AS wrapped
      UNION ALL
      SELECT next.*
      FROM walk w CROSS JOIN LATERAL (
        (SELECT d.partner_id, d.environment, d.priority, d.due_at, w.wrapped FROM deliveries d
          WHERE d.state = 'queued' AND (d.partner_id, d.environment) > (w.partner_id, w.environment)
          ORDER BY d.partner_id, d.environment, d.priority, d.due_at LIMIT 1)
        UNION ALL
        (SELECT d.partner_id, d.environment, d.priority, d.due_at, true FROM deliveries d
          WHERE NOT w.wrapped AND d.state = 'queued'
          ORDER BY d.partner_id, d.environment, d.priority, d.due_at LIMIT 1)
        LIMIT 1) next
      WHERE NOT next.wrapped OR (next.partner_id, next.environment) <= (after_partner, after_environment))
    SELECT w.partner_id, w.environment, bulk.due AS bulk
    FROM walk w CROSS JOIN LATERAL (
      -- This is no EXISTS, which the planner may turn into a hash of all due rows.
      SELECT CASE w.priority WHEN 0 THEN 0 < (SELECT count(*) FROM (
        SELECT FROM deliveries d
        WHERE d.state = 'queued' AND d.partner_id = w.partner_id AND d.environment = w.environment
          AND d.priority = 1 AND d.due_at <= moment
        LIMIT 1) one)
      ELSE w.due_at <= moment END AS due) bulk
    WHERE w.due_at <= moment OR bulk.due
  LOOP
    last_partner := queue.partner_id;
    last_environment := queue.environment;
    -- The end of the pause sends a hint, so nothing waits for a claim here.
    CONTINUE WHEN deliveries_paused_1(queue.partner_id, queue.environment);
    IF (SELECT q.free <= 0 FROM delivery_queue_1(queue.partner_id, queue.environment, slots, moment) q) THEN
      waiting := true;
    -- Two queues with the same hash exclude each other, which is rare and harmless.
    ELSIF NOT pg_try_advisory_xact_lock(
      hashtext('claim_notifications'), hashtext(queue.partner_id || '/' || queue.environment))
    THEN
      contended := true;
    ELSE
      partners := partners || queue.partner_id;
      environments := environments || queue.environment;
      bulk := bulk OR queue.bulk;
      EXIT WHEN cardinality(partners) = most;
    END IF;
  END LOOP;
  waiting := waiting OR contended;
  IF cardinality(partners) = 0 THEN
    RETURN;
  END IF;

  -- This counts the slots again, because the snapshot of the walk may be older than the last claim.
  FOR urgency IN 0..1 LOOP
    EXIT WHEN urgency = 1 AND NOT bulk;
    SELECT array_agg(ready.notification_id) INTO more
    FROM (
      SELECT d.notification_id
      FROM unnest(partners, environments) AS l (partner_id, environment)
      CROSS JOIN LATERAL delivery_queue_1(l.partner_id, l.environment, slots, moment) q
      CROSS JOIN LATERAL (
        SELECT d.notification_id FROM deliveries d
        WHERE d.state = 'queued' AND d.partner_id = l.partner_id AND d.environment = l.environment
          AND d.priority = urgency AND d.due_at <= moment
          AND NOT (q.tests_wait AND d.test)
          AND NOT EXISTS (SELECT FROM earlier_events_1(
            d.application_id, d.sequence, d.priority, order_wait, moment))
        ORDER BY d.due_at
        LIMIT greatest(least(q.free, most / cardinality(partners)), 0)
        FOR UPDATE SKIP LOCKED) d
      LIMIT most - cardinality(taken)) ready;
    CONTINUE WHEN more IS NULL;
    -- Event: take.
    UPDATE deliveries d SET taken_at = moment, due_at = moment + lease WHERE d.notification_id = ANY (more);
    taken := taken || more;
  END LOOP;

  -- The bounds exclude partitions, which an array does not. A row without a notification is claimed as
  -- well: its workflow ends it as poison, and names it.
  IF cardinality(taken) > 0 THEN
    SELECT json_agg(json_build_object(
      'notificationId', d.notification_id, 'generation', d.generation, 'partnerId', d.partner_id, 'environment', d.environment,
      'applicationId', d.application_id, 'eventType', coalesce(n.event_type, 'unknown'), 'requestId', n.request_id,
      'traceParent', n.trace_parent, 'ageMs', coalesce(extract(epoch FROM moment - n.created_at) * 1000, 0))
      ORDER BY array_position(taken, d.notification_id))
    INTO claimed
    FROM deliveries d
    LEFT JOIN notifications n
      ON n.notification_id = d.notification_id AND n.notification_id = ANY (taken)
      AND n.notification_id BETWEEN (SELECT min(id) FROM unnest(taken) id) AND (SELECT max(id) FROM unnest(taken) id)
    WHERE d.notification_id = ANY (taken);
  END IF;

  waiting := waiting OR cardinality(partners) = most OR EXISTS (
    SELECT FROM unnest(partners, environments) AS l (partner_id, environment)
    CROSS JOIN LATERAL delivery_queue_1(l.partner_id, l.environment, slots, moment) q
    CROSS JOIN (VALUES (0), (1)) AS u (urgency)
    -- Tests that wait are left to the next sweep, as they do not justify a claim after every attempt.
    CROSS JOIN LATERAL (
      SELECT FROM deliveries d
      WHERE d.state = 'queued' AND d.partner_id = l.partner_id AND d.environment = l.environment
        AND d.priority = u.urgency AND d.due_at <= moment AND NOT (q.tests_wait AND d.test)
      LIMIT 1) due);
END $$;
