-- contract: every release writes summary_style itself, and reads null as the headline.
ALTER TABLE "merchants" ALTER COLUMN "summary_style" DROP DEFAULT;
ALTER TABLE "merchants" ALTER COLUMN "summary_style" DROP NOT NULL;
-- Where the list is hidden, nobody may have meant the price that the default gave. Where it is shown, "offer" stays: the release before
-- would read null as the headline. The code is the one whose messages db/postgres/migrate.ts passes on.
DO $$
DECLARE
  found text[];
BEGIN
  WITH changed AS (
    UPDATE merchants SET summary_style = NULL, updated_at = service_now()
    WHERE NOT show_products AND summary_style = 'offer' RETURNING merchant_id
  ), logged AS (
    INSERT INTO change_log (actor, action, subject, details)
    SELECT 'migration', 'merchants.summary_style', merchant_id, '{"change": "updated", "summary_style": null}' FROM changed
  )
  SELECT array_agg(merchant_id ORDER BY merchant_id) INTO found FROM changed;
  IF found IS NOT NULL THEN
    RAISE WARNING USING ERRCODE = 'PFQ01', MESSAGE = format(
      'the summary is now the plain headline for %s merchants that show no list and did not state summary_style: %s%s '
      '(ops changes list --action merchants.summary_style; to name a price again: ops merchants set MERCHANT --summary-style offer)',
      cardinality(found), array_to_string(found[:100], ', '), CASE WHEN cardinality(found) > 100 THEN ', …' ELSE '' END);
  END IF;
END $$;
