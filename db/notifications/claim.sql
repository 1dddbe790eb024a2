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

-- Returns whether there is an active endpoint, how many of its slots are free (fewer than none where the number of
-- slots was lowered), and whether tests have to wait. Both are counted in one index, which has only such rows.
CREATE OR REPLACE FUNCTION delivery_queue_1(of_partner text, of_environment text, slots integer, moment timestamptz)
RETURNS TABLE (active boolean, free integer, tests_wait boolean) LANGUAGE sql STABLE AS $$
  SELECT
    0 < (
      SELECT count(*) FROM webhook_endpoints e
      WHERE e.partner_id = of_partner AND e.environment = of_environment AND e.state = 'active'),
    -- A lease that has ended takes no slot, because its dispatcher died.
    slots - count(*) FILTER (WHERE d.taken_at IS NOT NULL AND (d.state = 'started' OR d.due_at > moment))::integer,
    -- While four tests of an endpoint are under way or wait for a retry, no other starts. Delivered
    -- tests end in milliseconds. Failing ones stay for the 35 s of their ladder, so that a partner who
    -- keeps sending tests to a failing endpoint causes only a few attempts a second.
    4 <= count(*) FILTER (WHERE d.test AND d.state = 'started')
  FROM deliveries d
  WHERE d.partner_id = of_partner AND d.environment = of_environment
    AND (d.taken_at IS NOT NULL OR d.test AND d.state = 'started')
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

-- The queues with due rows, found through the newest "most" due rows, so that a backlog of millions costs no more.
-- "rows": how many of these are of the queue. When all together are "most", there may be other queues (queued_queues).
CREATE OR REPLACE FUNCTION due_queues_1(most integer)
RETURNS TABLE (partner_id text, environment text, due_since timestamptz, rows integer) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  moment constant timestamptz := service_now();
BEGIN
  RETURN QUERY
  WITH newest AS MATERIALIZED (
    SELECT d.partner_id, d.environment, d.due_at FROM deliveries d
    WHERE d.state = 'queued' AND d.due_at <= moment
    ORDER BY d.due_at DESC LIMIT most)
  SELECT n.partner_id, n.environment, min(n.due_at), count(*)::integer FROM newest n GROUP BY 1, 2;
END $$;

-- The next "most" queues behind the given one, in their order, with the time since when their first row is due; null:
-- nothing of it is due yet. The index leads from one to the next, so that a queue costs one row.
CREATE OR REPLACE FUNCTION queued_queues_1(most integer, after_partner text, after_environment text)
RETURNS TABLE (partner_id text, environment text, due_since timestamptz) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  moment constant timestamptz := service_now();
BEGIN
  RETURN QUERY
  WITH RECURSIVE walk AS (
    SELECT after_partner AS partner_id, after_environment AS environment, NULL::smallint AS priority, NULL::timestamptz AS due_at
    UNION ALL
    SELECT next.*
    FROM walk w CROSS JOIN LATERAL (
      SELECT d.partner_id, d.environment, d.priority, d.due_at FROM deliveries d
      WHERE d.state = 'queued' AND (d.partner_id, d.environment) > (w.partner_id, w.environment)
      ORDER BY d.partner_id, d.environment, d.priority, d.due_at LIMIT 1) next)
  SELECT w.partner_id, w.environment, CASE
    WHEN w.due_at <= moment THEN w.due_at
    WHEN w.priority = 0 THEN (
      SELECT d.due_at FROM deliveries d
      WHERE d.state = 'queued'
        AND (d.partner_id, d.environment, d.priority, d.due_at) >= (w.partner_id, w.environment, 1, '-infinity')
        AND (d.partner_id, d.environment, d.priority, d.due_at) <= (w.partner_id, w.environment, 1, moment)
      ORDER BY d.partner_id, d.environment, d.priority, d.due_at LIMIT 1) END
  FROM walk w WHERE w.priority IS NOT NULL LIMIT most;
END $$;

