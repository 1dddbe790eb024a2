import { randomBytes } from 'node:crypto';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { seedDemo } from '../../dev/seed';
import type { RunningPostgres } from '../../dev/postgres';
import { asRole, migrateWithLogins } from '../../test/support/roles';
import { addPartners } from '../delivery/partners';
import { quoteBody } from '../quote-body';
import { end, startOurs, type Target } from '../targets';
import { API_NODE_ARGS } from '../node-args';
import { storePast, type Past } from './past';

/** A database of the bench with what works on it. */
export interface Side {
  readonly name: string;
  readonly postgresPid: number;
  /** As its owner. */
  readonly owner: Database;
  /** As a worker has them. */
  readonly worker: Database;
  readonly prepared: Database;
  /** As an API process has it for pages. */
  readonly pages: Database;
  readonly api: Target;
  /** Each with a live endpoint. */
  readonly partners: readonly string[];
  close(): Promise<void>;
}

export interface SideOptions {
  readonly name: string;
  readonly postgres: RunningPostgres;
  readonly directory: string;
  readonly past: Past;
  readonly say: (line: string) => void;
}

const ENDPOINTS = 16;

/** Makes a database in the server, fills it, and starts an API process on it. */
export async function openSide({ name, postgres, directory, past, say }: SideOptions): Promise<Side> {
  const closers: (() => Promise<unknown>)[] = [];
  const open = (url: string, more: Partial<Parameters<typeof connectDatabase>[0]> = {}) => {
    const shared = { poolSize: 8, applicationName: `pfqs bench ${name}`, statementTimeoutMs: 0 };
    const database = connectDatabase({ url, ...shared, ...more });
    closers.push(() => database.close());
    return database;
  };
  const server = open(postgres.url, { poolSize: 1 });
  await server.sql.unsafe(`create database ${name}`);
  const own = new URL(postgres.url);
  own.pathname = `/${name}`;
  const url = own.href;
  await migrateWithLogins(url);
  const owner = open(url);
  const { partnerId, apiKeys } = await seedDemo(url, undefined);
  const keyRing = parseKeyRing(`bench:${randomBytes(32).toString('base64')}`);
  const urls = Array.from({ length: ENDPOINTS }, (_, at) => `https://partner-${at + 1}.example/hook`);
  const partners = await addPartners(owner, keyRing, urls);
  say(`${name}: storing ${past.quotes} quotes and ${past.notifications} notifications`);
  await storePast(owner, partners, past, (line) => say(`${name}: ${line}`));
  const body = quoteBody(partnerId, 'M1000002');
  const api = await startOurs({
    databaseUrl: url,
    directory,
    nodeArgs: API_NODE_ARGS,
    body,
    key: apiKeys.test,
  });
  closers.push(() => end(api));
  return {
    name,
    postgresPid: postgres.pid,
    owner,
    worker: open(asRole(url, 'worker')),
    prepared: open(asRole(url, 'worker'), { plannedOnce: true }),
    pages: open(asRole(url, 'api'), { poolSize: 2, byIndex: true }),
    api,
    partners,
    async close() {
      for (const closer of closers.toReversed()) await closer();
    },
  };
}
