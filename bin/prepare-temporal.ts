import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../runtime/config/config';
import { accessDenied, faultText } from '../runtime/temporal/connect';
import { ensureNamespace } from '../runtime/temporal/namespace';
import { temporalTarget, type TemporalTarget } from '../runtime/temporal/temporal-target';
import { openNativeConnection } from '../worker/session';
import { main } from './main';

/** A workflow is looked at for some days after its end. Postgres keeps the delivery for years. */
const KEEP_DAYS = 7;
const CONNECT_TIMEOUT_MS = 60_000;

const HELP = {
  usage: 'node dist/bin/prepare-temporal.js',
  purpose:
    'Registers the namespace and its search attributes at TEMPORAL_ADDRESS where they are missing, and ends.',
};

async function connect({ connection }: TemporalTarget) {
  const deadline = Date.now() + CONNECT_TIMEOUT_MS;
  for (;;) {
    try {
      return await openNativeConnection(connection);
    } catch (error) {
      if (accessDenied(error) || Date.now() > deadline) throw error;
      await sleep(500);
    }
  }
}

async function prepare(target: TemporalTarget): Promise<void> {
  const connection = await connect(target);
  try {
    await ensureNamespace(connection, { namespace: target.namespace, keepDays: KEEP_DAYS });
  } finally {
    await connection.close();
  }
}

main('prepare-temporal', HELP, async () => {
  const config = readConfig();
  if (config.TEMPORAL_ADDRESS === undefined) throw new Error('TEMPORAL_ADDRESS is not set.');
  const target = temporalTarget(config);
  await prepare(target).catch((error: unknown) => {
    throw new Error(faultText(error), { cause: error });
  });
  console.log(`prepare-temporal: namespace ${target.namespace} and its search attributes are there`);
});
