ALTER TABLE "deliveries" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "monthly_counts" ADD CONSTRAINT "monthly_counts_reserved" CHECK ("monthly_counts"."reserved" <= 1000) NOT VALID;
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_environment" CHECK ("deliveries"."environment" in ('sandbox', 'live')) NOT VALID;
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_counts" CHECK ("deliveries"."generation" between 1 and 1000000000 and "deliveries"."attempts" between 0 and 1000000000 and "deliveries"."step" >= 0) NOT VALID;
ALTER TABLE "recoveries" ADD CONSTRAINT "recoveries_environment" CHECK ("recoveries"."environment" in ('sandbox', 'live')) NOT VALID;
ALTER TABLE "recoveries" ADD CONSTRAINT "recoveries_counts" CHECK ("recoveries"."per_second" between 1 and 1000 and "recoveries"."found" >= 0 and "recoveries"."sent" between 0 and 1000000000
        and "recoveries"."skipped" between 0 and 1000000000) NOT VALID;
CREATE POLICY "deliveries_all" ON "deliveries" AS PERMISSIVE FOR ALL TO public USING (true);
CREATE POLICY "deliveries_insert" ON "deliveries" AS RESTRICTIVE FOR INSERT TO public WITH CHECK (test = (application_id is null)
  and case when generation = 1 and attempts = 0 and not delivered then true
    else exists (select from notifications n where n.notification_id = deliveries.notification_id
      and n.generation + 1 = deliveries.generation and n.attempts = deliveries.attempts
      and (n.delivered_at is not null) = deliveries.delivered) end);
ALTER POLICY "notifications_insert" ON "notifications" TO public WITH CHECK (notification_id ~ '^ntf_[0-7][0-9A-HJKMNP-TV-Z]{25}$' and event_id ~ '^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$'
  and environment in ('sandbox', 'live') and octet_length(body) <= 20000 and isfinite(created_at)
  and case when application_id is null then event_type = 'credit_application.test' and partner_id ~ '^P[0-9]{6}$'
    else event_type in ('credit_application.created', 'credit_application.submitted', 'credit_application.referred', 'credit_application.accepted', 'credit_application.action_required', 'credit_application.deposit_paid', 'credit_application.signed', 'credit_application.ready', 'credit_application.activated', 'credit_application.paid_out', 'credit_application.completed', 'credit_application.declined', 'credit_application.cancelled', 'credit_application.expired', 'credit_application.partially_refunded', 'credit_application.refunded')
      and exists (select from credit_applications a where a.application_id = notifications.application_id
        and a.partner_id = notifications.partner_id and a.environment = notifications.environment
        and a.sequence = notifications.sequence and 'credit_application.' || a.state = notifications.event_type
        and a.merchant_reference is not distinct from notifications.merchant_reference) end);