-- The queues with held rows. A queue costs one row.
CREATE OR REPLACE FUNCTION held_queues_1() RETURNS TABLE (partner_id text, environment text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE walk AS (
    SELECT '' AS partner_id, '' AS environment
    UNION ALL
    SELECT next.*
    FROM walk w CROSS JOIN LATERAL (
      SELECT d.partner_id, d.environment FROM deliveries d
      WHERE d.state = 'held' AND (d.partner_id, d.environment) > (w.partner_id, w.environment)
      ORDER BY d.partner_id, d.environment LIMIT 1) next)
  SELECT w.* FROM walk w WHERE w.partner_id <> '';
END $$;

-- The claim of the dispatcher: takes up to "most" notifications from the given queues, those that have been due for
-- "grace". A queue has at most as many first attempts under way as it is given "slots", over all workers. Priority 0 goes
-- before 1.
-- "remaining" has the queues with due rows that were left, and why: "more" of them can be taken now; they wait for a slot
-- or an earlier event ("waits"); another claim has the queue ("contended").
--
-- The claims of one queue take turns by an advisory lock, because each has to count what the claims
-- before it have taken, which row locks do not show. Each statement of this function has its own
-- snapshot, and the counting one is newer than the locks. A claim never waits.
CREATE OR REPLACE FUNCTION claim_notifications_3(
  most integer, lease interval, order_wait interval, grace interval, partners text[], environments text[], slots integer[],
  OUT claimed json, OUT remaining json
) LANGUAGE plpgsql
-- These settings make plans follow the indexes, because the statistics of a table that fills and
-- empties mislead. Without them the first claim of a backlog of 100,000 reads all of it (0.2 to 0.4 s). Rows of
-- deliveries are compared with both ends and ordered by all columns of deliveries_queue, so that, planned when the table
-- is empty and all indexes cost the same, no other index will do.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  moment constant timestamptz := service_now();
  due_by constant timestamptz := moment - grace;
  of_partners text[];
  of_environments text[];
  of_slots integer[];
  of_free integer[];
  of_tests_wait boolean[];
  contended json;
  share integer;
  taken text[] := '{}';
  taken_of text[] := '{}';
  more text[];
  more_of text[];
BEGIN
  -- A claim that a crash of Postgres undoes is made again, and no workflow is started twice, so the
  -- commit need not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  claimed := '[]';

  -- The end of a pause sends a hint, so nothing waits for a claim in a paused queue. Two queues with the same hash
  -- exclude each other, which is rare and harmless.
  SELECT coalesce(array_agg(q.partner_id) FILTER (WHERE q.locked), '{}'), coalesce(array_agg(q.environment) FILTER (WHERE q.locked), '{}'),
    coalesce(array_agg(q.slots) FILTER (WHERE q.locked), '{}'),
    coalesce(json_agg(json_build_object('queue', q.partner_id || '/' || q.environment, 'why', 'contended')) FILTER (WHERE NOT q.locked), '[]')
  INTO of_partners, of_environments, of_slots, contended
  FROM (
    SELECT l.partner_id, l.environment, l.slots, pg_try_advisory_xact_lock(
      hashtext('claim_notifications'), hashtext(l.partner_id || '/' || l.environment)) AS locked
    FROM unnest(partners, environments, slots) AS l (partner_id, environment, slots)
    WHERE NOT deliveries_paused_1(l.partner_id, l.environment) OFFSET 0) q;
  remaining := contended;
  IF cardinality(of_partners) = 0 THEN
    RETURN;
  END IF;

  -- The snapshot of this statement is newer than the locks.
  SELECT array_agg(l.partner_id), array_agg(l.environment), array_agg(q.free), array_agg(q.tests_wait)
  INTO of_partners, of_environments, of_free, of_tests_wait
  FROM unnest(of_partners, of_environments, of_slots) AS l (partner_id, environment, slots)
  CROSS JOIN LATERAL delivery_queue_1(l.partner_id, l.environment, l.slots, moment) q;

  share := most / cardinality(of_partners);
  FOR urgency IN 0..1 LOOP
    SELECT array_agg(ready.notification_id), array_agg(ready.queue) INTO more, more_of
    FROM (
      SELECT d.notification_id, q.partner_id || '/' || q.environment AS queue
      FROM unnest(of_partners, of_environments, of_free, of_tests_wait) AS q (partner_id, environment, free, tests_wait)
      CROSS JOIN LATERAL (
        SELECT d.notification_id FROM deliveries d
        WHERE d.state = 'queued'
          AND (d.partner_id, d.environment, d.priority, d.due_at) >= (q.partner_id, q.environment, urgency, '-infinity')
          AND (d.partner_id, d.environment, d.priority, d.due_at) <= (q.partner_id, q.environment, urgency, due_by)
          AND NOT (q.tests_wait AND d.test)
          AND NOT EXISTS (SELECT FROM earlier_events_1(
            d.application_id, d.sequence, d.priority, order_wait, moment))
        ORDER BY d.partner_id, d.environment, d.priority, d.due_at
        LIMIT greatest(least(
          q.free - cardinality(array_positions(taken_of, q.partner_id || '/' || q.environment)), share), 0)
        FOR UPDATE SKIP LOCKED) d
      LIMIT most - cardinality(taken)) ready;
    CONTINUE WHEN more IS NULL;
    -- Event: take.
    UPDATE deliveries d SET taken_at = moment, due_at = moment + lease WHERE d.notification_id = ANY (more);
    taken := taken || more;
    taken_of := taken_of || more_of;
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

  SELECT coalesce(json_agg(left_over.one), '[]') INTO remaining
  FROM (
    SELECT json_array_elements(contended) AS one
    UNION ALL
    SELECT json_build_object('queue', q.partner_id || '/' || q.environment, 'why', CASE
      WHEN q.free > n.own AND (cardinality(taken) = most OR n.own >= share) THEN 'more' ELSE 'waits' END)
    FROM unnest(of_partners, of_environments, of_free, of_tests_wait) AS q (partner_id, environment, free, tests_wait)
    CROSS JOIN LATERAL (
      SELECT cardinality(array_positions(taken_of, q.partner_id || '/' || q.environment)) AS own) n
    WHERE EXISTS (
      SELECT FROM (VALUES (0), (1)) AS u (urgency)
      -- Tests that wait are left to the next sweep, as they do not justify a claim after every attempt.
      CROSS JOIN LATERAL (
        SELECT FROM deliveries d
        WHERE d.state = 'queued'
          AND (d.partner_id, d.environment, d.priority, d.due_at) >= (q.partner_id, q.environment, u.urgency, '-infinity')
          AND (d.partner_id, d.environment, d.priority, d.due_at) <= (q.partner_id, q.environment, u.urgency, due_by)
          AND NOT (q.tests_wait AND d.test)
        ORDER BY d.partner_id, d.environment, d.priority, d.due_at LIMIT 1) due)) left_over;
END $$;
