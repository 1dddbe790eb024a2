ALTER TABLE "outages" DROP CONSTRAINT "outages_kind";
ALTER TABLE "processes" ADD COLUMN "cut_off_since" timestamp with time zone;
ALTER TABLE "outages" ADD CONSTRAINT "outages_kind" CHECK ("outages"."kind" in ('workers', 'temporal', 'network')) NOT VALID;