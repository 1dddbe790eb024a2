-- contract: no release has these two; their successors of the same names are installed after the migrations.
DROP FUNCTION IF EXISTS open_attempt_1(text, integer, text, integer, boolean);
DROP FUNCTION IF EXISTS record_attempt_1(text, integer, integer, jsonb, text, text, double precision, interval);
ALTER TABLE "deliveries" ADD COLUMN "ladder_ms" integer[];
ALTER TABLE "deliveries" ADD COLUMN "waits_for" text;
ALTER TABLE "deliveries" ADD COLUMN "hurried_at" timestamp with time zone;
ALTER TABLE "deliveries" ADD COLUMN "ordered_at" timestamp with time zone;
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_waits_for" CHECK ("deliveries"."waits_for" in ('ladder', 'retry_after', 'outage')) NOT VALID;