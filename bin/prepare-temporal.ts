import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../runtime/config/config';
import { connectTemporal, type Temporal } from '../runtime/temporal/connect';
import { ensureNamespace } from '../runtime/temporal/temporal-namespace';
import { main } from './main';

/** What a delivery leaves behind in Temporal is looked at for some days at most; Postgres keeps it for years. */
const KEEP_DAYS = 7;
/** For a server that is just starting. */
const CONNECT_PATIENCE_MS = 60_000;

const HELP = {
  usage: 'node dist/bin/prepare-temporal.js',
  purpose:
    'Registers the namespace and its search attributes at TEMPORAL_ADDRESS where they are missing, and ends.',
};

async function untilThere(temporal: Temporal): Promise<void> {
  const deadline = Date.now() + CONNECT_PATIENCE_MS;
  for (;;) {
    try {
      await temporal.workerConnection();
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(500);
    }
  }
}

/** Registers the namespace and its search attributes, where they are missing, and ends: a job before the first worker. */
main('prepare-temporal', HELP, async () => {
  const config = readConfig();
  if (config.TEMPORAL_ADDRESS === undefined) throw new Error('TEMPORAL_ADDRESS is not set.');
  const temporal = connectTemporal(config);
  try {
    await untilThere(temporal);
    await ensureNamespace(temporal.client.connection, { namespace: temporal.namespace, keepDays: KEEP_DAYS });
    console.log(`prepare-temporal: namespace ${temporal.namespace} and its search attributes are there`);
  } finally {
    await temporal.close();
  }
});
