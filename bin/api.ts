import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { migrateDatabase, separationNotice } from '../db/postgres/migrate';
import { describeConfig, misspelt, readConfig, retentionDays } from '../runtime/config/config';
import { warnOfOldNode, runUntilSignal } from '../runtime/process';
import { createLogger } from '../runtime/telemetry/logger';
import { startApi } from '../api/start-api';
import { main } from './main';

const HELP = {
  usage: 'node dist/bin/api.js [--migrate]',
  purpose:
    'One API process on an existing Postgres; --migrate brings the schema up to date first. SIGHUP reads the certificate again, SIGTERM stops it in order.',
};

main('api', HELP, async () => {
  const config = readConfig();
  const logger = createLogger(config);
  logger.info(describeConfig(config), 'api: settings');
  for (const slip of misspelt()) logger.warn(`api: ${slip}`);
  warnOfOldNode(logger, process.versions.node);
  if (config.DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set.');
  if (process.argv.includes('--migrate')) {
    const { notSeparated, changes } = await migrateDatabase(config.DATABASE_URL, undefined, {
      days: retentionDays(config),
      shorten: false,
    });
    for (const change of changes) logger.warn(`migrate: ${change}`);
    if (notSeparated.length > 0) logger.warn({ notSeparated }, `migrate: ${separationNotice(notSeparated)}`);
  }
  const readTls = () => {
    const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } = config;
    if (cert === undefined || key === undefined) return null;
    try {
      const files = { cert: readFileSync(cert), key: readFileSync(key) };
      createSecureContext(files);
      return files;
    } catch (error) {
      const { message } = error as Error;
      throw new Error(`TLS_CERT_FILE (${cert}) and TLS_KEY_FILE (${key}): ${message}`, { cause: error });
    }
  };
  const tls = readTls();
  if (tls === null && config.TRUSTED_PROXIES.length === 0)
    throw new Error(
      'HTTPS is required: set TLS_CERT_FILE and TLS_KEY_FILE, or name a proxy in TRUSTED_PROXIES.',
    );
  const api = await startApi({
    config,
    databaseUrl: config.DATABASE_URL,
    tls,
    logger,
    ports: { api: config.API_PORT, internal: config.INTERNAL_PORT },
  });
  logger.info({ apiPort: api.apiPort, internalPort: api.internalPort }, 'api: listening');
  const onHangUp = () => {
    const renewed = readTls();
    if (renewed !== null) api.useCertificate(renewed);
  };
  runUntilSignal({ close: () => api.close(), onHangUp }, logger);
});
