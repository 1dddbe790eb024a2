CREATE TABLE "recoveries" (
	"recovery_id" text PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text,
	"since" timestamp with time zone NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"state" text DEFAULT 'running' NOT NULL,
	"per_second" integer NOT NULL,
	"found" integer NOT NULL,
	"sent" integer DEFAULT 0 NOT NULL,
	"skipped" integer DEFAULT 0 NOT NULL,
	"last_application" text COLLATE "C" DEFAULT '' NOT NULL,
	"last_sequence" integer DEFAULT 0 NOT NULL,
	"last_notification" text COLLATE "C" DEFAULT '' NOT NULL,
	"runner" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "recoveries_state" CHECK ("recoveries"."state" in ('running', 'interrupted', 'done'))
);
--> statement-breakpoint
CREATE TABLE "retention_marks" (
	"kind" text PRIMARY KEY NOT NULL,
	"done_up_to" text COLLATE "C" NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL
);
--> statement-breakpoint
CREATE INDEX "recoveries_partner" ON "recoveries" USING btree ("partner_id","recovery_id");--> statement-breakpoint
CREATE INDEX "credit_applications_open_quote" ON "credit_applications" USING btree ("quote_id") WHERE "credit_applications"."state" not in ('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded');