CREATE INDEX CONCURRENTLY IF NOT EXISTS "deliveries_ordered" ON "deliveries" USING btree ("ordered_at") WHERE "deliveries"."ordered_at" is not null;
