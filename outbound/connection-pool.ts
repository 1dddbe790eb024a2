import type { ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

/** Shorter than the 5 s after which many servers close an idle connection: few requests meet one that is just closing. */
const IDLE_MS = 4_000;
/** So that a new address, a new certificate and a new rule take effect within this time even where traffic never pauses. */
const LONGEST_LIFE_MS = 30_000;
/** As many as deliveries to one endpoint run at a time. */
const IDLE_PER_HOST = 16;

export interface PooledRequestOptions extends RequestOptions {
  readonly open: () => Promise<TLSSocket>;
}

type Provided = (error: Error | null, socket: Duplex) => void;

function destroyThis(this: Duplex): void {
  this.destroy();
}

/**
 * Keeps connections for the next request to the same host and port. It opens none itself: each request brings the way to
 * open one, guard included, so that every connection has been through it. TLS sessions are not resumed: each connection
 * checks the certificate anew.
 */
export class ConnectionPool extends Agent {
  readonly #openedAt = new WeakMap<Duplex, number>();
  readonly #spent = new WeakSet<Duplex>();

  /** @param reuse whether connections are kept at all. */
  constructor(reuse: boolean) {
    super({ keepAlive: reuse, maxFreeSockets: IDLE_PER_HOST, timeout: IDLE_MS, maxCachedSessions: 0 });
  }

  override createConnection(options: RequestOptions, callback: Provided = () => {}): undefined {
    void this.#provide(options as PooledRequestOptions, callback);
  }

  async #provide({ open }: PooledRequestOptions, provided: Provided): Promise<void> {
    try {
      const socket = await open();
      this.#openedAt.set(socket, performance.now());
      provided(null, socket);
    } catch (error) {
      provided(error as Error, undefined as unknown as Duplex);
    }
  }

  /** Closes this connection after its present request. */
  spend(socket: Duplex): void {
    this.#spent.add(socket);
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const age = performance.now() - (this.#openedAt.get(socket) ?? 0);
    if (this.#spent.has(socket) || age > LONGEST_LIFE_MS) return false;
    // Returns whether to keep it; the typing does not say so.
    const kept = (super.keepSocketAlive(socket) as unknown) === true;
    // Nothing is asked of it now. An endpoint that sends all the same would be read for ever, with nobody to stop it.
    if (kept) socket.once('data', destroyThis);
    return kept;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    socket.off('data', destroyThis);
    super.reuseSocket(socket, request);
  }
}
