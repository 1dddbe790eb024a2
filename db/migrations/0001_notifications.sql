CREATE TABLE "delivery_attempts" (
	"notification_id" text COLLATE "C" NOT NULL,
	"attempt_number" integer NOT NULL,
	"generation" integer NOT NULL,
	"endpoint_id" text NOT NULL,
	"started_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"finished_at" timestamp with time zone,
	"outcome" text,
	"failure" text,
	"http_status" integer,
	"duration_ms" integer,
	"retry_after_ms" integer,
	"address" text,
	"answer" text,
	CONSTRAINT "delivery_attempts_notification_id_attempt_number_pk" PRIMARY KEY("notification_id","attempt_number")
) PARTITION BY RANGE ("notification_id");
--> statement-breakpoint
CREATE TABLE "monthly_counts" (
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"month" date NOT NULL,
	"event_type" text NOT NULL,
	"delivered" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"reserved" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "monthly_counts_partner_id_environment_month_event_type_pk" PRIMARY KEY("partner_id","environment","month","event_type"),
	CONSTRAINT "monthly_counts_not_negative" CHECK ("monthly_counts"."delivered" >= 0 and "monthly_counts"."failed" >= 0 and "monthly_counts"."reserved" >= 0)
);
--> statement-breakpoint
CREATE TABLE "notifications" (
	"notification_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"event_id" text NOT NULL,
	"event_type" text NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"application_id" text,
	"sequence" integer,
	"body" text NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"end_reason" text,
	"generation" integer DEFAULT 1 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"reserved_month" date,
	"failed_month" date,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"due_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"started_at" timestamp with time zone,
	"checked_at" timestamp with time zone,
	"delivered_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"request_id" text,
	CONSTRAINT "notifications_state" CHECK ("notifications"."state" in ('pending', 'started', 'held', 'delivered', 'failed', 'cancelled', 'expired'))
) PARTITION BY RANGE ("notification_id");
--> statement-breakpoint
CREATE TABLE "webhook_endpoints" (
	"endpoint_id" text PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"url" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"disabled_reason" text,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "webhook_endpoints_environment" CHECK ("webhook_endpoints"."environment" in ('sandbox', 'live')),
	CONSTRAINT "webhook_endpoints_state" CHECK ("webhook_endpoints"."state" in ('active', 'disabled', 'removed'))
);
--> statement-breakpoint
CREATE TABLE "webhook_secrets" (
	"secret_id" text PRIMARY KEY NOT NULL,
	"endpoint_id" text NOT NULL,
	"key_id" text NOT NULL,
	"ciphertext" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"expires_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_secrets" ADD CONSTRAINT "webhook_secrets_endpoint_id_webhook_endpoints_endpoint_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."webhook_endpoints"("endpoint_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "notifications_due" ON "notifications" USING btree ("due_at") WHERE "notifications"."state" = 'pending';--> statement-breakpoint
CREATE INDEX "notifications_started" ON "notifications" USING btree ("checked_at") WHERE "notifications"."state" = 'started';--> statement-breakpoint
CREATE INDEX "notifications_partner" ON "notifications" USING btree ("partner_id","notification_id");--> statement-breakpoint
CREATE UNIQUE INDEX "webhook_endpoints_current" ON "webhook_endpoints" USING btree ("partner_id","environment") WHERE "webhook_endpoints"."state" <> 'removed';--> statement-breakpoint
CREATE INDEX "webhook_secrets_endpoint" ON "webhook_secrets" USING btree ("endpoint_id");
--> statement-breakpoint
-- The backstop of each, and a year of months ahead; a notification and its attempts are dropped with the same month.
CREATE TABLE "notifications_default" PARTITION OF "notifications" DEFAULT;
--> statement-breakpoint
CREATE TABLE "delivery_attempts_default" PARTITION OF "delivery_attempts" DEFAULT;
--> statement-breakpoint
SELECT ensure_month_partitions('notifications', 'notification_id', 'ntf_', 12);
--> statement-breakpoint
SELECT ensure_month_partitions('delivery_attempts', 'notification_id', 'ntf_', 12);
--> statement-breakpoint
-- First day of the UTC month of the service's clock: the month that a delivery counts in, whatever the session's time zone.
CREATE FUNCTION service_month() RETURNS date LANGUAGE sql VOLATILE PARALLEL SAFE AS
'SELECT date_trunc(''month'', service_now() AT TIME ZONE ''UTC'')::date';
