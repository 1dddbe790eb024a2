-- Keeps every change of the rows that the model knows, for test/model/tools/trace.ts. For databases of tests only.
CREATE TABLE model_changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tx text NOT NULL DEFAULT pg_current_xact_id()::text,
  moment float8 NOT NULL DEFAULT extract(epoch from service_now()) * 1000,
  login text NOT NULL DEFAULT session_user,
  about text NOT NULL,
  was jsonb,
  now jsonb
);

-- A row is locked when its line gets a number, so the lines of one row have the order of its changes.
CREATE FUNCTION keep_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO model_changes (about, was, now) VALUES (
    TG_ARGV[0],
    CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - 'body' - 'answer' END,
    CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - 'body' - 'answer' END);
  RETURN NULL;
END $$;

CREATE FUNCTION forget_changes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM model_changes WHERE about NOT IN ('endpoint', 'pause');
  RETURN NULL;
END $$;

CREATE TRIGGER keep_change AFTER INSERT OR UPDATE OR DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION keep_change('delivery');
CREATE TRIGGER keep_change AFTER INSERT OR UPDATE OR DELETE ON notifications FOR EACH ROW EXECUTE FUNCTION keep_change('notification');
CREATE TRIGGER keep_change AFTER INSERT OR UPDATE OR DELETE ON delivery_attempts FOR EACH ROW EXECUTE FUNCTION keep_change('attempt');
CREATE TRIGGER keep_change AFTER INSERT OR UPDATE OR DELETE ON monthly_counts FOR EACH ROW EXECUTE FUNCTION keep_change('count');
CREATE TRIGGER keep_change AFTER INSERT OR UPDATE OR DELETE ON delivery_pauses FOR EACH ROW EXECUTE FUNCTION keep_change('pause');
CREATE TRIGGER keep_change AFTER INSERT OR UPDATE OR DELETE ON webhook_endpoints FOR EACH ROW EXECUTE FUNCTION keep_change('endpoint');
CREATE TRIGGER forget_changes AFTER TRUNCATE ON notifications FOR EACH STATEMENT EXECUTE FUNCTION forget_changes();
