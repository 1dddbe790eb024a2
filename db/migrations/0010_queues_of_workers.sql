ALTER TABLE "processes" ADD COLUMN "seat" smallint;
