import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { CATALOGUE_CHANNEL } from '../../../../db/postgres/change-feed';
import type { Database } from '../../../../db/postgres/connect';
import { migrateDatabase } from '../../../../db/postgres/migrate';
import { catalogueFeed, openDatabaseAt } from '../../../support/database';
import { until } from '../../../../testbed/until';
import { startOwnPostgres, type OwnPostgres } from '../../../../testbed/own-postgres';

let leader: OwnPostgres;
let standby: OwnPostgres;
const opened: { close(): unknown }[] = [];

async function startPair(): Promise<void> {
  await closePair();
  [leader, standby] = await Promise.all([startOwnPostgres(), startOwnPostgres()]);
  await Promise.all([addTwin(leader), addTwin(standby)]);
  await markAsStandby(standby);
  await standby.stop();
  await standby.start();
}
const closePair = () => Promise.all([leader?.close(), standby?.close()]);
beforeAll(startPair);
afterEach(async () => void (await Promise.all(opened.splice(0).map((one) => one.close()))));
afterAll(closePair);

async function asAdmin(server: OwnPostgres, text: string): Promise<void> {
  const admin = openDatabaseAt(server.url);
  await admin.sql.unsafe(text);
  await admin.close();
}
/** A login that is the same on both. */
const addTwin = (server: OwnPostgres) => asAdmin(server, "create role twin superuser login password 'twin'");
/** At its next start it recovers, from nowhere: it can be read, and takes no writes until it is promoted. */
const markAsStandby = (server: OwnPostgres) =>
  asAdmin(server, "copy (select 1) to program 'cat >/dev/null; touch standby.signal'");
const promote = (server: OwnPostgres) => asAdmin(server, 'select pg_promote()');

const urlOf = (servers: readonly { readonly port: number }[], parameters = '') =>
  `postgres://twin:twin@${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}/postgres${parameters}`;

function connect(url: string, poolSize = 3): Database {
  const database = openDatabaseAt(url, { poolSize, statementTimeoutMs: 2_000 });
  opened.push(database);
  return database;
}
const serverOf = async ({ sql }: Database) => (await sql`select inet_server_port() as port`)[0]?.['port'];
const finds = (database: Database, { port }: OwnPostgres) =>
  until(async () => (await serverOf(database).catch(() => 0)) === port, `${port} is found`);

test('each connection is to the server that takes writes, wherever it stands in the list', async () => {
  for (const servers of [
    [leader, standby],
    [standby, leader],
  ])
    for (const parameters of ['', '?target_session_attrs=read-write', '?target_session_attrs=primary']) {
      const database = connect(urlOf(servers, parameters));
      const ports = await Promise.all(Array.from({ length: 9 }, () => serverOf(database)));
      expect(new Set(ports)).toEqual(new Set([leader.port]));
    }
  expect(await serverOf(connect(urlOf([standby, leader], '?target_session_attrs=any')))).toBe(standby.port);
  await expect(migrateDatabase(urlOf([standby, leader]))).resolves.toMatchObject({ notSeparated: [] });
});

test('a single standby is refused where a leader is asked for, and read where none is', async () => {
  const asked = connect(urlOf([standby], '?target_session_attrs=read-write'));
  for (let times = 0; times < 3; times += 1)
    await expect(serverOf(asked)).rejects.toThrow(
      `no server of 127.0.0.1:${standby.port} takes writes: 127.0.0.1:${standby.port} is a standby`,
    );
  expect(await serverOf(connect(urlOf([standby])))).toBe(standby.port);
});

test('servers that take connections and close them are not asked without end', async () => {
  let connections = 0;
  const closing = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  opened.push({ close: () => closing.close() });
  await once(closing, 'listening');
  const at = closing.address() as AddressInfo;
  await expect(serverOf(connect(urlOf([at, at]), 1))).rejects.toThrow(/\w/);
  expect(connections).toBeLessThan(10);
});

describe('when the leader is lost', () => {
  beforeEach(startPair);

  test('while no server takes writes each statement fails with the reason; then the one that was promoted is used', async () => {
    const database = connect(urlOf([leader, standby]));
    expect(await serverOf(database)).toBe(leader.port);
    await markAsStandby(leader);
    await leader.kill();
    await leader.start();
    // The first finds out that its connection is gone.
    await Promise.allSettled(Array.from({ length: 6 }, () => serverOf(database)));
    await expect(serverOf(database)).rejects.toThrow(/takes writes: .* is a standby/);
    await promote(standby);
    await finds(database, standby);
    const ports = await Promise.all(Array.from({ length: 9 }, () => serverOf(database)));
    expect(new Set(ports)).toEqual(new Set([standby.port]));
  });

  test('a leader that is frozen is left for the one that was promoted, and not used when it is thawed', async () => {
    const database = connect(urlOf([leader, standby]));
    await Promise.all(Array.from({ length: 9 }, () => serverOf(database)));
    await leader.freeze();
    await promote(standby);
    await finds(database, standby);
    await leader.unfreeze();
    for (let times = 0; times < 20; times += 1) expect(await serverOf(database)).toBe(standby.port);
  });

  test('a transaction whose leader dies is not carried on with the next one', async () => {
    const database = connect(urlOf([leader, standby]), 1);
    await promote(standby);
    for (const server of [leader, standby]) await asAdmin(server, 'create table told (what text)');
    await expect(
      database.sql.begin(async (tx) => {
        await tx`insert into told values ('first')`;
        await leader.kill();
        await tx`insert into told values ('second')`;
      }),
    ).rejects.toThrow(/\w/);
    await finds(database, standby);
    expect(await database.sql`select what from told`).toHaveLength(0);
  });

  test('the change feed follows the leader', async () => {
    const heard: string[] = [];
    const feed = catalogueFeed(urlOf([leader, standby]), (subject) => heard.push(subject));
    opened.push(feed);
    await until(() => feed.trusted(), 'the feed is trusted', 30_000);
    await leader.kill();
    await until(() => !feed.trusted(), 'the feed is not trusted any more');
    await promote(standby);
    await until(() => feed.trusted(), 'the feed is trusted again');
    await asAdmin(standby, `select pg_notify('${CATALOGUE_CHANNEL}', 'merchant:M100001')`);
    await until(() => heard.includes('merchant:M100001'), 'it is heard');
  });
});
