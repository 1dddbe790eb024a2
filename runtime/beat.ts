import { hostname } from 'node:os';
import type { Sql } from '../db/postgres/connect';
import { BEAT_EVERY_MS, writeBeat, writeStop, type Beat } from '../db/processes';
import { startLoop, withTimeout } from '../timing/timing';

const BEAT_TIMEOUT_MS = 5_000;

interface Reports {
  /** What the process cannot do although it runs; null when it can do everything. */
  readonly trouble: () => Promise<string | null>;
  /** What a worker's beat reports besides. */
  readonly worker?: WorkerBeat;
}

interface WorkerBeat {
  readonly reachesTemporal: () => Promise<boolean>;
  /** Since when its network reaches nobody. */
  readonly cutOffSince: () => Date | null;
  /** Whether it starts deliveries, so that queues belong to it. */
  readonly starts: () => boolean;
}

/**
 * Writes every ten seconds that this process runs, for `ops status`. Without Postgres it writes nothing.
 * @returns `stop` writes that it was stopped in order; `wake` writes at once
 */
export function keepBeating(
  sql: Sql,
  about: Pick<Beat, 'processId' | 'kind' | 'build'>,
  { trouble, worker }: Reports,
) {
  const host = hostname();
  const inTime = (writing: Promise<unknown>) =>
    withTimeout(writing, BEAT_TIMEOUT_MS, 'Postgres').then(
      () => true,
      () => false,
    );
  const loop = startLoop({
    round: async () => {
      const temporal = (await worker?.reachesTemporal()) ?? false;
      const seen = { cutOffSince: worker?.cutOffSince() ?? null, starts: worker?.starts() ?? false };
      // A question without an answer says nothing, and keeps no process from its beat.
      const said = await withTimeout(trouble(), BEAT_TIMEOUT_MS, 'trouble').catch(() => null);
      await inTime(writeBeat(sql, { ...about, host, temporal, ...seen, trouble: said }));
    },
    everyMs: BEAT_EVERY_MS,
    onError: () => undefined,
  });
  return {
    wake: (): void => loop.wake(),
    async stop(): Promise<void> {
      await loop.stop();
      // Once more: a process that only seems lost worries somebody for a quarter of an hour.
      if (!(await inTime(writeStop(sql, about.processId)))) await inTime(writeStop(sql, about.processId));
    },
  };
}
