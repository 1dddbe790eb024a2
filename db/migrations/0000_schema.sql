-- The service's own clock. Only test databases replace this function.
CREATE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT clock_timestamp()';
-- First day of the UTC month of that clock: the month in which a delivery counts.
CREATE FUNCTION service_month() RETURNS date LANGUAGE sql VOLATILE PARALLEL SAFE AS
'SELECT date_trunc(''month'', service_now() AT TIME ZONE ''UTC'')::date';
CREATE TABLE "api_keys" (
	"key_id" text PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"last_four" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"expires_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"revoked_at" timestamp with time zone,
	"replaced_by" text,
	CONSTRAINT "api_keys_key_hash_unique" UNIQUE("key_hash"),
	CONSTRAINT "api_keys_environment" CHECK ("api_keys"."environment" in ('sandbox', 'live')),
	CONSTRAINT "api_keys_state" CHECK ("api_keys"."state" in ('active', 'inactive', 'revoked'))
);
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
	"simulated" smallint,
	"service_key_id" text,
	"request_id" text,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "credit_applications_simulated_form" CHECK ("credit_applications"."simulated" is null or "credit_applications"."simulated" between 1 and 20 and "credit_applications"."environment" = 'sandbox'),
	CONSTRAINT "credit_applications_environment" CHECK ("credit_applications"."environment" in ('sandbox', 'live'))
);
CREATE TABLE "lender_events" (
	"event_number" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "lender_events_event_number_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"application_id" text COLLATE "C" NOT NULL,
	"lender" text NOT NULL,
	"environment" text NOT NULL,
	"lender_event_id" text NOT NULL,
	"status" text NOT NULL,
	"occurred_at" timestamp with time zone NOT NULL,
	"received_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"verdict" text NOT NULL,
	"state_after" text NOT NULL,
	"waits_until" timestamp with time zone,
	"previous_state" text,
	"sequence" integer,
	"applied_at" timestamp with time zone,
	"service_key_id" text,
	"request_id" text,
	CONSTRAINT "lender_events_lender_event" UNIQUE("lender","environment","lender_event_id")
);
CREATE TABLE "lenders" (
	"lender" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"reference_format" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL
);
CREATE TABLE "change_log" (
	"change_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "change_log_change_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"changed_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"actor" text NOT NULL,
	"login" text DEFAULT session_user NOT NULL,
	"action" text NOT NULL,
	"subject" text NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL
);
CREATE TABLE "cursor_secrets" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"secret" "bytea" NOT NULL,
	CONSTRAINT "cursor_secrets_only" CHECK ("cursor_secrets"."only")
);
CREATE TABLE "deliveries" (
	"notification_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"application_id" text,
	"sequence" integer,
	"test" boolean NOT NULL,
	"delivered" boolean DEFAULT false NOT NULL,
	"priority" smallint DEFAULT 0 NOT NULL,
	"state" text DEFAULT 'queued' NOT NULL,
	"generation" integer DEFAULT 1 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"step" smallint DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"taken_at" timestamp with time zone,
	"started_at" timestamp with time zone,
	"first_attempt_at" timestamp with time zone,
	"next_attempt_at" timestamp with time zone,
	"paused_at" timestamp with time zone,
	"paused_by" text,
	"held_at" timestamp with time zone,
	"hold_reason" text,
	"checked_at" timestamp with time zone,
	"reserved_month" date,
	CONSTRAINT "deliveries_state" CHECK ("deliveries"."state" in ('queued', 'started', 'held')),
	CONSTRAINT "deliveries_priority" CHECK ("deliveries"."priority" in (0, 1)),
	CONSTRAINT "deliveries_held" CHECK (("deliveries"."state" = 'held') = ("deliveries"."held_at" is not null) and ("deliveries"."state" = 'held') = ("deliveries"."hold_reason" is not null)),
	CONSTRAINT "deliveries_open" CHECK ("deliveries"."state" <> 'held' or "deliveries"."taken_at" is null and "deliveries"."reserved_month" is null
        and "deliveries"."next_attempt_at" is null and "deliveries"."paused_at" is null),
	CONSTRAINT "deliveries_sequence" CHECK (("deliveries"."application_id" is null) = ("deliveries"."sequence" is null))
) WITH (
	-- Every row is updated a few times within seconds and then deleted: dead rows are cleared away before the table has grown by them.
	fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 0.2
);
CREATE TABLE "delivery_pauses" (
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"paused_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"paused_by" text NOT NULL,
	"resumed_at" timestamp with time zone,
	"resumed_by" text,
	CONSTRAINT "delivery_pauses_partner_id_environment_paused_at_pk" PRIMARY KEY("partner_id","environment","paused_at"),
	CONSTRAINT "delivery_pauses_environment" CHECK ("delivery_pauses"."environment" in ('sandbox', 'live')),
	CONSTRAINT "delivery_pauses_resumed" CHECK (("delivery_pauses"."resumed_at" is null) = ("delivery_pauses"."resumed_by" is null))
);
CREATE TABLE "backups" (
	"completed_at" timestamp with time zone PRIMARY KEY DEFAULT service_now() NOT NULL
);
CREATE TABLE "outages" (
	"kind" text NOT NULL,
	"began_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "outages_kind_began_at_pk" PRIMARY KEY("kind","began_at"),
	CONSTRAINT "outages_kind" CHECK ("outages"."kind" in ('workers', 'temporal'))
);
CREATE TABLE "processes" (
	"process_id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"host" text NOT NULL,
	"build" text,
	"started_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"seen_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"temporal_at" timestamp with time zone,
	"stopped_at" timestamp with time zone,
	CONSTRAINT "processes_kind" CHECK ("processes"."kind" in ('api', 'worker'))
);
CREATE TABLE "delivery_intervals" (
	"notification_id" text NOT NULL,
	"kind" text NOT NULL,
	"reason" text,
	"began_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone NOT NULL,
	CONSTRAINT "delivery_intervals_notification_id_kind_began_at_pk" PRIMARY KEY("notification_id","kind","began_at"),
	CONSTRAINT "delivery_intervals_kind" CHECK ("delivery_intervals"."kind" in ('held', 'paused'))
);
CREATE TABLE "key_uses" (
	"key_id" text PRIMARY KEY NOT NULL,
	"used_at" timestamp with time zone NOT NULL
);
CREATE TABLE "merchant_partners" (
	"merchant_id" text NOT NULL,
	"partner_id" text NOT NULL,
	CONSTRAINT "merchant_partners_merchant_id_partner_id_pk" PRIMARY KEY("merchant_id","partner_id")
);
CREATE TABLE "merchants" (
	"merchant_id" text PRIMARY KEY NOT NULL,
	"trading_name" text,
	"fca_authorised" boolean,
	"show_products" boolean DEFAULT true NOT NULL,
	"summary_style" text DEFAULT 'offer' NOT NULL,
	"deposit_floor_basis_points" integer,
	"deposit_floor_fixed_pence" bigint,
	"partner_access" text DEFAULT 'all' NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "merchants_id_form" CHECK ("merchants"."merchant_id" ~ '^(M[0-9]{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})$'),
	CONSTRAINT "merchants_summary_style" CHECK ("merchants"."summary_style" in ('offer', 'headline')),
	CONSTRAINT "merchants_partner_access" CHECK ("merchants"."partner_access" in ('all', 'restricted'))
);
CREATE TABLE "partners" (
	"partner_id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"recovery" text DEFAULT 'enabled' NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "partners_id_form" CHECK ("partners"."partner_id" ~ '^P[0-9]{6}$'),
	CONSTRAINT "partners_state" CHECK ("partners"."state" in ('active', 'inactive')),
	CONSTRAINT "partners_recovery" CHECK ("partners"."recovery" in ('enabled', 'disabled'))
);
CREATE TABLE "product_versions" (
	"product_id" text NOT NULL,
	"version" integer NOT NULL,
	"lender" text NOT NULL,
	"lender_name" text NOT NULL,
	"number_of_repayments" integer NOT NULL,
	"apr_basis_points" integer NOT NULL,
	"rate_type" text NOT NULL,
	"rate_basis" text NOT NULL,
	"rate_ppm" integer,
	"instalment_rounding" text NOT NULL,
	"final_payment" text NOT NULL,
	"deferral_months" integer DEFAULT 0 NOT NULL,
	"first_interval_days" integer,
	"settlement_fee_pence" bigint DEFAULT 0 NOT NULL,
	"min_loan_pence" bigint NOT NULL,
	"max_loan_pence" bigint NOT NULL,
	"deposit_min_basis_points" integer,
	"deposit_min_fixed_pence" bigint,
	"deposit_max_basis_points" integer,
	"deposit_max_fixed_pence" bigint,
	"first_payment_type" text NOT NULL,
	"annual_rate_shown" text NOT NULL,
	"valid_from" date,
	"valid_to" date,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "product_versions_product_id_version_pk" PRIMARY KEY("product_id","version")
);
CREATE TABLE "products" (
	"product_id" text PRIMARY KEY NOT NULL,
	"merchant_id" text NOT NULL,
	"credit_product" text NOT NULL,
	"active" boolean DEFAULT true NOT NULL,
	"current_version" integer DEFAULT 1 NOT NULL,
	"display_order" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "products_merchant_credit_product" UNIQUE("merchant_id","credit_product")
);
CREATE TABLE "quotes" (
	"quote_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"partner_id" text NOT NULL,
	"key_id" text NOT NULL,
	"environment" text NOT NULL,
	"merchant_id" text NOT NULL,
	"loan_pence" bigint NOT NULL,
	"deposit_pence" bigint,
	"merchant_finance_url" text NOT NULL,
	"merchant_reference" text,
	"request_id" text NOT NULL,
	"response" text NOT NULL,
	"fitted" text NOT NULL
) PARTITION BY RANGE ("quote_id");
CREATE TABLE "recoveries" (
	"recovery_id" text PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text,
	"key_id" text,
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
CREATE TABLE "retention_days" (
	"kind" text PRIMARY KEY NOT NULL,
	"days" integer NOT NULL,
	CONSTRAINT "retention_days_least" CHECK ("retention_days"."days" between 31 and 36500)
);
CREATE TABLE "retention_marks" (
	"kind" text PRIMARY KEY NOT NULL,
	"done_up_to" text COLLATE "C" NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL
);
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
CREATE TABLE "notifications" (
	"notification_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"event_id" text NOT NULL,
	"event_type" text NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"application_id" text,
	"sequence" integer,
	"merchant_reference" text,
	"body" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"generation" integer DEFAULT 1 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"delivered_at" timestamp with time zone,
	"failed_month" date,
	"end_state" text,
	"end_reason" text,
	"ended_at" timestamp with time zone,
	"sent_again_at" timestamp with time zone,
	"recovery_id" text,
	"request_id" text,
	"trace_parent" text,
	CONSTRAINT "notifications_end" CHECK (end_state in ('delivered', 'failed', 'cancelled', 'expired')),
	CONSTRAINT "notifications_ended" CHECK ((end_state is null) = (ended_at is null)),
	CONSTRAINT "notifications_delivered" CHECK (end_state <> 'delivered' or delivered_at is not null),
	CONSTRAINT "notifications_reason" CHECK ((coalesce(end_state, 'delivered') = 'delivered') = (end_reason is null)),
	CONSTRAINT "notifications_sequence" CHECK ((application_id is null) = (sequence is null))
) PARTITION BY RANGE ("notification_id");
CREATE TABLE "service_keys" (
	"key_id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"lender" text NOT NULL,
	"environment" text NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"last_four" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"expires_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"revoked_at" timestamp with time zone,
	"replaced_by" text,
	CONSTRAINT "service_keys_key_hash_unique" UNIQUE("key_hash"),
	CONSTRAINT "service_keys_state" CHECK ("service_keys"."state" in ('active', 'inactive', 'revoked')),
	CONSTRAINT "service_keys_no_test_lender" CHECK ("service_keys"."lender" not in ('test_lender_a', 'test_lender_b')),
	CONSTRAINT "service_keys_environment" CHECK ("service_keys"."environment" in ('sandbox', 'live'))
);
CREATE TABLE "webhook_endpoints" (
	"endpoint_id" text PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"url" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"disabled_reason" text,
	"last_success_at" timestamp with time zone,
	"failing_since" timestamp with time zone,
	"failures_since_success" integer DEFAULT 0 NOT NULL,
	"warned_hours" smallint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "webhook_endpoints_environment" CHECK ("webhook_endpoints"."environment" in ('sandbox', 'live')),
	CONSTRAINT "webhook_endpoints_state" CHECK ("webhook_endpoints"."state" in ('active', 'disabled', 'removed'))
);
CREATE TABLE "webhook_secrets" (
	"secret_id" text PRIMARY KEY NOT NULL,
	"endpoint_id" text NOT NULL,
	"key_id" text NOT NULL,
	"ciphertext" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"expires_at" timestamp with time zone
);
CREATE TABLE "webhook_key_pairs" (
	"key_pair_id" text PRIMARY KEY NOT NULL,
	"partner_id" text NOT NULL,
	"environment" text NOT NULL,
	"public_key" text NOT NULL,
	"key_id" text NOT NULL,
	"ciphertext" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"expires_at" timestamp with time zone,
	CONSTRAINT "webhook_key_pairs_environment" CHECK ("webhook_key_pairs"."environment" in ('sandbox', 'live'))
);
CREATE TABLE "operator_events" (
	"event_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "operator_events_event_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"happened_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"kind" text NOT NULL,
	"partner_id" text,
	"environment" text,
	"endpoint_id" text,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL
);
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "credit_applications" ADD CONSTRAINT "credit_applications_lender_lenders_lender_fk" FOREIGN KEY ("lender") REFERENCES "public"."lenders"("lender") ON DELETE no action ON UPDATE no action;
ALTER TABLE "credit_applications" ADD CONSTRAINT "credit_applications_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "lender_events" ADD CONSTRAINT "lender_events_application_id_credit_applications_application_id_fk" FOREIGN KEY ("application_id") REFERENCES "public"."credit_applications"("application_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "merchant_partners" ADD CONSTRAINT "merchant_partners_merchant_id_merchants_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("merchant_id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "merchant_partners" ADD CONSTRAINT "merchant_partners_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "product_versions" ADD CONSTRAINT "product_versions_product_id_products_product_id_fk" FOREIGN KEY ("product_id") REFERENCES "public"."products"("product_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "product_versions" ADD CONSTRAINT "product_versions_lender_lenders_lender_fk" FOREIGN KEY ("lender") REFERENCES "public"."lenders"("lender") ON DELETE no action ON UPDATE no action;
ALTER TABLE "products" ADD CONSTRAINT "products_merchant_id_merchants_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("merchant_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "service_keys" ADD CONSTRAINT "service_keys_lender_lenders_lender_fk" FOREIGN KEY ("lender") REFERENCES "public"."lenders"("lender") ON DELETE no action ON UPDATE no action;
ALTER TABLE "delivery_pauses" ADD CONSTRAINT "delivery_pauses_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "webhook_secrets" ADD CONSTRAINT "webhook_secrets_endpoint_id_webhook_endpoints_endpoint_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."webhook_endpoints"("endpoint_id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "webhook_key_pairs" ADD CONSTRAINT "webhook_key_pairs_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;
CREATE INDEX "api_keys_partner" ON "api_keys" USING btree ("partner_id");
CREATE UNIQUE INDEX "credit_applications_lender_reference" ON "credit_applications" USING btree ("lender","environment","lender_reference",("simulated" is null));
CREATE UNIQUE INDEX "credit_applications_simulated" ON "credit_applications" USING btree ("quote_id","simulated") WHERE "credit_applications"."simulated" is not null;
CREATE INDEX "credit_applications_partner" ON "credit_applications" USING btree ("partner_id","application_id");
CREATE INDEX "credit_applications_merchant_reference" ON "credit_applications" USING btree ("merchant_reference") WHERE "credit_applications"."merchant_reference" is not null;
CREATE INDEX "credit_applications_quote" ON "credit_applications" USING btree ("quote_id");
CREATE INDEX "credit_applications_open_quote" ON "credit_applications" USING btree ("quote_id") WHERE "credit_applications"."state" not in ('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded');
CREATE INDEX "lender_events_application" ON "lender_events" USING btree ("application_id","event_number");
CREATE INDEX "lender_events_waiting" ON "lender_events" USING btree ("waits_until") WHERE "lender_events"."waits_until" is not null;
CREATE INDEX "change_log_subject" ON "change_log" USING btree ("subject");
CREATE INDEX "change_log_partner" ON "change_log" USING btree (("details" ->> 'partner_id'),"change_id") WHERE "change_log"."details" ->> 'partner_id' is not null;
CREATE INDEX "merchant_partners_partner" ON "merchant_partners" USING btree ("partner_id");
CREATE INDEX "recoveries_partner" ON "recoveries" USING btree ("partner_id","recovery_id");
CREATE UNIQUE INDEX "recoveries_under_way" ON "recoveries" USING btree ("partner_id","environment") WHERE "recoveries"."state" = 'running' and "recoveries"."key_id" is not null;
CREATE INDEX "deliveries_queue" ON "deliveries" USING btree ("partner_id","environment","priority","due_at") WHERE "deliveries"."state" = 'queued';
CREATE INDEX "deliveries_slots" ON "deliveries" USING btree ("partner_id","environment") WHERE "deliveries"."taken_at" is not null or "deliveries"."test" and "deliveries"."state" = 'started';
CREATE INDEX "deliveries_application" ON "deliveries" USING btree ("application_id","sequence") WHERE "deliveries"."application_id" is not null;
CREATE INDEX "deliveries_page" ON "deliveries" USING btree ("partner_id","environment",(case when state = 'held' then 'held' when step > 0 then 'retrying' else 'pending' end),"notification_id");
CREATE UNIQUE INDEX "delivery_pauses_now" ON "delivery_pauses" USING btree ("partner_id","environment") WHERE "delivery_pauses"."resumed_at" is null;
CREATE INDEX "notifications_page" ON "notifications" USING btree ("environment","partner_id","notification_id");
CREATE INDEX "notifications_page_event_type" ON "notifications" USING btree ("environment","partner_id","event_type","notification_id");
CREATE INDEX "notifications_page_event" ON "notifications" USING btree ("environment","partner_id","event_id","notification_id");
CREATE INDEX "notifications_page_application" ON "notifications" USING btree ("environment","partner_id","application_id","notification_id") WHERE "notifications"."application_id" is not null;
CREATE INDEX "notifications_page_reference" ON "notifications" USING btree ("environment","partner_id","merchant_reference","notification_id") WHERE "notifications"."merchant_reference" is not null;
CREATE INDEX "notifications_page_ended" ON "notifications" USING btree ("environment","partner_id",(case when delivered_at is not null then 'delivered' else end_state end),"notification_id") WHERE "notifications"."end_state" is not null;
CREATE INDEX "notifications_recovery" ON "notifications" USING btree ("recovery_id") WHERE "notifications"."recovery_id" is not null;
CREATE UNIQUE INDEX "webhook_endpoints_current" ON "webhook_endpoints" USING btree ("partner_id","environment") WHERE "webhook_endpoints"."state" <> 'removed';
CREATE INDEX "webhook_secrets_endpoint" ON "webhook_secrets" USING btree ("endpoint_id");
CREATE INDEX "webhook_key_pairs_partner" ON "webhook_key_pairs" USING btree ("partner_id","environment");
CREATE UNIQUE INDEX "webhook_key_pairs_current" ON "webhook_key_pairs" USING btree ("partner_id","environment") WHERE "webhook_key_pairs"."expires_at" is null;
CREATE INDEX "operator_events_partner" ON "operator_events" USING btree ("partner_id","environment","kind","event_id");
CREATE UNIQUE INDEX "operator_events_crowded_quote" ON "operator_events" USING btree (("details" ->> 'service_quote_id')) WHERE "operator_events"."kind" = 'quote_crowded';
ALTER TABLE "notifications" ENABLE ROW LEVEL SECURITY;
CREATE POLICY "notifications_all" ON "notifications" AS PERMISSIVE FOR ALL TO public USING (true);
CREATE POLICY "notifications_insert" ON "notifications" AS RESTRICTIVE FOR INSERT TO public WITH CHECK (notification_id ~ '^ntf_[0-7][0-9A-HJKMNP-TV-Z]{25}$' and event_id ~ '^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$'
  and environment in ('sandbox', 'live') and octet_length(body) <= 20000
  and case when application_id is null then event_type = 'credit_application.test' and partner_id ~ '^P[0-9]{6}$'
    else event_type in ('credit_application.created', 'credit_application.submitted', 'credit_application.referred', 'credit_application.accepted', 'credit_application.action_required', 'credit_application.deposit_paid', 'credit_application.signed', 'credit_application.ready', 'credit_application.activated', 'credit_application.paid_out', 'credit_application.completed', 'credit_application.declined', 'credit_application.cancelled', 'credit_application.expired', 'credit_application.partially_refunded', 'credit_application.refunded')
      and exists (select from credit_applications a where a.application_id = notifications.application_id
        and a.partner_id = notifications.partner_id and a.environment = notifications.environment
        and a.sequence = notifications.sequence and 'credit_application.' || a.state = notifications.event_type
        and a.merchant_reference is not distinct from notifications.merchant_reference) end);
-- The smallest ULID of a moment: ten Crockford base-32 digits of its Unix milliseconds, and zeros.
CREATE FUNCTION ulid_floor(moment timestamptz) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  digits constant text := '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  rest bigint := floor(extract(epoch FROM moment) * 1000);
  answer text := '';
BEGIN
  FOR place IN 1..10 LOOP
    answer := substr(digits, (rest % 32)::int + 1, 1) || answer;
    rest := rest / 32;
  END LOOP;
  RETURN answer || repeat('0', 16);
END $$;
-- Creates the monthly partitions (UTC) of a table partitioned by a prefixed ULID, from the month of service_now() on.
-- Rows that already went to the default partition move to their month. Returns how many partitions it made.
CREATE FUNCTION ensure_month_partitions(parent text, id_column text, id_prefix text, months int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  first_month timestamp := date_trunc('month', service_now() AT TIME ZONE 'UTC');
  month_start timestamp;
  part text;
  low text;
  high text;
  made int := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('ensure_month_partitions'), hashtext(parent));
  FOR ahead IN 0..months LOOP
    month_start := first_month + make_interval(months => ahead);
    part := parent || to_char(month_start, '"_"YYYY"_"MM');
    CONTINUE WHEN to_regclass(quote_ident(part)) IS NOT NULL;
    low := id_prefix || ulid_floor(month_start AT TIME ZONE 'UTC');
    high := id_prefix || ulid_floor((month_start + interval '1 month') AT TIME ZONE 'UTC');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
    EXECUTE format(
      'WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
      parent || '_default', id_column, low, id_column, high, part);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, low, high);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;
-- Default partitions take rows whose month has no partition, so that no insert fails.
CREATE TABLE "quotes_default" PARTITION OF "quotes" DEFAULT;
CREATE TABLE "notifications_default" PARTITION OF "notifications" DEFAULT;
CREATE TABLE "delivery_attempts_default" PARTITION OF "delivery_attempts" DEFAULT;
-- Makes a year of months ahead for every partitioned table. Workers call it every day. It runs with its owner's rights, so it takes no
-- argument.
CREATE FUNCTION keep_month_partitions() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT ensure_month_partitions('quotes', 'quote_id', 'qte_', 12)
    + ensure_month_partitions('notifications', 'notification_id', 'ntf_', 12)
    + ensure_month_partitions('delivery_attempts', 'notification_id', 'ntf_', 12);
$$;
SELECT keep_month_partitions();
-- Ids from low, inclusive, to high that the retention keeps at any age: notifications that have not ended, which are owed to a partner, and
-- the quotes of applications that have not ended.
CREATE FUNCTION ids_that_stay(parent text, low text, high text) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF parent = 'quotes' THEN
    RETURN QUERY SELECT a.quote_id FROM credit_applications a
      WHERE a.quote_id >= low AND a.quote_id < high
        AND a.state NOT IN ('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded');
  ELSE
    RETURN QUERY SELECT d.notification_id FROM deliveries d WHERE d.notification_id >= low AND d.notification_id < high;
  END IF;
END $$;
-- The smallest id of a kind that the retention keeps: that of so many days ago as the owner has set, and never of less than 31.
CREATE FUNCTION retention_floor(kind text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  kept constant int := (SELECT d.days FROM retention_days d WHERE d.kind = retention_floor.kind);
BEGIN
  IF kept IS NULL THEN
    RAISE EXCEPTION '% has no retention', coalesce(kind, 'null') USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN CASE kind WHEN 'quotes' THEN 'qte_' ELSE 'ntf_' END
    || ulid_floor(service_now() - make_interval(days => greatest(kept, 31)));
END $$;
-- Writes a removal into the change log, under the name of the login that asked for it.
CREATE FUNCTION log_removal(kind text, rows bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO change_log (actor, action, subject, details)
  SELECT session_user, 'retention.remove', d.kind, jsonb_build_object('rows', rows, 'older_than_days', d.days)
  FROM retention_days d WHERE d.kind = log_removal.kind AND rows > 0;
$$;
-- Drops a month as a whole, and writes that into the change log. Its rows are counted before it is locked, and again under the lock: it is
-- dropped only if it has not changed, and if all of its rows, not only its name, are past their time. "stays": a row of it must stay;
-- "busy": it has changed. When the lock is not available within half a second, the error is 55P03. Workers have no other right to drop
-- anything, and the function refuses what is not a partition of ours, or not old enough.
CREATE FUNCTION drop_expired_month(parent text, month text, OUT outcome text, OUT rows bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
  kind constant text := CASE parent WHEN 'delivery_attempts' THEN 'attempts' ELSE parent END;
  floor constant text := retention_floor(kind);
  prefix constant text := left(floor, 4);
  id_column constant text := CASE parent WHEN 'quotes' THEN 'quote_id' ELSE 'notification_id' END;
  part constant text := parent || '_' || month;
  begins timestamp;
  low text;
  high text;
  newest text;
  counted bigint;
  begun boolean;
BEGIN
  IF month IS NULL OR month !~ '^[0-9]{4}_(0[1-9]|1[0-2])$' OR NOT EXISTS (
    SELECT FROM pg_inherits WHERE inhparent = to_regclass(parent) AND inhrelid = to_regclass(part))
  THEN
    RAISE EXCEPTION '% is no month of %', coalesce(month, 'null'), parent USING ERRCODE = 'insufficient_privilege';
  END IF;
  begins := to_date(month, 'YYYY_MM');
  low := prefix || ulid_floor(begins AT TIME ZONE 'UTC');
  high := prefix || ulid_floor((begins + interval '1 month') AT TIME ZONE 'UTC');
  IF high COLLATE "C" > floor THEN
    RAISE EXCEPTION '% is not past its time', part USING ERRCODE = 'insufficient_privilege';
  END IF;
  outcome := 'stays';
  -- A month has begun when a row of it or of a later month exists. The clock of this server may be wrong.
  EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I >= $1)', parent, id_column) INTO begun USING low;
  IF NOT begun OR EXISTS (SELECT FROM ids_that_stay(parent, low, high)) THEN
    RETURN;
  END IF;
  EXECUTE format('SELECT count(*) FROM %I', part) INTO counted;

  -- Writers of this month wait, readers do not. Attempts stay with their notification, so the month of both is locked.
  IF parent = 'delivery_attempts' AND to_regclass('notifications_' || month) IS NOT NULL THEN
    EXECUTE format('LOCK TABLE %I, %I IN SHARE ROW EXCLUSIVE MODE', 'notifications_' || month, part);
  ELSE
    EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', part);
  END IF;
  EXECUTE format('SELECT max(%I), count(*) FROM %I', id_column, part) INTO newest, rows;
  IF EXISTS (SELECT FROM ids_that_stay(parent, low, high)) OR newest COLLATE "C" >= floor THEN
    RETURN;
  END IF;
  IF rows <> counted THEN
    outcome := 'busy';
    RETURN;
  END IF;
  EXECUTE format('DROP TABLE %I', part);
  IF parent = 'delivery_attempts' THEN
    DELETE FROM delivery_intervals WHERE notification_id >= low AND notification_id < high;
  END IF;
  INSERT INTO change_log (actor, action, subject, details)
  VALUES (session_user, 'retention.drop', part, jsonb_build_object('rows', rows));
  outcome := 'gone';
END $$;
-- Deletes rows of a partition that are past their time and need not stay, oldest first, of up to "most" ids, and logs how many. Workers
-- have no other right to delete them.
CREATE FUNCTION delete_expired(parent text, part text, most int, OUT ids int, OUT rows int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  kind constant text := CASE parent WHEN 'delivery_attempts' THEN 'attempts' ELSE parent END;
  floor constant text := retention_floor(kind);
BEGIN
  IF NOT EXISTS (
    SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(parent) AND c.relname = part AND c.relnamespace = 'public'::regnamespace)
  THEN
    RAISE EXCEPTION '% is no partition of %', coalesce(part, 'null'), parent USING ERRCODE = 'insufficient_privilege';
  END IF;
  EXECUTE format($sql$
    WITH old AS (
      SELECT DISTINCT t.%1$I AS id FROM %2$I t
      WHERE t.%1$I < $2 AND t.%1$I NOT IN (SELECT s FROM ids_that_stay($1, '', $2) s)
      ORDER BY 1 LIMIT $3),
    gone AS (DELETE FROM %2$I t USING old WHERE t.%1$I = old.id RETURNING 1)
    SELECT (SELECT count(*)::int FROM old), (SELECT count(*)::int FROM gone)$sql$,
    CASE parent WHEN 'quotes' THEN 'quote_id' ELSE 'notification_id' END, part)
  INTO ids, rows USING parent, floor, most;
  PERFORM log_removal(kind, rows);
END $$;
-- Removes the bodies and answers of the next "most" notifications behind an id that are past their time and have ended, and logs how many.
-- The mark moves up to the first notification that has not ended, which the next run reads again. It moves only when this step began at
-- the mark, because "behind" may be false.
CREATE FUNCTION clear_payloads(behind text, most int, OUT cleared int, OUT by_day jsonb, OUT last text, OUT more boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  floor constant text := retention_floor('payloads');
  ids constant text[] := ARRAY(SELECT n.notification_id FROM notifications n
    WHERE n.notification_id > behind AND n.notification_id < floor
    ORDER BY n.notification_id LIMIT most FOR UPDATE);
  staying text[];
  done text;
BEGIN
  last := coalesce(ids[cardinality(ids)], behind);
  more := cardinality(ids) = most;
  staying := ARRAY(SELECT s FROM ids_that_stay('notifications', ids[1], last || ' ') s);
  WITH gone AS (
    UPDATE notifications n SET body = ''
    WHERE n.notification_id BETWEEN ids[1] AND last AND n.body <> '' AND n.notification_id <> ALL (staying)
    RETURNING to_char(n.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day),
  days AS (SELECT day, count(*) AS n FROM gone GROUP BY day)
  SELECT coalesce(sum(n), 0), coalesce(jsonb_object_agg(day, n), '{}') INTO cleared, by_day FROM days;
  UPDATE delivery_attempts a SET answer = NULL
  WHERE a.notification_id BETWEEN ids[1] AND last AND a.answer IS NOT NULL AND a.notification_id <> ALL (staying);
  done := coalesce((SELECT max(id) FROM unnest(ids) id WHERE id COLLATE "C" < (SELECT min(s COLLATE "C") FROM unnest(staying) s)),
    CASE WHEN cardinality(staying) > 0 THEN behind END, last);
  INSERT INTO retention_marks AS m (kind, done_up_to)
  SELECT 'payloads', done WHERE cardinality(ids) > 0
    AND behind = coalesce((SELECT done_up_to FROM retention_marks WHERE kind = 'payloads'), '')
  ON CONFLICT (kind) DO UPDATE SET done_up_to = excluded.done_up_to, updated_at = service_now() WHERE m.done_up_to = behind;
  PERFORM log_removal('payloads', cleared);
END $$;
-- These functions run with their owner's rights: only the roles of db/postgres/roles.ts may call them.
REVOKE ALL ON FUNCTION keep_month_partitions(), drop_expired_month(text, text), delete_expired(text, text, int), clear_payloads(text, int) FROM PUBLIC;
-- Reports to every API process which part of its memory is stale (api/catalogue.ts). The notification is sent on commit.
CREATE FUNCTION notify_catalogue() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed jsonb := to_jsonb(COALESCE(NEW, OLD));
  merchant text;
BEGIN
  IF TG_TABLE_NAME IN ('partners', 'api_keys') THEN
    PERFORM pg_notify('catalogue', 'partner:' || (changed ->> 'partner_id'));
  ELSIF TG_TABLE_NAME = 'product_versions' THEN
    SELECT merchant_id INTO merchant FROM products WHERE product_id = changed ->> 'product_id';
    PERFORM pg_notify('catalogue', 'merchant:' || COALESCE(merchant, ''));
  ELSE
    PERFORM pg_notify('catalogue', 'merchant:' || (changed ->> 'merchant_id'));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER partners_notify AFTER INSERT OR UPDATE OR DELETE ON "partners" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
CREATE TRIGGER api_keys_notify AFTER INSERT OR UPDATE OR DELETE ON "api_keys" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
CREATE TRIGGER merchants_notify AFTER INSERT OR UPDATE OR DELETE ON "merchants" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
CREATE TRIGGER merchant_partners_notify AFTER INSERT OR UPDATE OR DELETE ON "merchant_partners" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
CREATE TRIGGER products_notify AFTER INSERT OR UPDATE OR DELETE ON "products" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
CREATE TRIGGER product_versions_notify AFTER INSERT OR UPDATE OR DELETE ON "product_versions" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER change_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "change_log"
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operator_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "operator_events"
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- Reports to the keepers of the workers that an endpoint was added, or that its state has changed.
CREATE FUNCTION notify_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('endpoints', NEW.endpoint_id);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_endpoints_added AFTER INSERT ON "webhook_endpoints"
FOR EACH ROW EXECUTE FUNCTION notify_endpoint();
CREATE TRIGGER webhook_endpoints_changed AFTER UPDATE ON "webhook_endpoints"
FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION notify_endpoint();
-- Keeps the span of a hold or of a pause that ends (delivery_intervals).
CREATE FUNCTION keep_interval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF OLD.held_at IS NOT NULL AND (TG_OP = 'DELETE' OR NEW.held_at IS NULL) THEN
    INSERT INTO delivery_intervals VALUES (OLD.notification_id, 'held', OLD.hold_reason, OLD.held_at, service_now())
    ON CONFLICT DO NOTHING;
  END IF;
  IF OLD.paused_at IS NOT NULL AND (TG_OP = 'DELETE' OR NEW.paused_at IS NULL) THEN
    INSERT INTO delivery_intervals VALUES (OLD.notification_id, 'paused', OLD.paused_by, OLD.paused_at, service_now())
    ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER deliveries_interval AFTER UPDATE OR DELETE ON "deliveries"
FOR EACH ROW WHEN (OLD.held_at IS NOT NULL OR OLD.paused_at IS NOT NULL) EXECUTE FUNCTION keep_interval();
-- Authenticates the cursors of pages (api/routes/notifications.ts): 244 random bits, drawn once for each database.
INSERT INTO "cursor_secrets" ("secret") VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
INSERT INTO "lenders" ("lender", "name", "reference_format") VALUES
	('lender_a', 'Lender A', '[A-Za-z0-9]{8}'),
	('lender_b', 'Lender B', '\d{7}'),
	-- Of the designated test merchants (domain/test-merchants.ts).
	('test_lender_a', 'Test Lender A', '[A-Za-z0-9]{8}'),
	('test_lender_b', 'Test Lender B', '\d{7}');
-- Each notification with its present state, for operators: that of its row in "deliveries", or its end. Read with the reader's own rights.
CREATE VIEW "notifications_now" WITH (security_invoker = true) AS
SELECT n.notification_id, n.event_id, n.event_type, n.partner_id, n.environment, n.application_id, n.sequence, n.merchant_reference,
  n.body, n.created_at, coalesce(d.generation, n.generation) AS generation, coalesce(d.attempts, n.attempts) AS attempts,
  coalesce(d.state, n.end_state) AS state, coalesce(d.hold_reason, n.end_reason) AS end_reason, n.delivered_at, n.failed_month, n.ended_at,
  n.sent_again_at, n.recovery_id, n.request_id, n.trace_parent, d.priority, d.step, d.due_at, d.taken_at, d.started_at, d.first_attempt_at,
  d.next_attempt_at, d.paused_at, d.paused_by, d.held_at, d.checked_at, d.reserved_month
FROM notifications n LEFT JOIN deliveries d USING (notification_id);
