import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { CATALOGUE_CHANNEL, openChangeFeed } from '../../db/postgres/change-feed';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { migrateDatabase } from '../../db/postgres/migrate';

/** The run's Postgres: its address is in the environment, as test files live in other processes. */
export const SERVER_URL = 'PFQS_TEST_POSTGRES';

export function testServerUrl(): string {
  const url = process.env[SERVER_URL];
  if (!url) throw new Error(`${SERVER_URL} is not set: this runs only under Jest (globalSetup).`);
  return url;
}

export interface TestDatabase {
  readonly url: string;
  /** Drops it, ending whatever is still connected. */
  close(): Promise<void>;
}

/** Any fixed number. Held while a clone is made: Postgres allows one copy of a source at a time. */
const CLONE_LOCK = 5_310_224_871;

/**
 * A migrated database of one's own, cloned from the template in some tens of milliseconds.
 * @param locale with it one that sorts text as this language does, of ICU; it is migrated, in seconds
 */
export async function createTestDatabase(locale?: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await asAdministrator(async (sql) => {
    if (locale !== undefined)
      return void (await sql.unsafe(
        `create database ${name} template template0 locale_provider icu icu_locale '${locale}' locale 'C'`,
      ));
    await sql`select pg_advisory_lock(${CLONE_LOCK})`;
    // file_copy: with fsync off a copy of the files costs less than writing all pages to the log.
    await sql.unsafe(`create database ${name} template template_quotes strategy file_copy`);
  });
  const url = new URL(testServerUrl());
  url.pathname = `/${name}`;
  if (locale !== undefined) await migrateDatabase(url.href);
  return {
    url: url.href,
    close: () =>
      asAdministrator(async (sql) => void (await sql.unsafe(`drop database if exists ${name} with (force)`))),
  };
}

/** A connection to a database of one's own. At its end each notification must have exactly one of an end and a row in `deliveries`. */
export interface OpenTestDatabase extends Database {
  readonly url: string;
  /** Ends the connection, and drops the database. */
  close(): Promise<void>;
}

export function openDatabaseAt(
  url: string,
  more: Partial<Parameters<typeof connectDatabase>[0]> = {},
): Database & { readonly url: string } {
  const usual = { poolSize: 1, applicationName: 'test', statementTimeoutMs: 10_000 };
  return { ...connectDatabase({ url, ...usual, ...more }), url };
}

/** Runs what takes its locks in another order than a worker that still records, and after a deadlock once more, three times at most. */
export async function despiteDeadlocks<T>(run: () => PromiseLike<T>, tries = 3): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (tries === 1 || (error as { code?: string }).code !== '40P01') throw error;
    return despiteDeadlocks(run, tries - 1);
  }
}

/** Empties these tables. To truncate one takes a tenth of a second: each partition and each of its indexes is a file. */
export const empty = async ({ sql }: Pick<Database, 'sql'>, ...tables: readonly string[]): Promise<void> =>
  void (await despiteDeadlocks(() => sql.unsafe(tables.map((table) => `delete from ${table}`).join(';'))));

/** Empties what there is of notifications, and these tables. */
export const emptyNotifications = (database: Pick<Database, 'sql'>, ...more: readonly string[]) =>
  empty(
    database,
    'notifications',
    'deliveries',
    'delivery_attempts',
    'monthly_counts',
    'delivery_pauses',
    ...more,
  );

/** Listens for changes of the catalogue, as an API process does. */
export const catalogueFeed = (url: string, onChange: (subject: string) => void) =>
  openChangeFeed({
    database: { url, applicationName: 'test' },
    channels: [CATALOGUE_CHANNEL],
    onConnect: async () => undefined,
    onChange,
    onError: () => undefined,
    monotonicMs: () => performance.now(),
  });

export async function openTestDatabase(
  more: Parameters<typeof openDatabaseAt>[1] = {},
  locale?: string,
): Promise<OpenTestDatabase> {
  const clone = await createTestDatabase(locale);
  const database = openDatabaseAt(clone.url, { poolSize: 4, ...more });
  return {
    ...database,
    async close() {
      try {
        await expectExactlyOne(database);
      } finally {
        await database.close();
        await clone.close();
      }
    },
  };
}

/** A database of the tests of a file: open from its first hook to its last. */
export function useDatabase(options: Parameters<typeof openTestDatabase>[0] = {}): OpenTestDatabase {
  const database = {} as OpenTestDatabase;
  beforeAll(async () => void Object.assign(database, await openTestDatabase(options)));
  afterAll(() => database.close());
  return database;
}

async function asAdministrator(task: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(testServerUrl(), { max: 1, onnotice: () => undefined });
  try {
    await task(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A notification that has both an end and a row in `deliveries`, or neither; a row that belongs to no notification, or to another's. */
export interface Contradiction {
  readonly id: string;
  readonly what: 'both' | 'neither' | 'no notification' | 'another tenant or application';
}

/** What contradicts itself in a database: empty as long as every notification has exactly one of an end and a row. */
export async function contradictions({ sql }: Pick<Database, 'sql'>): Promise<Contradiction[]> {
  return [
    ...(await sql<Contradiction[]>`
      select notification_id as id, what from (
        select notification_id,
          case when n.event_id is null then 'no notification'
            when n.end_state is null and d.state is null then 'neither'
            when n.end_state is not null and d.state is not null then 'both'
            when (n.partner_id, n.environment, n.application_id, n.sequence) is distinct from
              (d.partner_id, d.environment, d.application_id, d.sequence) and d.state is not null
            then 'another tenant or application' end as what
        from notifications n full join deliveries d using (notification_id)) c
      where what is not null order by 1`),
  ];
}

/** @throws when there are any. */
export async function expectExactlyOne(database: Pick<Database, 'sql'>): Promise<void> {
  const found = await contradictions(database);
  if (found.length === 0) return;
  const shown = found.slice(0, 5).map(({ id, what }) => `${id}: ${what}`);
  throw new Error(
    `${found.length} notifications do not have exactly one of an end and a row in deliveries: ${shown.join(', ')}`,
  );
}
