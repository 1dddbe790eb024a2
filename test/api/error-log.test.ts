import { startTestApi, type TestApi } from '../support/api';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

test('a quote that the database refuses is logged by SQLSTATE and table, without what the caller sent', async () => {
  await api.database.sql.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'value4711 %', to_jsonb(new) using detail = 'value4711', hint = 'value4711', table = 'quotes';
    end $$;
    create trigger refuse before insert on quotes for each row execute function refuse()`);
  const { status } = await api.quote({ merchant_reference: 'words4711' });
  expect(status).toBe(500);
  const log = api.logs.join('');
  expect(log).toMatch(
    /"type":"PostgresError","message":"refused by Postgres","code":"P0001","table":"quotes"/,
  );
  expect(log).not.toMatch(/4711|insert into/i);
});
