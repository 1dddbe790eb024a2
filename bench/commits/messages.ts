/** `ours` as the service does it; `old`: NOTIFY inside the transaction that stores, and one lock for all claims. */
export const WAYS = ['old', 'ours'] as const;
export type Way = (typeof WAYS)[number];

/** What a process of the bench does over and over. */
export const TASKS = ['store', 'claim'] as const;
export type Task = (typeof TASKS)[number];

/** To a process: do this for so long. */
export interface RunMessage {
  readonly task: Task;
  readonly way: Way;
  readonly ms: number;
}

/** From it: how many notifications it has stored, or how many claims it has made, and how many notifications those took. */
export interface RanMessage {
  readonly done: number;
  readonly taken: number;
}

/** How its sessions are called. */
export const SESSIONS = 'pfqs bench of commits';
