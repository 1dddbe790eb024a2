import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ForeignSchema, migrateDatabase, separationNotice } from '../../db/postgres/migrate';
import { prepareExternalTemporal } from '../../runtime/temporal/namespace';
import { seedDemo } from '../seed';
import { startPostgres, stopLeftovers, type RunningPostgres } from '../postgres';
import { adviceOn, databaseAdvice, StackFailure, stoppedWhileStarting } from '../failure';
import { lockInstance } from '../locks';
import { stopTemporalLeftovers } from '../temporal';
import { checkPorts, stackPorts, type WantedPort } from '../ports';
import { startShop } from '../shop';
import {
  ensureCertificates,
  ensureDatabase,
  ensureLoginPasswords,
  ensurePassword,
  oneLogin,
  readStackFile,
  writeStackFile,
} from './data';
import { createProgress, welcome } from './progress';
import { temporalDir, tryTemporal, type StackTemporal } from './temporal';
import type { Stack, StackInfo, StackOptions } from './types';

export { ensureWebhookKeys } from './data';
export { runStack } from './run';
export type { DemoData, StackInfo } from './types';

/**
 * Brings the whole stack up on one machine: Postgres, schema, demo data, certificate, shop, services; writes DATA_DIR/stack.json. Temporal
 * and the worker come beside it, because the first start of Temporal may take minutes, and it may be missing. Data, keys and certificates
 * survive a restart.
 * @throws StackFailure when a person has to do something; whatever was started has been stopped.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { config, keyRing, signal } = options;
  const { API_PORT: apiPort, INTERNAL_PORT: internalPort, DATABASE_URL: given } = config;
  const dataDir = resolve(config.DATA_DIR);
  const ports = stackPorts(config.STACK_PORT);
  const externalTemporal = prepareExternalTemporal(config);
  const postgresDir = join(dataDir, 'postgres');
  const addresses = {
    apiUrl: `https://localhost:${apiPort}`,
    internalUrl: `http://127.0.0.1:${internalPort}`,
  };
  const lock = await lockInstance(dataDir, addresses.apiUrl, (line) => options.write(`${line}\n`));
  const steps = given === undefined ? 6 : 5;
  const progress = createProgress((text) => options.write(text), steps);
  const closers: (() => Promise<void>)[] = [() => lock.release()];
  const leaving = new AbortController();
  const stop = createStop(() => {
    lock.markStopping();
    leaving.abort();
  }, closers);
  const note = (text: string) => progress.note(text);
  const announce = (text: string) => options.write(`${text}\n`);
  let server: RunningPostgres | undefined;
  let ownTemporal: StackTemporal['server'] | undefined;
  options.killSignal.addEventListener('abort', () => {
    server?.kill();
    ownTemporal?.kill();
  });

  const step = <T>(name: string, task: () => Promise<T>) => {
    signal.throwIfAborted();
    return progress.step(name, task);
  };
  try {
    // Before the ports: what a killed run left holds some of them.
    if (given === undefined) await stopLeftovers(postgresDir, note);
    await stopTemporalLeftovers(temporalDir(dataDir), note);
    await checkPorts([
      { setting: 'API_PORT', host: config.API_HOST, port: apiPort },
      { setting: 'INTERNAL_PORT', host: config.INTERNAL_HOST, port: internalPort },
      ...(given === undefined ? [embedded(ports.postgres)] : []),
      ...(externalTemporal ? [] : [ports.temporal, ports.temporalPage]).map(embedded),
      embedded(ports.shop),
    ]);
    // From the first second, because it may have to be built.
    const stopping = AbortSignal.any([signal, leaving.signal]);
    const temporal = tryTemporal(config, externalTemporal, dataDir, { note, announce, signal: stopping });
    temporal.then(
      (found) => (ownTemporal = found?.server),
      () => undefined,
    );
    closers.push(async () => {
      const found = await temporal.catch(() => undefined);
      await found?.server?.stop();
    });
    if (given === undefined) {
      const password = await ensurePassword(dataDir);
      const own = await step('Postgres', () =>
        startPostgres({
          dataDir: postgresDir,
          port: ports.postgres,
          password,
          onProgress: note,
          signal,
        }),
      );
      closers.push(() => own.stop());
      server = own;
    }
    const urls = given
      ? oneLogin(given)
      : await ensureDatabase(server?.url ?? '', await ensureLoginPasswords(dataDir));
    await step('Database schema', () => migrate(urls.migrate, note, given));
    const known = await readStackFile(dataDir);
    const demo = await step('Demo partner, keys, merchants and products', () =>
      seedDemo(urls.ops, known, { url: `https://localhost:${ports.shop}/webhooks`, keyRing }),
    );
    const tls = await step('Development certificate', () =>
      ensureCertificates(join(dataDir, 'tls'), new Date()),
    );
    const partner = {
      apiUrl: addresses.apiUrl,
      ca: readFileSync(tls.caFile, 'utf8'),
      partnerId: demo.partnerId,
      apiKey: demo.apiKeys.test,
    };
    const pem = { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) };
    const shop = await step('Demo shop', () =>
      startShop({
        port: ports.shop,
        tls: pem,
        partner,
        liveKey: demo.apiKeys.live,
        merchants: demo.merchants,
      }),
    );
    closers.push(() => shop.close());
    closers.push(await step('API', () => options.startServices({ databaseUrl: urls.api, tls })));
    const info: StackInfo = {
      ...addresses,
      databaseUrl: urls.ops,
      caFile: tls.caFile,
      temporalAddress: null,
      temporalUiUrl: null,
      receiverUrl: shop.url,
      shopUrl: shop.url,
      ...demo,
    };
    await writeStackFile(dataDir, info);
    signal.throwIfAborted();
    options.write(welcome(info));
    let worker: Awaited<ReturnType<StackOptions['startWorker']>> | undefined;
    const webhooks = temporal.then(async (found) => {
      if (!found) return;
      worker = await options.startWorker({ databaseUrl: urls.worker, tls });
      const temporalUiUrl = found.server?.uiUrl ?? null;
      await writeStackFile(dataDir, { ...info, temporalAddress: found.address, temporalUiUrl });
      if (worker.ready) announce(`Webhooks work now. Temporal: ${temporalUiUrl ?? found.address}`);
    });
    closers.push(async () => {
      await webhooks.catch(() => undefined);
      await worker?.stop();
    });
    return { broken: Promise.race([endOf(server), faultOf(webhooks)]), stop };
  } catch (error) {
    await stop();
    throw signal.aborted ? stoppedWhileStarting() : error;
  }
}

/** Everything in reverse order, whatever one of them says. */
function createStop(announce: () => void, closers: readonly (() => Promise<void>)[]): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stopAll = async () => {
    const faults: unknown[] = [];
    announce();
    for (const close of closers.toReversed())
      await close().catch((error: unknown) => void faults.push(error));
    if (faults.length > 0) throw faults[0];
  };
  return () => (stopping ??= stopAll());
}

