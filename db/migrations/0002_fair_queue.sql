DROP INDEX "notifications_due";--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "priority" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "taken_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "first_attempt_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "notifications_queue" ON "notifications" USING btree ("partner_id","environment","priority","due_at") WHERE "notifications"."state" = 'pending';--> statement-breakpoint
CREATE INDEX "notifications_taken" ON "notifications" USING btree ("partner_id","environment") WHERE "notifications"."taken_at" is not null and "notifications"."state" in ('pending', 'started');--> statement-breakpoint
CREATE INDEX "notifications_application" ON "notifications" USING btree ("application_id","sequence") WHERE "notifications"."application_id" is not null and "notifications"."state" in ('pending', 'started', 'held');--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_priority" CHECK (priority in (0, 1));