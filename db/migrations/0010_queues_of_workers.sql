ALTER TABLE "processes" ADD COLUMN "seat" smallint;
CREATE INDEX "deliveries_due" ON "deliveries" USING btree ("due_at") WHERE "deliveries"."state" = 'queued';