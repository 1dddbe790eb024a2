import { migrateDatabase, separationNotice } from '../db/postgres/migrate';
import { misspelt, readConfig, retentionDays } from '../runtime/config/config';
import { main } from './main';

const HELP = {
  usage: 'node dist/bin/migrate.js [--shorten-retention]',
  purpose:
    'Brings the schema of DATABASE_URL up to date, and ends. Keeps data as long as RETENTION_* say; shorter than now only with --shorten-retention.',
};

main('migrate', HELP, async () => {
  const config = readConfig();
  for (const slip of misspelt()) console.warn(`migrate: ${slip}`);
  const { DATABASE_URL } = config;
  if (DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set.');
  const { notSeparated, changes } = await migrateDatabase(DATABASE_URL, undefined, {
    days: retentionDays(config),
    shorten: process.argv.includes('--shorten-retention'),
  });
  console.log('migrate: the schema is up to date');
  for (const change of changes) console.warn(`migrate: ${change}`);
  if (notSeparated.length > 0) console.warn(`migrate: ${separationNotice(notSeparated)}`);
});