/** Resolves when the embedded Postgres ends by itself. */
async function endOf(server: RunningPostgres | undefined): Promise<Error> {
  if (!server) return new Promise<never>(() => undefined);
  await server.exited;
  return new StackFailure(`Postgres has ended by itself. Its log is ${server.logFile}.`);
}

/** Resolves when the worker could not be started. */
async function faultOf(webhooks: Promise<void>): Promise<Error> {
  return webhooks.then(
    () => new Promise<never>(() => undefined),
    (error: Error) => error,
  );
}

/**
 * @param given of the database that somebody has named, if that is it.
 * @throws StackFailure for a database that cannot be brought up to date: its message says what to do.
 */
async function migrate(
  databaseUrl: string,
  note: (text: string) => void,
  given: string | undefined,
): Promise<void> {
  try {
    const { notSeparated, changes } = await migrateDatabase(databaseUrl);
    for (const change of changes) note(change);
    if (notSeparated.length > 0) note(separationNotice(notSeparated));
  } catch (error) {
    const advice =
      error instanceof ForeignSchema
        ? error.message
        : given && adviceOn(error) === undefined && databaseAdvice(error, given);
    throw advice ? new StackFailure(advice) : error;
  }
}

const embedded = (port: number): WantedPort => ({ setting: 'STACK_PORT', host: '127.0.0.1', port });

/** Waits until a check passes, the signal aborts or the time is over: whatever it waits for keeps trying by itself. */
export async function untilReady(
  check: () => Promise<void>,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const deadline = Date.now() + options.timeoutMs;
  while (!options.signal.aborted && Date.now() < deadline) {
    try {
      await check();
      return true;
    } catch {
      await sleep(100);
    }
  }
  return false;
}
