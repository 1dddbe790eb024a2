-- Drops the indexes of Temporal's lists that no search of this service uses: the others cost a third of Temporal's time in Postgres. Kept are
-- those for the newest workflows, for an id, for a status, and for our five search attributes, which have the first keyword columns. The
-- columns stay, because Temporal writes them. schema.sh runs this after each update of the schema; temporal-sql-tool splits it into
-- statements, and does not know every keyword.
DO $$
DECLARE
  unused text;
BEGIN
  FOR unused IN
    SELECT indexname FROM pg_indexes
    WHERE schemaname = 'public' AND tablename = 'executions_visibility'
      AND indexname NOT IN ('executions_visibility_pkey', 'default_idx', 'by_workflow_id', 'by_status',
        'by_keyword_01', 'by_keyword_02', 'by_keyword_03', 'by_keyword_04', 'by_keyword_05')
  LOOP
    EXECUTE format('DROP INDEX %I', unused);
  END LOOP;
END $$;
