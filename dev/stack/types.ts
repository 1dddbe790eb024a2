import type { StackPorts } from '../ports';

export interface DevelopmentTls {
  /** What clients are told to trust (`curl --cacert`). */
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Whether everything arrived at the demo's receiver, verified and in order. `elsewhere`: a developer has registered a receiver of their own. */
export type DemoOutcome = 'arrived' | 'missing' | 'elsewhere';

/** What there is to play with. */
export interface DemoData {
  readonly partnerId: string;
  readonly apiKeys: { readonly test: string; readonly live: string };
  /** `shows`: one line, what a quote for this merchant demonstrates. */
  readonly merchants: readonly { readonly id: string; readonly shows: string }[];
}

/** What stack.json holds. */
export interface StackInfo extends DemoData {
  readonly apiUrl: string;
  readonly internalUrl: string;
  /** With the login of `ops`. */
  readonly databaseUrl: string;
  readonly caFile: string;
  /** `host:port`; null when there is none. */
  readonly temporalAddress: string | null;
  /** Of the embedded one. */
  readonly temporalUiUrl: string | null;
  /** The demo partner's page; webhooks go to `/webhooks` below it. */
  readonly receiverUrl: string;
  /** A product page that asks for quotes, with that partner's inbox beside it. */
  readonly shopUrl: string;
}

/** Which Temporal: somebody else's, else an embedded one. */
export interface TemporalChoice {
  readonly external?:
    | {
        readonly address: string;
        /** Sees to it that it can be used (search attributes). @throws when it cannot. */
        prepare(): Promise<void>;
      }
    | undefined;
  readonly namespace: string;
}

export interface StackOptions {
  /** Everything the stack keeps. Relative to the working directory; blanks are fine. */
  readonly dataDir: string;
  readonly apiPort: number;
  readonly internalPort: number;
  /** Of Postgres, Temporal, shop and receiver. */
  readonly ports: StackPorts;
  readonly temporal: TemporalChoice;
  /** Addresses of the two listeners. */
  readonly apiHost: string;
  readonly internalHost: string;
  /** A Postgres to use instead of the embedded one; everything uses this one login. */
  readonly databaseUrl?: string | undefined;
  /**
   * Sees to it that the demo data is in the (migrated) database. `known` is what an earlier start wrote: its keys are
   * kept when the database still has them, else new ones are made.
   */
  seed(databaseUrl: string, known: Partial<DemoData> | undefined): Promise<DemoData>;
  /** Starts the services on the given ports; @returns what stops them in order. */
  startServices(context: { databaseUrl: string; tls: DevelopmentTls }): Promise<() => Promise<void>>;
  /** Starts the worker, once Temporal is there; @returns what stops it. */
  startWorker(context: { databaseUrl: string; tls: DevelopmentTls }): Promise<() => Promise<void>>;
  /** The live webhook secrets of the demo partner, read for each delivery. */
  openReceiverSecrets(databaseUrl: string): {
    secrets(): Promise<readonly string[]>;
    close(): Promise<void>;
  };
  /** Walks credit applications through their lives, for the shop's button. */
  runDemo(): Promise<DemoOutcome>;
  /** Opens an application and has its lender tell some events, for the receiver's story. @returns its id, and how many events. */
  moveApplication(): Promise<{ applicationId: string; events: number }>;
  /** A piece of text for the person in front of the terminal; not always a whole line. */
  write(text: string): void;
  /** Whether that is a terminal, on which a line can be drawn again. */
  readonly redraws: boolean;
  /** Gives up starting; what has been started is stopped. */
  readonly signal: AbortSignal;
  /** Ends the processes at once, whatever is under way; the next start recovers. */
  readonly killSignal: AbortSignal;
}

export interface Stack {
  readonly info: StackInfo;
  /** Resolves with the reason when a part ends by itself. */
  readonly broken: Promise<Error>;
  /** Worker, Temporal, services, receiver, Postgres, then the pid file. Safe to call twice. */
  stop(): Promise<void>;
}
