import { Client, Connection } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { withTimeout } from '../../timing/timeout';
import type { Config } from '../config/config';
import { openNativeConnection } from './native-connection';
import { CHANNEL, temporalTarget } from './temporal-target';
import type { TemporalSettings } from '../config/settings';

/** Nothing is opened before it is asked for. */
export interface Temporal {
  readonly address: string;
  readonly namespace: string;
  /** Connects at its first call, and again after a loss. Without a deadline of the caller's a call waits for long. */
  readonly client: Client;
  /**
   * The worker's connection, which a client may share (`new Client({ connection })`): then workflows start eagerly.
   * Opened once; a failure is not remembered.
   * @throws when Temporal does not answer within the time.
   */
  workerConnection(timeoutMs?: number): Promise<NativeConnection>;
  /** Whether the namespace is there. @throws what is wrong, within the time. */
  check(timeoutMs?: number): Promise<void>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const CHECK_TIMEOUT_MS = 1_000;

/** @throws ConfigError when the settings do not fit together. Whether Temporal is there shows later. */
export function connectTemporal(config: TemporalSettings & Pick<Config, 'STACK_PORT'>): Temporal {
  const { namespace, connection: options } = temporalTarget(config);
  const connection = Connection.lazy({ ...options, ...CHANNEL, connectTimeout: CONNECT_TIMEOUT_MS });
  let opening: Promise<NativeConnection> | undefined;

  async function open(timeoutMs: number): Promise<NativeConnection> {
    const connecting = openNativeConnection(options);
    const late = () => new Error(`Temporal at ${options.address} does not answer within ${timeoutMs} ms`);
    try {
      return await withTimeout(connecting, timeoutMs, late);
    } catch (error) {
      opening = undefined;
      // It may come too late.
      connecting.then((late) => late.close()).catch(() => undefined);
      throw error;
    }
  }
  return {
    address: options.address,
    namespace,
    client: new Client({ connection, namespace }),
    workerConnection: (timeoutMs = CONNECT_TIMEOUT_MS) => (opening ??= open(timeoutMs)),
    check: async (timeoutMs = CHECK_TIMEOUT_MS) => {
      await connection.withDeadline(Date.now() + timeoutMs, () =>
        connection.workflowService.describeNamespace({ namespace }),
      );
    },
    close: async () => {
      await connection.close();
      await opening?.then(
        (native) => native.close(),
        () => undefined,
      );
    },
  };
}
