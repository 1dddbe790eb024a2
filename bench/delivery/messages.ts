import type { Moment } from '../harness/receiver';

/**
 * The floors. `regular`: one activity, started by a client. `local`: one local activity, started eagerly. `standalone`: an
 * activity without a workflow.
 */
export type BareKind = 'regular' | 'local' | 'standalone';

/** How a round feeds what it measures. */
export interface Feeding {
  readonly count: number;
  /** Most that are stored or started and not yet received. */
  readonly inFlight: number;
  /** Milliseconds between one that is received and the next. */
  readonly restMs: number;
}

/** To the bare worker: send so many. */
export interface RunMessage extends Feeding {
  readonly run: BareKind;
}

/** From the bare worker: when each was started; all have been answered. */
export interface RanMessage {
  readonly started: readonly Moment[];
}
