import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { warnOfOldNode } from '../../runtime/process';
import { openTogether, type Closers } from '../../runtime/closers';
import { startApi } from '../../api/start-api';
import { readConfig } from '../../runtime/config/config';
import { createLogger } from '../../runtime/telemetry/logger';
import { openTestDatabase } from '../support/database';
import { until } from '../../testbed/until';
import { createTestTls } from '../../testbed/tls';

const opener = (closed: string[], fails?: string) => async (closers: Closers) => {
  for (const name of ['pool', 'feed', 'listener']) {
    closers.add(async () => {
      await Promise.resolve();
      closed.push(name);
      if (name === fails) throw new Error(`${name} does not close`);
    });
  }
  return closers;
};

it('closes in the opposite order, once, however often it is asked', async () => {
  const closed: string[] = [];
  const closers = await openTogether(opener(closed));
  expect(closed).toEqual([]);
  await Promise.all([closers.close(), closers.close()]);
  await closers.close();
  expect(closed).toEqual(['listener', 'feed', 'pool']);
});

it('closes the rest when one does not close, and says which', async () => {
  const closed: string[] = [];
  const closers = await openTogether(opener(closed, 'feed'));
  await expect(closers.close()).rejects.toThrow('feed does not close');
  expect(closed).toEqual(['listener', 'feed', 'pool']);
});

it('closes what is open when something cannot be opened, and throws why', async () => {
  const closed: string[] = [];
  const failing = openTogether(async (closers) => {
    await opener(closed, 'feed')(closers);
    throw new Error('the port is taken');
  });
  await expect(failing).rejects.toThrow('the port is taken');
  expect(closed).toEqual(['listener', 'feed', 'pool']);
});

it('closes what an API process has opened when one of its ports is taken', async () => {
  const database = await openTestDatabase({ poolSize: 1 });
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
      databaseUrl: database.url,
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
  }
});

test.each([
  ['21.7.3', 1],
  ['22.23.0', 0],
  ['26.0.0', 0],
])('a process on Node %s logs %i warnings that it is out of support', (version, count) => {
  const warn = jest.fn();
  warnOfOldNode({ warn }, version);
  const warning = [{ node: version }, expect.stringContaining('use Node 24')];
  expect(warn.mock.calls).toEqual(Array.from({ length: count }, () => warning));
});
