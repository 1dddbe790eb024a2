import { randomUUID } from 'node:crypto';
import { startLoop } from '../../timing/timing';
import { connectionSettings, type DatabaseConfig } from './connect';
import { openClient } from './driver/client';

/** Channel on which the trigger notify_catalogue reports changes of keys, merchants and products. */
export const CATALOGUE_CHANNEL = 'catalogue';
/** Interval of the echo. Two may be late before memory is no longer trusted. */
const ECHO_INTERVAL_MS = 250;
/** Memory older than this is not trusted. With the load on connect, a revocation takes under a second. */
const TRUST_MS = 750;
/** A connection without an echo for this long counts as dead, and is replaced. */
const REPLACE_AFTER_MS = 3_000;

interface ChangeFeedOptions {
  readonly database: Pick<DatabaseConfig, 'url' | 'applicationName'>;
  readonly channels: readonly [string, ...string[]];
  /** Called after LISTEN, to drop or reload what is in memory. If it fails, the feed reconnects. */
  readonly onConnect: () => Promise<void>;
  /** Called with every notification in commit order, such as `merchant:M100001` on `catalogue`. */
  readonly onChange: (subject: string, channel: string) => void;
  readonly onError: (error: unknown) => void;
  readonly monotonicMs: () => number;
}

interface Session {
  readonly openedAtMs: number;
  echoSentAtMs: number;
  loaded: boolean;
  closed: boolean;
  readonly end: () => Promise<void>;
}

/**
 * Listens for changes on a dedicated connection, and measures how fresh its knowledge is: the
 * connection notifies itself with a nonce every 250 ms. Postgres delivers notifications in commit
 * order, so an echo proves that every change committed before it was sent has been received.
 */
export function openChangeFeed(options: ChangeFeedOptions) {
  const { monotonicMs, onError } = options;
  let session: Session | undefined;
  const loop = startLoop({
    round: async () => {
      if (session === undefined) {
        session = connect(options);
        return;
      }
      if (monotonicMs() - Math.max(session.openedAtMs, session.echoSentAtMs) > REPLACE_AFTER_MS) {
        onError(new Error(`the change feed has been silent for ${REPLACE_AFTER_MS} ms: connecting anew`));
        session.closed = true;
      }
      if (session.closed) await end();
    },
    everyMs: ECHO_INTERVAL_MS,
    onError,
  });

  async function end(): Promise<void> {
    const last = session;
    session = undefined;
    if (last !== undefined) last.closed = true;
    await last?.end();
  }

  return {
    /** Whether every change that was committed more than 750 ms ago has been received. */
    trusted: () =>
      session !== undefined &&
      session.loaded &&
      !session.closed &&
      monotonicMs() - session.echoSentAtMs < TRUST_MS,
    async close() {
      await loop.stop();
      await end();
    },
  };
}

function connect(options: ChangeFeedOptions): Session {
  const { database, channels, onConnect, onChange, onError, monotonicMs } = options;
  const [echoChannel] = channels;
  const mark = randomUUID();
  const sentAtMs = new Map<string, number>();
  const sql = openClient(database.url, {
    quietMs: 0,
    max: 1,
    connect_timeout: 3,
    idle_timeout: 0,
    max_lifetime: null,
    connection: connectionSettings({
      applicationName: `${database.applicationName} feed`,
      statementTimeoutMs: 3_000,
    }),
    onclose: () => {
      session.closed = true;
    },
    // `sql.listen` would reconnect silently and hide the gap.
    onnotify: (channel, payload) => {
      if (!payload.startsWith('echo:')) return onChange(payload, channel);
      const sent = sentAtMs.get(payload);
      if (sent === undefined) return;
      session.echoSentAtMs = sent;
      for (const nonce of sentAtMs.keys()) {
        sentAtMs.delete(nonce);
        if (nonce === payload) break;
      }
    },
  });

  const session: Session = {
    openedAtMs: monotonicMs(),
    echoSentAtMs: Number.NEGATIVE_INFINITY,
    loaded: false,
    closed: false,
    end: () => sql.end({ timeout: 0 }).catch(onError),
  };
  void (async () => {
    try {
      for (const channel of channels) await sql.unsafe(`listen ${channel}`);
      await onConnect();
      session.loaded = true;
      for (let nonce = 0; !session.closed; nonce += 1) {
        const payload = `echo:${mark}:${nonce}`;
        sentAtMs.set(payload, monotonicMs());
        await sql`select pg_notify(${echoChannel}, ${payload})`;
        await new Promise((resolve) => setTimeout(resolve, ECHO_INTERVAL_MS));
      }
    } catch (error) {
      if (!session.closed) onError(error);
      session.closed = true;
    }
  })();
  return session;
}
