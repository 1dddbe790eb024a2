/** What the processes of the bench tell one another. */

/** An event, and the monotonic moment (ms) at which it was started, or received. */
export type Moment = readonly [eventId: string, atMs: number];

/** To the receivers: hosts that from now on accept a request and do not answer it. */
export interface HangMessage {
  readonly hang: readonly string[];
}

/** To the receivers: hosts that from now on answer 503 at once. */
export interface FailMessage {
  readonly fail: readonly string[];
}

/** From the receivers, when they listen. */
export interface ListeningMessage {
  readonly port: number;
}

/** From the receivers: what has arrived since the last such message. */
export interface ReceivedMessage {
  readonly received: readonly Moment[];
}

/**
 * The floors. `regular`: one activity, started by a client. `local`: one local activity, started eagerly. `standalone`: an
 * activity without a workflow.
 */
export type BareKind = 'regular' | 'local' | 'standalone';

/** To the bare worker: send so many. */
export interface RunMessage {
  readonly run: BareKind;
  readonly count: number;
  /** Most that are started and not yet sent. */
  readonly inFlight: number;
  /** Milliseconds between one that is done and the next. */
  readonly restMs: number;
}

/** From the bare worker: when each was started; all have been answered. */
export interface RanMessage {
  readonly started: readonly Moment[];
}
