CREATE TABLE "figures" (
	"singleton" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"counted_at" timestamp with time zone NOT NULL,
	"took_ms" integer NOT NULL,
	"figures" text NOT NULL,
	CONSTRAINT "figures_singleton" CHECK ("figures"."singleton")
);

CREATE INDEX "deliveries_checked" ON "deliveries" USING btree (coalesce("checked_at", "started_at", '-infinity')) WHERE "deliveries"."state" = 'started';
CREATE INDEX "deliveries_held" ON "deliveries" USING btree ("partner_id","environment") WHERE "deliveries"."state" = 'held';