ALTER TABLE "notifications" ADD COLUMN "trace_parent" text;--> statement-breakpoint
-- As before (0006), and it says of each what metrics, log and traces want to know: whose request it was, and its age.
CREATE OR REPLACE FUNCTION claim_notifications(
  most integer, places integer, lease interval, patience interval, after_partner text, after_environment text,
  OUT claimed jsonb, OUT waiting boolean, OUT last_partner text, OUT last_environment text
) LANGUAGE plpgsql
-- Whatever the statistics say of a queue that fills and empties: leap through the indexes.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  moment timestamptz;
  lane record;
  wrapped boolean := false;
  partners text[] := '{}';
  environments text[] := '{}';
  rooms integer[] := '{}';
  under_way integer;
  share integer;
  wanted integer;
  active boolean;
  got jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(7205114234);
  moment := service_now();
  claimed := '[]';
  waiting := false;
  last_partner := after_partner;
  last_environment := after_environment;

  -- Lanes with something due and room for it. It leaps from lane to lane, so a backlog costs no more than one row.
  WHILE cardinality(rooms) < most LOOP
    SELECT n.partner_id, n.environment INTO lane FROM notifications n
    WHERE n.state = 'pending' AND (n.partner_id, n.environment) > (last_partner, last_environment)
    ORDER BY n.partner_id, n.environment LIMIT 1;
    IF NOT FOUND THEN
      EXIT WHEN wrapped;
      wrapped := true;
      last_partner := '';
      last_environment := '';
      CONTINUE;
    END IF;
    EXIT WHEN wrapped AND (lane.partner_id, lane.environment) > (after_partner, after_environment);
    last_partner := lane.partner_id;
    last_environment := lane.environment;
    CONTINUE WHEN NOT EXISTS (
      SELECT FROM notifications n WHERE n.state = 'pending' AND n.partner_id = lane.partner_id
        AND n.environment = lane.environment AND n.priority IN (0, 1) AND n.due_at <= moment);
    -- A lease that has ended holds no place: its dispatcher died.
    SELECT count(*) INTO under_way FROM notifications n
    WHERE n.partner_id = lane.partner_id AND n.environment = lane.environment AND n.taken_at IS NOT NULL
      AND n.state IN ('pending', 'started') AND (n.state = 'started' OR n.due_at > moment);
    IF under_way >= places THEN
      waiting := true;
      CONTINUE;
    END IF;
    partners := partners || lane.partner_id;
    environments := environments || lane.environment;
    rooms := rooms || places - under_way;
  END LOOP;

  share := most / greatest(cardinality(rooms), 1);
  FOR urgency IN 0..1 LOOP
    FOR nth IN 1..cardinality(rooms) LOOP
      wanted := least(rooms[nth], share, most - jsonb_array_length(claimed));
      CONTINUE WHEN wanted <= 0;
      active := EXISTS (
        SELECT FROM webhook_endpoints e
        WHERE e.partner_id = partners[nth] AND e.environment = environments[nth] AND e.state = 'active');
      WITH ready AS (
        SELECT n.notification_id FROM notifications n
        WHERE n.state = 'pending' AND n.partner_id = partners[nth] AND n.environment = environments[nth]
          AND n.priority = urgency AND n.due_at <= moment
          -- Nothing earlier of the application is open, save what was tried long enough ago. What is sent again in bulk, or
          -- was delivered once, keeps nothing waiting; nor does what is held for the want of an endpoint, as this would be too.
          AND (n.application_id IS NULL OR NOT EXISTS (
            SELECT FROM notifications b
            WHERE b.application_id = n.application_id AND b.sequence < n.sequence
              AND (b.state IN ('pending', 'started') OR b.state = 'held' AND active)
              AND b.priority <= n.priority AND b.delivered_at IS NULL
              AND (b.first_attempt_at IS NULL OR b.first_attempt_at > moment - patience)))
        ORDER BY n.due_at LIMIT wanted FOR UPDATE OF n SKIP LOCKED),
      taken AS (
        UPDATE notifications n SET taken_at = moment, due_at = moment + lease
        FROM ready WHERE n.notification_id = ready.notification_id
        RETURNING n.notification_id, n.generation, n.event_type, n.partner_id, n.environment, n.application_id,
          n.request_id, n.trace_parent, n.created_at)
      SELECT jsonb_agg(jsonb_build_object(
        'notificationId', t.notification_id, 'generation', t.generation, 'eventType', t.event_type,
        'partnerId', t.partner_id, 'environment', t.environment, 'applicationId', t.application_id,
        'requestId', t.request_id, 'traceParent', t.trace_parent,
        'ageMs', extract(epoch FROM moment - t.created_at) * 1000))
      INTO got FROM taken t;
      IF got IS NOT NULL THEN
        claimed := claimed || got;
        rooms[nth] := rooms[nth] - jsonb_array_length(got);
      END IF;
    END LOOP;
  END LOOP;

  waiting := waiting OR cardinality(rooms) = most;
  FOR nth IN 1..cardinality(rooms) LOOP
    EXIT WHEN waiting;
    waiting := EXISTS (
      SELECT FROM notifications n WHERE n.state = 'pending' AND n.partner_id = partners[nth]
        AND n.environment = environments[nth] AND n.priority IN (0, 1) AND n.due_at <= moment);
  END LOOP;
END $$;
