import { sql } from 'drizzle-orm';
import { appendChange, appendChanges, listChanges } from '../../../db/audit/change-log';
import { useDatabase } from '../../support/database';

const database = useDatabase({ poolSize: 2 });

const REVOKED = { actor: 'tester', action: 'keys.revoke', details: { state: 'revoked' } };
const change = (subject: string) => ({ ...REVOKED, subject });

test('keeps changes, newest first, and finds them by subject, actor and action', async () => {
  await appendChange(database.db, change('key_1'));
  const many = Array.from({ length: 2_500 }, () => ({ ...change('many'), actor: 'other' }));
  await appendChanges(database.db, many);
  await appendChange(database.db, change('key_2'));
  expect(await listChanges(database.db, { limit: 2 })).toMatchObject([
    { subject: 'key_2' },
    { subject: 'many' },
  ]);
  expect(await listChanges(database.db, { subject: 'key_1', limit: 10 })).toEqual([
    { changeId: 1, changedAt: expect.any(Date), login: 'postgres', ...change('key_1') },
  ]);
  expect(await listChanges(database.db, { actor: 'other', limit: 5_000 })).toHaveLength(2_500);
  expect(await listChanges(database.db, { action: 'keys.create', limit: 10 })).toEqual([]);
});

const FORBIDDEN = [`update change_log set actor = 'nobody'`, 'delete from change_log', 'truncate change_log'];
test.each(FORBIDDEN)('refuses: %s', async (statement) => {
  await expect(database.db.execute(sql.raw(statement))).rejects.toMatchObject({
    cause: { message: 'change_log is append-only' },
  });
  expect(await listChanges(database.db, { subject: 'key_1', limit: 10 })).toHaveLength(1);
});
