ALTER TABLE "notifications" DROP CONSTRAINT "notifications_state";--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_held" CHECK ((state = 'held') = (held_at is not null));--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_ended" CHECK ((state in ('delivered', 'failed', 'cancelled', 'expired')) = (ended_at is not null));--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_delivered" CHECK (state <> 'delivered' or delivered_at is not null);--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ((state in ('pending', 'started', 'delivered')) = (end_reason is null));--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_open" CHECK (state in ('pending', 'started') or taken_at is null and reserved_month is null);--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_sequence" CHECK ((application_id is null) = (sequence is null));--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_state" CHECK (state in ('pending', 'started', 'held', 'delivered', 'failed', 'cancelled', 'expired'));