-- The service's own clock. Only test databases replace this function (design, section 6).
CREATE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT clock_timestamp()';
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE "change_log" (
	"change_id" bigserial PRIMARY KEY NOT NULL,
	"changed_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"subject" text NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "merchant_partners" (
	"merchant_id" text NOT NULL,
	"partner_id" text NOT NULL,
	CONSTRAINT "merchant_partners_merchant_id_partner_id_pk" PRIMARY KEY("merchant_id","partner_id")
);
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE "partners" (
	"partner_id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"state" text DEFAULT 'active' NOT NULL,
	"created_at" timestamp with time zone DEFAULT service_now() NOT NULL,
	CONSTRAINT "partners_id_form" CHECK ("partners"."partner_id" ~ '^P[0-9]{6}$'),
	CONSTRAINT "partners_state" CHECK ("partners"."state" in ('active', 'inactive'))
);
--> statement-breakpoint
CREATE TABLE "product_versions" (
	"product_id" text NOT NULL,
	"version" integer NOT NULL,
	"lender" text NOT NULL,
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
--> statement-breakpoint
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
--> statement-breakpoint
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
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "merchant_partners" ADD CONSTRAINT "merchant_partners_merchant_id_merchants_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("merchant_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "merchant_partners" ADD CONSTRAINT "merchant_partners_partner_id_partners_partner_id_fk" FOREIGN KEY ("partner_id") REFERENCES "public"."partners"("partner_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "product_versions" ADD CONSTRAINT "product_versions_product_id_products_product_id_fk" FOREIGN KEY ("product_id") REFERENCES "public"."products"("product_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "products" ADD CONSTRAINT "products_merchant_id_merchants_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("merchant_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "api_keys_partner" ON "api_keys" USING btree ("partner_id");--> statement-breakpoint
CREATE INDEX "change_log_subject" ON "change_log" USING btree ("subject");--> statement-breakpoint
CREATE INDEX "merchant_partners_partner" ON "merchant_partners" USING btree ("partner_id");
--> statement-breakpoint
-- A default partition is the backstop: an insert never fails for want of a month.
CREATE TABLE "quotes_default" PARTITION OF "quotes" DEFAULT;
--> statement-breakpoint
-- The smallest ULID of a moment: ten Crockford base-32 digits of its Unix milliseconds, then zeros.
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
--> statement-breakpoint
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
--> statement-breakpoint
SELECT ensure_month_partitions('quotes', 'quote_id', 'qte_', 12);
--> statement-breakpoint
-- Tells every API process which part of its memory is stale (api/catalogue). The notification is sent on commit.
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
--> statement-breakpoint
CREATE TRIGGER partners_notify AFTER INSERT OR UPDATE OR DELETE ON "partners" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
--> statement-breakpoint
CREATE TRIGGER api_keys_notify AFTER INSERT OR UPDATE OR DELETE ON "api_keys" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
--> statement-breakpoint
CREATE TRIGGER merchants_notify AFTER INSERT OR UPDATE OR DELETE ON "merchants" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
--> statement-breakpoint
CREATE TRIGGER merchant_partners_notify AFTER INSERT OR UPDATE OR DELETE ON "merchant_partners" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
--> statement-breakpoint
CREATE TRIGGER products_notify AFTER INSERT OR UPDATE OR DELETE ON "products" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
--> statement-breakpoint
CREATE TRIGGER product_versions_notify AFTER INSERT OR UPDATE OR DELETE ON "product_versions" FOR EACH ROW EXECUTE FUNCTION notify_catalogue();
--> statement-breakpoint
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
--> statement-breakpoint
CREATE TRIGGER change_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "change_log"
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
