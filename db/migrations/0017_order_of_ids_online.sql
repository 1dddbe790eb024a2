-- For ids_that_stay, which no longer follows the order of the database.
DROP INDEX CONCURRENTLY IF EXISTS "credit_applications_open_quote";
CREATE INDEX CONCURRENTLY IF NOT EXISTS "credit_applications_open_quote" ON "credit_applications" USING btree ("quote_id" COLLATE "C") WHERE "credit_applications"."state" not in ('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded');
