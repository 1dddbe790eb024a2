import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import postgres from 'postgres';
import { buildPackage } from '../../clients/typescript/test/built-package';
import { startPostgres } from '../../dev/postgres';
import { collectEmitted, searchEmitted } from '../../testbed/emitted';
import { freePort } from '../../dev/ports';
import { compileProduct } from './compiled';
import { rememberNeeds, reportMissing } from './needs';
import { offerOnDemand } from './on-demand';
import { temporalOfRun } from './temporal-run';
import { migrateWithLogins } from '../../testbed/roles';
import { SERVER_URL } from './database';
import { RUN_DIRECTORY } from '../../testbed/temporary-directory';
import { createTestTls } from '../../testbed/tls';
import { watchedDirectory } from '../../testbed/watchdog';

/**
 * Once per test run: one Postgres for all files, and the migrated template that every test database is cloned from. One
 * Temporal, one workflow bundle, one build of the client, when a file asks for them.
 */
// oxlint-disable-next-line import/no-default-export -- Jest asks for one.
export default async function globalSetup(): Promise<void> {
  const { directory, remove } = await watchedDirectory('tests');
  process.env[RUN_DIRECTORY] = directory;
  collectEmitted(join(directory, 'emitted'));
  rememberNeeds(join(directory, 'needs'));
  const server = await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: await freePort(),
    password: randomBytes(12).toString('hex'),
    settings: {
      // Nothing here outlives the run. Tests about durability use startOwnPostgres.
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      autovacuum: 'off',
      max_connections: 200,
      shared_buffers: '64MB',
      // The usual 4,096 cost each connection milliseconds of the test's process.
      scram_iterations: '1',
    },
  });
  const temporal = temporalOfRun(directory);
  const built = join(directory, 'client');
  const client = async () => {
    buildPackage(built);
    return { built };
  };
  const withdraw = await offerOnDemand({
    ...temporal.starters,
    client,
    compiled: () => compileProduct(directory),
    tls: () => createTestTls(),
  });
  const stop = async () => {
    await withdraw();
    await Promise.all([server.stop(), temporal.stop()]);
    await remove();
  };
  /** What was emitted is searched when all has ended: a secret in it fails the run. */
  const end = async () => {
    try {
      await temporal.emit();
      const searched = Object.entries(searchEmitted()).map(([source, size]) => `${source} ${size}`);
      process.stderr.write(`No secret in what was emitted (characters): ${searched.join(', ')}\n`);
      process.stderr.write(reportMissing() ?? '');
    } finally {
      await stop();
    }
  };
  await createTemplate(server.url).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  process.env[SERVER_URL] = server.url;
  // Tear-down is in the same process, but not always of the same module registry.
  Object.assign(globalThis, { pfqsEndOfRun: end });
}

async function createTemplate(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    await sql`create database template_quotes`;
    const template = new URL(url);
    // Its verifier was made before the server had these settings.
    await sql.unsafe(`alter role current_user password '${template.password}'`);
    template.pathname = '/template_quotes';
    await migrateWithLogins(template.href);
    // Nobody may connect to it: a clone needs a source without sessions.
    await sql`alter database template_quotes with is_template true allow_connections false`;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
