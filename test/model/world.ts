import type { Moment, Outcome, Rows } from './rows';

/** A workflow in Temporal. */
export const NEW_WORKFLOW = {
  generation: 0,
  at: 'asks' as 'asks' | 'sends' | 'refuses' | 'records' | 'waits' | 'cancels' | Over,
  /** Of the attempt under way. */
  number: 0,
  result: null as Outcome | null,
  timer: null as Moment,
  /** A signal has come that it has not looked at. */
  woken: false,
  cancel: false,
};
type Over = 'ended' | 'terminated' | 'cancelled';
export type Workflow = Readonly<typeof NEW_WORKFLOW>;

export const isOver = ({ at }: Workflow) => at === 'ended' || at === 'terminated' || at === 'cancelled';

/** What a worker does for a workflow. One that Temporal has given up is `late`. */
export interface Job {
  readonly generation: number;
  readonly at: 'opened' | 'answered' | 'recording';
  readonly number: number;
  readonly result: Outcome | null;
  readonly late: boolean;
}

/** What is in flight for an event. */
export const QUIET = {
  /** Generations whose workflow a dispatcher is about to start, and those that it has started. */
  starting: [] as readonly number[],
  noting: [] as readonly number[],
  workflows: [] as readonly Workflow[],
  jobs: [] as readonly Job[],
  /** Generations to which a wake is on its way. */
  wakes: [] as readonly number[],
  /** What the reconciler has found about a generation. */
  found: null as { readonly generation: number; readonly standing: Workflow['at'] | 'missing' } | null,
  /** Known to nobody in the service: its receiver has answered 2xx; later events may go before it. */
  accepted: false,
  passed: false,
};
export type Event = Rows & Readonly<typeof QUIET>;

export interface World {
  readonly events: readonly Event[];
  readonly endpoint: boolean;
  readonly partnerPaused: boolean;
  /** Tests by month. */
  readonly months: readonly { readonly delivered: number; readonly reserved: number }[];
  readonly month: number;
  /** That may still happen. */
  readonly faults: number;
  readonly orders: number;
}
