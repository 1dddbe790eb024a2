import { parseKeyRing } from '../../db/endpoints/key-ring';
import type { Database } from '../../db/postgres/connect';
import type { RunningPostgres } from '../../dev/postgres';
import { seedDemo } from '../../dev/seed';
import { newKeyRingText } from '../../test/support/notifications';
import { asRole, migrateWithLogins } from '../../test/support/roles';
import { quoteBody, startOurs, type Target } from '../harness/api';
import type { Bench } from '../harness/bench';
import { storePast, type Past } from '../harness/past';
import { say } from '../harness/report';
import { openDatabase } from '../harness/stage';
import { addPartners } from '../harness/stored';

/** A database of the bench with what works on it. */
export interface Side {
  readonly postgresPid: number;
  /** As its owner. */
  readonly owner: Database;
  /** As a worker has it. */
  readonly prepared: Database;
  /** As an API process has it for pages. */
  readonly pages: Database;
  readonly api: Target;
  /** Each with a live endpoint. */
  readonly partners: readonly string[];
}

export interface SideOptions {
  readonly name: string;
  readonly postgres: RunningPostgres;
  /** Its first database. */
  readonly server: Database;
  readonly past: Past;
}

const ENDPOINTS = 16;

/** Makes a database in the server, fills it, and starts an API process on it. */
export async function openSide(bench: Bench, { name, postgres, server, past }: SideOptions): Promise<Side> {
  const open = (url: string, more: Parameters<typeof openDatabase>[2] = {}) =>
    openDatabase(bench, url, { poolSize: 8, ...more });
  await server.sql.unsafe(`create database ${name}`);
  const own = new URL(postgres.url);
  own.pathname = `/${name}`;
  const url = own.href;
  await migrateWithLogins(url);
  const owner = open(url);
  const { partnerId, apiKeys } = await seedDemo(url, undefined);
  const urls = Array.from({ length: ENDPOINTS }, (_, at) => `https://partner-${at + 1}.example/hook`);
  const partners = await addPartners(owner, parseKeyRing(newKeyRingText()), urls);
  say(`${name}: storing ${past.quotes} quotes and ${past.notifications} notifications`);
  await storePast(owner, partners, past);
  const body = quoteBody(partnerId, 'M1000002');
  const api = await startOurs(bench, { databaseUrl: url, body, key: apiKeys.test });
  return {
    postgresPid: postgres.pid,
    owner,
    prepared: open(asRole(url, 'worker'), { plannedOnce: true }),
    pages: open(asRole(url, 'api'), { poolSize: 2, byIndex: true }),
    api,
    partners,
  };
}
