CREATE TABLE "figures" (
	"singleton" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"counted_at" timestamp with time zone NOT NULL,
	"took_ms" integer NOT NULL,
	"figures" text NOT NULL,
	CONSTRAINT "figures_singleton" CHECK ("figures"."singleton")
);

