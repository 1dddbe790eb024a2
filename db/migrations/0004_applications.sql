CREATE TABLE "credit_applications" (
	"application_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"lender" text NOT NULL,
	"lender_reference" text NOT NULL,
	"quote_id" text NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"merchant_id" text NOT NULL,
	"merchant_reference" text,
	"loan_pence" bigint NOT NULL,
	"deposit_pence" bigint NOT NULL,
	"credit_product" text,
	"state" text DEFAULT 'created' NOT NULL,
	"state_occurred_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"sequence" integer DEFAULT 0 NOT NULL,
	"service_key_id" text,
	"request_id" text,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "credit_applications_lender_reference" UNIQUE("lender","environment","lender_reference"),
	CONSTRAINT "credit_applications_environment" CHECK ("credit_applications"."environment" in ('sandbox', 'live'))
);
--> statement-breakpoint
CREATE TABLE "lender_events" (
	"event_number" bigserial PRIMARY KEY NOT NULL,
	"application_id" text COLLATE "C" NOT NULL,
	"lender" text NOT NULL,
	"environment" text NOT NULL,
	"lender_event_id" text NOT NULL,
	"status" text NOT NULL,
	"occurred_at" timestamp with time zone NOT NULL,
	"received_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"verdict" text NOT NULL,
	"state_after" text NOT NULL,
	"previous_state" text,
	"sequence" integer,
	"applied_at" timestamp with time zone,
	"service_key_id" text,
	"request_id" text,
	CONSTRAINT "lender_events_lender_event" UNIQUE("lender","environment","lender_event_id")
);
--> statement-breakpoint
CREATE TABLE "lenders" (
	"lender" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"reference_format" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "service_keys" (
	"key_id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"last_four" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"expires_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"revoked_at" timestamp with time zone,
	"replaced_by" text,
	CONSTRAINT "service_keys_key_hash_unique" UNIQUE("key_hash"),
	CONSTRAINT "service_keys_state" CHECK ("service_keys"."state" in ('active', 'inactive', 'revoked'))
);
--> statement-breakpoint
DROP INDEX "notifications_application";--> statement-breakpoint
ALTER TABLE "credit_applications" ADD CONSTRAINT "credit_applications_lender_lenders_lender_fk" FOREIGN KEY ("lender") REFERENCES "public"."lenders"("lender") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "credit_applications" ADD CONSTRAINT "credit_applications_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lender_events" ADD CONSTRAINT "lender_events_application_id_credit_applications_application_id_fk" FOREIGN KEY ("application_id") REFERENCES "public"."credit_applications"("application_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "credit_applications_partner" ON "credit_applications" USING btree ("partner_id","application_id");--> statement-breakpoint
CREATE INDEX "lender_events_application" ON "lender_events" USING btree ("application_id","event_number");--> statement-breakpoint
CREATE INDEX "notifications_application" ON "notifications" USING btree ("application_id","sequence") WHERE "notifications"."application_id" is not null;
--> statement-breakpoint
INSERT INTO "lenders" ("lender", "name", "reference_format") VALUES
	('lender_a', 'Lender A', '[A-Za-z0-9]{8}'),
	('lender_b', 'Lender B', '\d{7}');
