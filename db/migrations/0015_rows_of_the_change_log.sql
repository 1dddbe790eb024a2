-- Lines of the same transaction, its savepoints included, have the same. Lines from before have none.
ALTER TABLE "change_log" ADD COLUMN "transaction_id" xid8;
ALTER TABLE "change_log" ALTER COLUMN "transaction_id" SET DEFAULT pg_current_xact_id();
-- Writes a line with the old and new values of a row that was changed without one, by plain SQL for example. It runs at the end of the
-- transaction, and looks for a line about one of the row's columns that the trigger names, or about its partner. Before Postgres has
-- counted the rows of "change_log", it would read all of them for each changed row: an import of 5,000 products would take minutes.
CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET enable_seqscan = off AS $$
DECLARE
  was constant jsonb := coalesce(jsonb_strip_nulls(to_jsonb(OLD)), '{}');
  became constant jsonb := coalesce(jsonb_strip_nulls(to_jsonb(NEW)), '{}');
  present constant jsonb := was || became;
  subjects constant text[] := ARRAY(SELECT present ->> name FROM unnest(TG_ARGV) name);
  secret constant text[] := '{key_hash,ciphertext}';
  fields jsonb;
BEGIN
  IF was = became OR EXISTS (
    SELECT FROM change_log l
    WHERE (l.subject = ANY (subjects) OR l.details ->> 'partner_id' = present ->> 'partner_id')
      AND l.transaction_id = pg_current_xact_id() AND l.action <> 'rows.change')
  THEN
    RETURN NULL;
  END IF;
  SELECT jsonb_agg(jsonb_build_object('field', name,
      'from', CASE WHEN name = ANY (secret) THEN '"not shown"' ELSE was -> name END,
      'to', CASE WHEN name = ANY (secret) THEN '"not shown"' ELSE became -> name END) ORDER BY name)
    INTO fields FROM jsonb_object_keys(present) name WHERE was -> name IS DISTINCT FROM became -> name;
  INSERT INTO change_log (actor, action, subject, details)
  VALUES (session_user, 'rows.change', coalesce(subjects[1], TG_TABLE_NAME), jsonb_strip_nulls(jsonb_build_object(
    'table', TG_TABLE_NAME, 'change', lower(TG_OP), 'partner_id', present -> 'partner_id')) || jsonb_build_object('fields', fields));
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER partners_logged AFTER INSERT OR UPDATE OR DELETE ON "partners"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('partner_id');
CREATE CONSTRAINT TRIGGER api_keys_logged AFTER INSERT OR UPDATE OR DELETE ON "api_keys"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('key_id');
CREATE CONSTRAINT TRIGGER service_keys_logged AFTER INSERT OR UPDATE OR DELETE ON "service_keys"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('key_id');
CREATE CONSTRAINT TRIGGER lenders_logged AFTER INSERT OR UPDATE OR DELETE ON "lenders"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('lender');
CREATE CONSTRAINT TRIGGER merchants_logged AFTER INSERT OR UPDATE OR DELETE ON "merchants"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('merchant_id');
CREATE CONSTRAINT TRIGGER merchant_partners_logged AFTER INSERT OR UPDATE OR DELETE ON "merchant_partners"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('merchant_id');
CREATE CONSTRAINT TRIGGER products_logged AFTER INSERT OR UPDATE OR DELETE ON "products"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('product_id');
CREATE CONSTRAINT TRIGGER product_versions_logged AFTER INSERT OR UPDATE OR DELETE ON "product_versions"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('product_id');
CREATE CONSTRAINT TRIGGER delivery_pauses_logged AFTER INSERT OR UPDATE OR DELETE ON "delivery_pauses"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('partner_id');
CREATE CONSTRAINT TRIGGER webhook_endpoints_logged AFTER INSERT OR DELETE ON "webhook_endpoints"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('endpoint_id');
-- Not for its health, which workers write.
CREATE CONSTRAINT TRIGGER webhook_endpoints_change_logged AFTER UPDATE ON "webhook_endpoints"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN ((OLD.endpoint_id, OLD.partner_id, OLD.environment, OLD.url, OLD.state, OLD.disabled_reason)
  IS DISTINCT FROM (NEW.endpoint_id, NEW.partner_id, NEW.environment, NEW.url, NEW.state, NEW.disabled_reason))
EXECUTE FUNCTION log_change('endpoint_id');
-- The line about a new encryption key names that.
CREATE CONSTRAINT TRIGGER webhook_secrets_logged AFTER INSERT OR UPDATE OR DELETE ON "webhook_secrets"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('endpoint_id', 'key_id');
CREATE CONSTRAINT TRIGGER webhook_key_pairs_logged AFTER INSERT OR UPDATE OR DELETE ON "webhook_key_pairs"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('key_pair_id', 'key_id');
