ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_reason" CHECK (octet_length("deliveries"."hold_reason") <= 200) NOT VALID;
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_moments" CHECK (isfinite("deliveries"."due_at") and isfinite("deliveries"."started_at") and isfinite("deliveries"."first_attempt_at") and isfinite("deliveries"."held_at")
        and isfinite("deliveries"."checked_at")) NOT VALID;
ALTER TABLE "recoveries" ADD CONSTRAINT "recoveries_of_partner" CHECK ("recoveries"."key_id" is null or "recoveries"."environment" is not null) NOT VALID;
ALTER POLICY "notifications_insert" ON "notifications" TO public WITH CHECK (notification_id ~ '^ntf_[0-7][0-9A-HJKMNP-TV-Z]{25}$' and event_id ~ '^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$'
  and environment in ('sandbox', 'live') and octet_length(body) <= 20000 and isfinite(created_at)
  and coalesce(octet_length(request_id), 0) <= 200 and coalesce(octet_length(trace_parent), 0) <= 200
  and case when application_id is null then event_type = 'credit_application.test' and partner_id ~ '^P[0-9]{6}$' and merchant_reference is null
    else event_type in ('credit_application.created', 'credit_application.submitted', 'credit_application.referred', 'credit_application.accepted', 'credit_application.action_required', 'credit_application.deposit_paid', 'credit_application.signed', 'credit_application.ready', 'credit_application.activated', 'credit_application.paid_out', 'credit_application.completed', 'credit_application.declined', 'credit_application.cancelled', 'credit_application.expired', 'credit_application.partially_refunded', 'credit_application.refunded')
      and exists (select from credit_applications a where a.application_id = notifications.application_id
        and a.partner_id = notifications.partner_id and a.environment = notifications.environment
        and a.sequence = notifications.sequence and 'credit_application.' || a.state = notifications.event_type
        and a.merchant_reference is not distinct from notifications.merchant_reference) end);
ALTER POLICY "deliveries_insert" ON "deliveries" TO public WITH CHECK (notification_id ~ '^ntf_[0-7][0-9A-HJKMNP-TV-Z]{25}$' and partner_id ~ '^P[0-9]{6}$'
  and test = (application_id is null) and coalesce(octet_length(application_id), 0) <= 64
  and case when generation = 1 and attempts = 0 and not delivered then true
    else exists (select from notifications n where n.notification_id = deliveries.notification_id
      and n.generation + 1 = deliveries.generation and n.attempts = deliveries.attempts
      and (n.delivered_at is not null) = deliveries.delivered) end);-- A generation moves by one: of the highest there is no next, and one row without a next would end the release of a whole queue.
CREATE FUNCTION refuse_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the generation of % moves by one', NEW.notification_id USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER deliveries_generation BEFORE UPDATE OF generation ON "deliveries"
FOR EACH ROW WHEN (NEW.generation NOT IN (OLD.generation, OLD.generation + 1)) EXECUTE FUNCTION refuse_generation();
