-- Ids are in the order of their bytes. A database's own order may be another: Czech sorts CH after H, Danish AA after Z.
CREATE OR REPLACE FUNCTION ids_that_stay(parent text, low text, high text) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF parent = 'quotes' THEN
    RETURN QUERY SELECT a.quote_id FROM credit_applications a
      WHERE a.quote_id COLLATE "C" >= low AND a.quote_id COLLATE "C" < high
        AND a.state NOT IN ('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded');
  ELSE
    RETURN QUERY SELECT d.notification_id FROM deliveries d WHERE d.notification_id >= low AND d.notification_id < high;
  END IF;
END $$;
-- The same order where a month is dropped.
DO $$ BEGIN
  EXECUTE replace(pg_get_functiondef('drop_expired_month(text, text)'::regprocedure),
    'WHERE notification_id >= low AND notification_id < high',
    'WHERE notification_id COLLATE "C" >= low AND notification_id COLLATE "C" < high');
END $$;
