import type { KeyRing } from '../../db/endpoints/key-ring';
import type { Config } from '../../runtime/config/config';

export interface DevelopmentTls {
  /** What clients are told to trust (`curl --cacert`). */
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface DemoData {
  readonly partnerId: string;
  readonly apiKeys: { readonly test: string; readonly live: string };
  /** `shows`: one line, what a quote for this merchant demonstrates. */
  readonly merchants: readonly { readonly id: string; readonly shows: string }[];
}

export interface StackInfo extends DemoData {
  readonly apiUrl: string;
  readonly internalUrl: string;
  /** With the login of `ops`. */
  readonly databaseUrl: string;
  readonly caFile: string;
  /** `host:port`; null until webhooks work. */
  readonly temporalAddress: string | null;
  /** Of the embedded one. */
  readonly temporalUiUrl: string | null;
  /** The demo partner's receiver: webhooks go to `/webhooks` below it, and `/deliveries` lists them. */
  readonly receiverUrl: string;
  /** A product page, and at `/developer` the calls and webhooks behind it. The shop is its own receiver. */
  readonly shopUrl: string;
}

export interface StackOptions {
  readonly config: Config;
  /** Seals the demo partner's webhook secrets. */
  readonly keyRing: KeyRing;
  /** Starts the services on the given ports; @returns what stops them in order. */
  startServices(context: { databaseUrl: string; tls: DevelopmentTls }): Promise<() => Promise<void>>;
  /** Starts the worker, once Temporal is there; @returns whether it is ready, and what stops it. */
  startWorker(context: {
    databaseUrl: string;
    tls: DevelopmentTls;
  }): Promise<{ readonly ready: boolean; stop(): Promise<void> }>;
  /** A piece of text for the person in front of the terminal; not always a whole line. */
  write(text: string): void;
  /** Gives up starting; what has been started is stopped. */
  readonly signal: AbortSignal;
  /** Ends the processes at once, whatever is under way; the next start recovers. */
  readonly killSignal: AbortSignal;
}

export interface Stack {
  /** Resolves with the reason when a part ends by itself. */
  readonly broken: Promise<Error>;
  /** Worker, services, shop, Postgres, Temporal. Safe to call twice. */
  stop(): Promise<void>;
}
