import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { connectDatabase } from '../../db/postgres/connect';
import { startApi } from '../../api/start-api';
import { readConfig } from '../../runtime/config/config';
import { createLogger } from '../../runtime/telemetry/logger';
import { createTestDatabase } from '../support/database';
import { until } from '../support/delivery';
import { createTestTls } from '../support/tls';

it('closes what an API process has opened when one of its ports is taken', async () => {
  const clone = await createTestDatabase();
  const database = connectDatabase({
    url: clone.url,
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: 0,
  });
  const other = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const taken = (other.address() as AddressInfo).port;
  const connections = async () => {
    const rows = await database.sql`
      select application_name from pg_stat_activity
      where datname = current_database() and application_name like 'pfqs api%'`;
    return rows.length;
  };
  try {
    const starting = startApi({
      config: readConfig({ SHUTDOWN_DELAY_MS: '600000' }),
      databaseUrl: clone.url,
      tls: await createTestTls(),
      logger: createLogger({ LOG_LEVEL: 'info' }, { write: () => undefined }),
      ports: { api: 0, internal: taken },
    });
    await expect(starting).rejects.toThrow('EADDRINUSE');
    // The server notes the end of a connection a moment later.
    await until(async () => (await connections()) === 0, 'no connection is left');
  } finally {
    other.close();
    await database.close();
    await clone.close();
  }
});
