import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ForeignSchema, migrateDatabase, separationNotice } from '../../db/postgres/migrate';
import { startPostgres, stopLeftovers, type RunningPostgres } from '../postgres';
import { adviceOn, databaseAdvice } from '../advice';
import { StackFailure } from '../failure';
import { startReceiver } from '../receiver';
import { stopTemporalLeftovers } from '../temporal';
import { ensureCertificates } from './certificates';
import { ensureDatabase, oneLogin } from './database';
import { ensureLoginPasswords, ensurePassword, readStackFile, writeStackFile } from './files';
import { lockInstance } from './instance-lock';
import { checkPorts, type WantedPort } from '../ports';
import { startDemoShop } from './demo-shop';
import { createProgress } from './progress';
import { temporalDir, tryTemporal, type StackTemporal } from './temporal';
import type { Stack, StackInfo, StackOptions } from './types';

/**
 * Brings the whole stack up on one machine: Postgres, schema, demo data, certificate, receiver, services, shop,
 * Temporal, worker; writes DATA_DIR/stack.json. Temporal comes late, because its first start may take minutes, and it may be
 * missing. Data, keys and certificates survive a restart.
 * @throws StackFailure when a person has to do something; whatever was started has been stopped.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { apiPort, internalPort, ports, apiHost = '127.0.0.1', internalHost = '127.0.0.1' } = options;
  const dataDir = resolve(options.dataDir);
  const postgresDir = join(dataDir, 'postgres');
  const addresses = {
    apiUrl: `https://localhost:${apiPort}`,
    internalUrl: `http://127.0.0.1:${internalPort}`,
  };
  const lock = await lockInstance(dataDir, addresses.apiUrl, (line) => options.write(`${line}\n`));
  const steps = 7 + (options.databaseUrl === undefined ? 1 : 0) + (options.startWorker ? 1 : 0);
  const progress = createProgress((text) => options.write(text), steps, options.redraws);
  const closers: (() => Promise<void>)[] = [() => lock.release()];
  const stop = createStop(() => lock.markStopping(), closers);
  const note = (text: string, moving?: boolean) => progress.note(text, moving);
  let server: RunningPostgres | undefined;
  let temporal: StackTemporal | undefined;
  let up = false;
  options.killSignal?.addEventListener('abort', () => {
    server?.kill();
    temporal?.server?.kill();
  });

  const step = <T>(name: string, task: () => Promise<T>) => {
    options.signal?.throwIfAborted();
    return progress.step(name, task);
  };
  try {
    // Before the ports: what a killed run left holds some of them.
    if (options.databaseUrl === undefined) await stopLeftovers(postgresDir, note);
    await stopTemporalLeftovers(temporalDir(dataDir), note);
    await checkPorts([
      { setting: 'API_PORT', host: apiHost, port: apiPort },
      { setting: 'INTERNAL_PORT', host: internalHost, port: internalPort },
      ...(options.databaseUrl === undefined ? [embedded(ports.postgres)] : []),
      ...(options.temporal.external ? [] : [ports.temporal, ports.temporalPage]).map(embedded),
      ...[ports.receiver, ports.shop].map(embedded),
    ]);
    if (options.databaseUrl === undefined) {
      const password = await ensurePassword(dataDir);
      const { signal } = options;
      const own = await step('Postgres', () =>
        startPostgres({
          dataDir: postgresDir,
          port: ports.postgres,
          password,
          onProgress: note,
          ...(signal && { signal }),
        }),
      );
      closers.push(() => own.stop());
      server = own;
    }
    const urls = options.databaseUrl
      ? oneLogin(options.databaseUrl)
      : await ensureDatabase(server?.url ?? '', await ensureLoginPasswords(dataDir));
    await step('Database schema', () => migrate(urls.migrate, note, options.databaseUrl));
    const known = await readStackFile(dataDir);
    const demo = await step('Demo partner, keys, merchants and products', () =>
      options.seed(urls.ops, known),
    );
    const tls = await step('Development certificate', () =>
      ensureCertificates(join(dataDir, 'tls'), new Date()),
    );
    const opened = options.openReceiverSecrets?.(urls.ops);
    if (opened) closers.push(() => opened.close());
    const receiver = await step("Demo partner's receiver", () =>
      startReceiver({
        port: ports.receiver,
        tls: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) },
        secrets: () => opened?.secrets() ?? [],
        now: () => new Date(),
        partner: {
          apiUrl: addresses.apiUrl,
          ca: readFileSync(tls.caFile, 'utf8'),
          partnerId: demo.partnerId,
          apiKey: demo.apiKeys.test,
        },
        moveApplication: async () => {
          if (!up || options.moveApplication === undefined) throw new Error('the stack is still starting');
          return options.moveApplication();
        },
      }),
    );
    closers.push(() => receiver.close());
    closers.push(await step('API', () => options.startServices({ databaseUrl: urls.api, tls })));
    const shop = await step('Demo shop', () =>
      startDemoShop(options, { apiUrl: addresses.apiUrl, tls, demo, receiver, isUp: () => up }),
    );
    closers.push(() => shop.close());
    const { signal } = options;
    const announce = (text: string) => options.write(`${text}\n`);
    const found = await step('Temporal', () =>
      tryTemporal(options.temporal, ports, dataDir, { note, announce, signal }),
    );
    temporal = found;
    if (found?.server) closers.push(() => found.server?.stop() ?? Promise.resolve());
    if (found && options.startWorker) {
      const start = options.startWorker.bind(options);
      closers.push(
        await step('Worker', () => start({ databaseUrl: urls.worker, tls, temporalAddress: found.address })),
      );
    }
    options.signal?.throwIfAborted();

    const info: StackInfo = {
      ...addresses,
      databaseUrl: urls.ops,
      caFile: tls.caFile,
      temporalAddress: found?.address ?? null,
      temporalUiUrl: found?.server?.uiUrl ?? null,
      receiverUrl: receiver.url,
      shopUrl: shop.url,
      ...demo,
    };
    await writeStackFile(dataDir, info);
    up = true;
    return { info, broken: firstEnd({ Postgres: server }), stop };
  } catch (error) {
    await stop();
    throw options.signal?.aborted ? new StackFailure('Stopped while starting.') : error;
  }
}

/** Everything in reverse order, whatever one of them says. */
function createStop(
  announce: () => Promise<void>,
  closers: readonly (() => Promise<void>)[],
): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stopAll = async () => {
    const faults: unknown[] = [];
    // On a full disk the announcement cannot be written.
    for (const close of [announce, ...closers.toReversed()])
      await close().catch((error: unknown) => void faults.push(error));
    if (faults.length > 0) throw faults[0];
  };
  return () => (stopping ??= stopAll());
}

/** Resolves when one of them ends by itself. */
async function firstEnd(
  parts: Record<string, { readonly exited: Promise<void>; readonly logFile: string } | null | undefined>,
): Promise<Error> {
  const endings = Object.entries(parts).map(async ([name, part]) => {
    if (!part) return new Promise<never>(() => undefined);
    await part.exited;
    return new StackFailure(`${name} has ended by itself. Its log is ${part.logFile}.`);
  });
  return Promise.race(endings);
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
    const { notSeparated } = await migrateDatabase(databaseUrl);
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
