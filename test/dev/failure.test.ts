import { adviceOn, databaseAdvice } from '../../dev/failure';
import { migrateDatabase } from '../../db/postgres/migrate';
import { readConfig } from '../../runtime/config/config';
import { freePort } from '../../dev/ports';
import { testServerUrl } from '../support/database';

const caught = (task: () => unknown): Promise<unknown> =>
  Promise.resolve()
    .then(task)
    .then(
      () => undefined,
      (error: unknown) => error,
    );

test('names every setting at fault, and where they are described', async () => {
  const error = await caught(() => readConfig({ API_PORT: 'abc', STACK_PORT: '99999' }));
  expect(adviceOn(error)).toMatch(/API_PORT: .*\n.*STACK_PORT: .*\nCorrect them as docs\/settings\.md says/);
});

test('an error that nobody foresaw keeps its trace', () => {
  expect(adviceOn(new TypeError('x is not a function'))).toBeUndefined();
});

test('says why a database that was named cannot be used, without its password', async () => {
  const port = await freePort();
  const refused = `postgres://somebody:hidden@127.0.0.1:${port}/quotes`;
  const error = await caught(() => migrateDatabase(refused));
  expect(databaseAdvice(error, refused)).toBe(
    `The database 127.0.0.1:${port}/quotes cannot be used: nobody listens there. Correct DATABASE_URL or the server, or leave it out for an embedded one.`,
  );
  const missing = new URL(testServerUrl());
  missing.pathname = '/no_such_database';
  expect(databaseAdvice(await caught(() => migrateDatabase(missing.href)), missing.href)).toMatch(
    /no_such_database cannot be used: there is no such database\./,
  );
  missing.password = 'wrong';
  expect(databaseAdvice(await caught(() => migrateDatabase(missing.href)), missing.href)).toMatch(
    /refuses the password/,
  );
});
