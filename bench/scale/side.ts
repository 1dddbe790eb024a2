import { parseKeyRing } from '../../db/endpoints/key-ring';
import type { Database } from '../../db/postgres/connect';
import type { RunningPostgres } from '../../dev/postgres';
import { seedDemo } from '../../dev/seed';
import { newKeyRingText } from '../../testbed/notifications';
import { asRole, migrateWithLogins } from '../../testbed/roles';
import { quoteBody, startOurs } from '../harness/api';
import type { Bench } from '../harness/bench';
import { storePast, type Past } from '../harness/past';
import { say } from '../../testbed/say';
import { openDatabase } from '../harness/stage';
import { addPartners } from '../harness/stored';

/** A database of the bench with what works on it. */
export type Side = Awaited<ReturnType<typeof openSide>>;

export interface SideOptions {
  readonly name: string;
  readonly postgres: RunningPostgres;
  /** Its first database. */
  readonly server: Database;
  readonly past: Past;
}

const ENDPOINTS = 16;

/** Makes a database in the server, fills it, and starts an API process on it. */
export async function openSide(bench: Bench, { name, postgres, server, past }: SideOptions) {
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
    /** As a worker has it. */
    prepared: open(asRole(url, 'worker'), { byIndex: true }),
    /** As an API process has it for pages. */
    pages: open(asRole(url, 'api'), { poolSize: 2, byIndex: true }),
    api,
    /** Each with a live endpoint. */
    partners,
  };
}
