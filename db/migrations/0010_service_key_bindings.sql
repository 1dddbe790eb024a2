-- contract: no release exists yet, so none works with keys that are not bound.
-- Which lender and environment an older key was meant for is not known: such keys are issued anew.
DELETE FROM "service_keys";--> statement-breakpoint
ALTER TABLE "service_keys" ADD COLUMN "lender" text NOT NULL;--> statement-breakpoint
ALTER TABLE "service_keys" ADD COLUMN "environment" text NOT NULL;--> statement-breakpoint
ALTER TABLE "service_keys" ADD CONSTRAINT "service_keys_lender_lenders_lender_fk" FOREIGN KEY ("lender") REFERENCES "public"."lenders"("lender") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "service_keys" ADD CONSTRAINT "service_keys_environment" CHECK ("service_keys"."environment" in ('sandbox', 'live'));