CREATE TABLE "operator_events" (
	"event_id" bigserial PRIMARY KEY NOT NULL,
	"happened_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"kind" text NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"endpoint_id" text,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL
);
--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "held_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD COLUMN "last_success_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD COLUMN "failing_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD COLUMN "failures_since_success" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD COLUMN "warned_hours" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "operator_events_partner" ON "operator_events" USING btree ("partner_id","environment","kind","event_id");--> statement-breakpoint
CREATE INDEX "notifications_held" ON "notifications" USING btree ("partner_id","environment","notification_id") WHERE "notifications"."state" = 'held';--> statement-breakpoint
CREATE INDEX "notifications_held_since" ON "notifications" USING btree ("held_at") WHERE "notifications"."state" = 'held';
--> statement-breakpoint
CREATE TRIGGER operator_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "operator_events"
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
--> statement-breakpoint
-- What a worker's keeper hears: an endpoint is there again, or is no longer, whoever changed it and how.
CREATE FUNCTION notify_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('endpoints', NEW.endpoint_id);
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER webhook_endpoints_added AFTER INSERT ON "webhook_endpoints"
FOR EACH ROW EXECUTE FUNCTION notify_endpoint();
--> statement-breakpoint
CREATE TRIGGER webhook_endpoints_changed AFTER UPDATE ON "webhook_endpoints"
FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION notify_endpoint();
